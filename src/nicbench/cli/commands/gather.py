"""``nicbench gather RUNS... --into LAKE``: appends runs to a lake, which answers for a million of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nicbench.cli.options import DEFAULT_RUNS, Json, describe_results
from nicbench.cli.output import FORMAT, print_json, results, say
from nicbench.core.errors import UsageError
from nicbench.store.folder import is_run_folder

if TYPE_CHECKING:
    from nicbench.lake.gathering import Gathered

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


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("gather")(gather)


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
