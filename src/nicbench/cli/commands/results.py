"""``nicbench report`` and ``nicbench gather``: make a report, and a lake of runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from nicbench.cli.options import DEFAULT_RUNS, Formats, Json, RunReference, RunsFolder, describe_results, kinds
from nicbench.cli.output import FORMAT, print_json, print_line, results, say
from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.core.plan import Layout
from nicbench.report import Format
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
_Logo = Annotated[
    Path | None,
    typer.Option(
        "--logo",
        metavar="FILE",
        help="A PNG of at most 256 kB that HTML and PDF have above the title.",
        show_default=False,
    ),
]
_Damaged = Annotated[
    bool, typer.Option("--damaged", help="Build a report even if the run folder is damaged; it says what is damaged.")
]


_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_MOST_LOGO_BYTES: Final = 256_000


def _report(
    run: RunReference,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    layout: _Layout = None,
    formats: Formats = None,
    out: _Out = None,
    logo: _Logo = None,
    json: Json = False,
    damaged: _Damaged = False,
) -> None:
    wanted = kinds(formats)
    picture = _read_logo(logo) if logo else b""
    folder = open_run(run, runs_folder, damaged=True)
    if not damaged:
        refuse_damaged(folder, "restore the files from a copy, or use --damaged to see the run as it is")
    for difference in folder.differences():
        say(f"warning: {difference}")
    paths = _build(folder, wanted, layout, out, picture, damaged=damaged)
    if json:
        paths_by_kind = {str(kind): str(path) for kind, path in paths.items()}
        print_json({"format": FORMAT, "report": str(paths[wanted[0]]), "reports": paths_by_kind})
    else:
        for path in paths.values():
            print_line(str(path))


def _read_logo(path: Path) -> bytes:
    """Reads a PNG. UsageError where the file is not one, or is too large for every copy of the page to carry."""
    try:
        with path.open("rb") as file:
            picture = file.read(_MOST_LOGO_BYTES + 1)
    except OSError as error:
        raise UsageError(
            error.strerror or "cannot be read", place=str(path), next_step="name a PNG with --logo"
        ) from error
    if not picture.startswith(_PNG):
        raise UsageError("is not a PNG", place=str(path), next_step="convert it: rsvg-convert or ImageMagick do")
    if len(picture) > _MOST_LOGO_BYTES:
        raise UsageError("is larger than 256 kB", place=str(path), next_step="scale it down: 600 pixels are enough")
    if not picture.endswith(_PNG_END):
        raise UsageError("is a PNG that has no end", place=str(path), next_step="copy the file again")
    return picture


def _build(
    folder: RunFolder, kinds: tuple[Format, ...], layout: Layout | None, out: Path | None, logo: bytes, *, damaged: bool
) -> Mapping[Format, Path]:
    """Builds the report; a failure on a damaged folder is reported as damage, not as a fault of the program."""
    from nicbench.report import build_formats  # imported here, as charts take a second to load

    try:
        return build_formats(folder.path, kinds, layout, out, logo)
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
    """Carries out ``nicbench gather``."""
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


COMMANDS = {"report": _report, "gather": gather}
