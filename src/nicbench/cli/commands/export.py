"""``nicbench export RUN --to KIND``: writes a run's results as a file for other programs."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, RunOrTag, RunsFolder, choice, runs_called
from nicbench.cli.output import print_line, say, write_bytes
from nicbench.core.errors import UsageError

if TYPE_CHECKING:
    from nicbench.export.formats.base import ExportFormat
    from nicbench.export.source import ExportSource


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
    run: RunOrTag,
    to: Kind,
    out: Target = None,
    table: TableName = "results",
    runs_folder: RunsFolder = DEFAULT_RUNS,
) -> None:
    from nicbench.core.registry import find  # imported here, as completion needs no results
    from nicbench.export.formats.base import ExportFormat
    from nicbench.export.source import TABLES, ExportSource
    from nicbench.store.files import make_folder, writing_atomically
    from nicbench.store.listing import open_run

    formats = find("nicbench.export.formats", ExportFormat)
    choice("--to", to, formats)
    choice("--table", table, TABLES)
    form = formats[to]()
    if table != "results" and not form.one_table:
        raise UsageError(
            f"the format {to} holds all tables, so none can be chosen", place="--table", next_step="leave it out"
        )
    folders = [open_run(str(path), runs_folder) for path in runs_called(run, runs_folder)]
    if len(folders) > 1 and not (form.one_table and table in ("results", "values")):
        raise UsageError(
            f"{len(folders)} runs have this tag, and {f'the format {to}' if not form.one_table else table} holds one",
            place=repr(run),
            next_step="name one run, or export the results or values of all by --to csv or --to parquet",
        )
    source = ExportSource(*folders)
    for sentence in source.changed_files:
        say(f"warning: {sentence}")
    if out == _STDOUT:
        _to_stdout(form, source, table)
        return
    called = folders[0].run_id if len(folders) == 1 else run
    named = called if table == "results" else f"{called}-{table}"
    path = Path(out) if out else Path(f"{named}{form.suffix}")
    _refuse(path)
    make_folder(path.parent)
    with writing_atomically(path) as stream:
        form.write(source, table, stream)
    print_line(str(path))


def _refuse(path: Path) -> None:
    """Raises UsageError where the file cannot be written, or must not be."""
    from nicbench.store.files import JOURNAL
    from nicbench.store.folder import is_run_folder

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


COMMANDS = {"export": _export}
