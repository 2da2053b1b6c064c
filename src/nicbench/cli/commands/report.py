"""``nicbench report RUN``: builds the report again, from the run folder alone, as HTML, PDF or Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from nicbench.cli.options import DEFAULT_RUNS, Formats, Json, RunReference, RunsFolder, kinds
from nicbench.cli.output import FORMAT, print_json, results, say
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.plan import Layout
from nicbench.report import Format
from nicbench.store.folder import RunFolder, refuse_damaged
from nicbench.store.listing import open_run

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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report")(_report)


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
            results().print(str(path), markup=False, soft_wrap=True)


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
