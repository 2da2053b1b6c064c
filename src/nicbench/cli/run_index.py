"""The runs under ``--output`` by their index, with notes on the index told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nicbench.cli.output import say
from nicbench.store.index import Indexed, indexed_runs

if TYPE_CHECKING:
    from nicbench.model.result import Summary


def runs_under(output: Path, *, rebuild: bool = False) -> Indexed:
    """Every run there is, oldest first. HostError where the folder itself cannot be read."""
    try:
        found = indexed_runs(output, _tell, rebuild=rebuild)
    except OSError as error:
        from nicbench.store.files import storage_error  # here: as below

        raise storage_error(error, output) from error
    for note in found.notes:
        say(f"note: {note}")
    return found


def _tell(summary: Summary) -> str | None:
    from nicbench.cli.summary_table import headline  # here: only a run that is new to the index needs it

    try:
        return headline(summary)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        return None  # a summary of somebody else's making: its row stands without a line on what it found
