"""``nicbench report``, ``export`` and ``gather``: make a report, files for other programs, and a lake of runs."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Formats, Json, RunReference, RunsFolder, choice, describe_results, kinds
from nicbench.cli.output import FORMAT, print_json, print_line, results, say, write_bytes
from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.core.plan import Layout
from nicbench.core.registry import find
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import TABLES, ExportSource
from nicbench.report import Format
from nicbench.store.files import JOURNAL, make_folder, writing_atomically
from nicbench.store.folder import RunFolder, is_run_folder, refuse_damaged
from nicbench.store.listing import open_run

if TYPE_CHECKING:
    from nicbench.lake.gathering import Gathered


# ``nicbench report RUN``: builds the report again, from the run folder alone, as HTML, PDF or Markdown.

_Layout = Annotated[
    Layout | None,
    typer.Option("--layout", help="The layout of the report.", show_default="as the bench file says, or `study`"),
]
_Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where to write the report; the folder is created if missing.",
        show_default="the run's own",
    ),
]
_Damaged = Annotated[
    bool, typer.Option("--damaged", help="Build a report even if the run folder is damaged; it says what is damaged.")
]


def _report(
    run: RunReference,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    layout: _Layout = None,
    formats: Formats = None,
    out: _Out = None,
    json: Json = False,
    damaged: _Damaged = False,
) -> None:
    """Build the report of a run again."""
    wanted = kinds(formats)
    folder = open_run(run, runs_folder, damaged=True)
    if not damaged:
        refuse_damaged(folder, "restore the files from a copy, or use --damaged to see the run as it is")
    for difference in folder.differences():
        say(f"warning: {difference}")
    paths = _build(folder, wanted, layout, out, damaged=damaged)
    if json:
        paths_by_kind = {str(kind): str(path) for kind, path in paths.items()}
        print_json({"format": FORMAT, "report": str(paths[wanted[0]]), "reports": paths_by_kind})
    else:
        for path in paths.values():
            print_line(str(path))


def _build(
    folder: RunFolder, kinds: tuple[Format, ...], layout: Layout | None, out: Path | None, *, damaged: bool
) -> Mapping[Format, Path]:
    """Builds the report; a failure on a damaged folder is reported as damage, not as a fault of the program."""
    from nicbench.report import build_formats  # imported here, as charts take a second to load

    try:
        return build_formats(folder.path, kinds, layout, out)
    except NicbenchError:
        raise
    except Exception as error:
        if not (damaged and folder.damage()):
            raise
        raise HostError(
            f"is too damaged for a report: {type(error).__name__}: {error}",
            place=str(folder.path),
            next_step="restore the files from a copy of the folder",
        ) from error


# ``nicbench export RUN --to KIND``: writes a run's results as a file for other programs.

_STDOUT: Final = "-"

Kind = Annotated[
    str,
    typer.Option(
        "--to",
        "--format",
        metavar="KIND",
        help="badge, csv, json, junit, openmetrics, parquet or xlsx.",
        show_default=False,
        autocompletion=completion.export_formats,
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--out", metavar="FILE", help="The file to write, or `-` for stdout (default: RUN-ID.KIND here)."),
]
TableName = Annotated[
    str,
    typer.Option(
        "--table",
        metavar="NAME",
        help="For csv and parquet: results (one row each), values (long form, one row each), trials or rounds.",
    ),
]


def _export(
    run: RunReference,
    to: Kind,
    out: Target = None,
    table: TableName = "results",
    runs_folder: RunsFolder = DEFAULT_RUNS,
) -> None:
    """Export a run's results, unrounded, to a file for other programs."""
    formats = find("nicbench.export.formats", ExportFormat)
    choice("--to", to, formats)
    choice("--table", table, TABLES)
    form = formats[to]()
    if table != "results" and not form.one_table:
        raise UsageError(
            f"the format {to} holds all tables, so none can be chosen", place="--table", next_step="leave it out"
        )
    folder = open_run(run, runs_folder)
    source = ExportSource(folder)
    for sentence in source.document.run.changed_files:
        say(f"warning: {sentence}")
    if out == _STDOUT:
        _to_stdout(form, source, table)
        return
    named = folder.run_id if table == "results" else f"{folder.run_id}-{table}"
    path = Path(out) if out else Path(f"{named}{form.suffix}")
    _refuse(path)
    make_folder(path.parent)
    with writing_atomically(path) as stream:
        form.write(source, table, stream)
    print_line(str(path))


def _refuse(path: Path) -> None:
    """Raises UsageError where the file cannot be written, or must not be."""
    parent = path.absolute().parent
    if path.is_dir():
        raise UsageError("is a folder, not a file", place=str(path), next_step="name a file in it, or another --out")
    if path.exists() and not path.is_file():  # such as /dev/stdout, a link to a pipe
        raise UsageError(
            "is a pipe or a device, not a file",
            place=str(path),
            next_step=f"name a file, or `--out {_STDOUT}` for stdout",
        )
    # A bench file alone makes no run folder: it may lie where the user works.
    if any(is_run_folder(folder) and (folder / JOURNAL).exists() for folder in (parent, *parent.parents)):
        raise UsageError(
            "lies in the folder of a run, whose files are checked against what was measured",
            place=str(path),
            next_step="name a file outside of it with --out",
        )


def _to_stdout(form: ExportFormat, source: ExportSource, table: str) -> None:
    whole = io.BytesIO()
    form.write(source, table, whole)
    if sys.stdout.isatty() and not form.is_text:
        raise UsageError(
            f"the format {form.kind} is binary and cannot be shown on a terminal",
            place="--out",
            next_step="name a file with --out, or redirect stdout",
        )
    write_bytes(whole.getvalue())


# ``nicbench gather RUNS... --into LAKE``: appends runs to a lake, which answers for a million of them.

_Runs = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[RUNS...]", help="Folders that hold runs, or runs themselves.", show_default=False),
]
_Into = Annotated[
    str | None,
    typer.Option(
        "--into", metavar="LAKE", help="A folder or an address like s3://bucket/lake (default: `lake` in RUNS)."
    ),
]


def gather(runs: _Runs = None, into: _Into = None, json: Json = False) -> None:
    """Gather finished runs into a lake, which list, check, compare and web can read."""
    found = gather_runs(runs or [DEFAULT_RUNS], into)
    if json:
        print_json(
            {
                "format": FORMAT,
                "added": list(found.added),
                "updated": list(found.updated),
                "known": found.known,
                "skipped": list(found.skipped),
                "strangers": list(found.strangers),
            }
        )
        return
    words = f"{len(found.added)} runs added, {len(found.updated)} updated, {found.known} known already"
    results().print(f"{words}, {len(found.skipped)} skipped" if found.skipped else words)


def gather_runs(runs: list[Path], into: str | None) -> Gathered:
    """Gathers runs, and says on stderr which were skipped. UsageError where it is not clear into which lake."""
    from nicbench.lake import gathering  # imported here: no other command writes Parquet
    from nicbench.lake.place import FOLDER

    if into is None:
        if len(runs) > 1 or is_run_folder(runs[0]):
            raise UsageError(
                "which lake?", next_step="name it by --into LAKE; of one folder of runs it is `lake` in it"
            )
        into = str(runs[0] / FOLDER)
    found = gathering.gather(runs, into, describe_results)
    for sentence in found.skipped:
        say(f"note: skipped: {sentence}")
    for place in found.strangers:
        say(f"note: {place} is no part of the lake: nicbench leaves it alone, other programs may read it")
    return found


COMMANDS = {"report": _report, "export": _export, "gather": gather}
