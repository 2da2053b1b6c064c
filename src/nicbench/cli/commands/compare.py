"""``nicbench compare RUN RUN...``: shows runs and published results side by side, what differs between them first."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from nicbench.cli import completion
from nicbench.cli.options import DEFAULT_RUNS, Formats, Json, LakeOption, RunsFolder, in_lake, kinds, tagged_runs
from nicbench.cli.output import print_json, results, say
from nicbench.core.errors import UsageError
from nicbench.lake.place import Lake, find_lake
from nicbench.report import Format

PAGE: Final = "comparison"

_Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="[NAME=]RUN[:CONFIGURATION] ...",
        help="Folder, id under --runs, `latest`, tag (all its runs) or `reference:NAME`. NAME= names it on the page.",
        show_default=False,
        autocompletion=completion.comparable,
    ),
]
_Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE|DIR", help=f"The file of the page, or its folder, for {PAGE}.html; created if missing."
    ),
]
_Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The page's title.")]
_Force = Annotated[
    bool, typer.Option("--force", help="Compare runs that are not comparable anyway; the page says so in red.")
]
_PerPort = Annotated[
    bool, typer.Option("--per-port", help="Divide sums over ports by the number of ports; the page says so.")
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compare")(_compare)


def _compare(
    runs: _Runs,
    out: _Out = Path(),
    title: _Title = None,
    force: _Force = False,
    per_port: _PerPort = False,
    formats: Formats = None,
    runs_folder: RunsFolder = DEFAULT_RUNS,
    lake: LakeOption = None,
    json: Json = False,
) -> None:
    """Compare runs or published results side by side."""
    # Imported here: these take a second to load, and no other command needs them.
    from nicbench.cli.comparison import document, print_comparison
    from nicbench.report.comparison_page import compare
    from nicbench.report.comparison_page import document as page_document
    from nicbench.report.formats import write

    stem, wanted = _place(out, formats)
    made = compare(
        runs,
        runs_folder,
        partial(_find_tagged, runs_folder, find_lake(runs_folder, lake)),
        command=shlex.join(["nicbench", *sys.argv[1:]]),
        title=title,
        force=force,
        per_port=per_port,
    )
    found, page = made.found, made.page
    paths = write(page_document(page), wanted, stem, f"comparison of {len(found.entries)} results")
    if json:
        print_json(document(found, made.against, made.known, page, [str(path) for path in paths.values()]))
    else:
        print_comparison(results(), page)
    say(f"\ncomparison: {', '.join(str(path) for path in paths.values())}")


def _find_tagged(runs_folder: Path, lake: Lake | None, word: str) -> list[Path]:
    """Returns the runs with the tag, oldest first, or the one of this id that the lake knows."""
    from nicbench.compare.entries import MOST

    found = in_lake(word, runs_folder, lake)
    return [Path(found)] if found != word else tagged_runs(word, runs_folder, lake, MOST + 1)


def _place(out: Path, formats: list[str] | None) -> tuple[Path, tuple[Format, ...]]:
    """Returns the path without its suffix, and the formats. UsageError where the files would be in a run folder.

    A file's suffix gives the format where none is asked for.
    """
    from nicbench.store.files import JOURNAL
    from nicbench.store.folder import is_run_folder

    endings = {f".{kind.value}": kind for kind in Format}
    is_file = not out.is_dir() and out.suffix != ""
    if is_file and out.suffix not in endings:
        raise UsageError(
            f"{out.suffix} is no format of a page",
            place=str(out),
            next_step=f"a folder, or a file that ends in {', '.join(endings)}",
        )
    stem = out.with_suffix("") if is_file else out / PAGE
    for folder in stem.resolve().parents:
        if is_run_folder(folder) and (folder / JOURNAL).exists():  # a bench file alone does not make a run folder
            raise UsageError(
                "is a run's folder: a comparison is no part of a run",
                place=str(folder),
                next_step="name another folder or file by --out",
            )
    return stem, (endings[out.suffix],) if is_file and formats is None else kinds(formats)
