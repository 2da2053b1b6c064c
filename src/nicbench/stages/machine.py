"""First stage: the machines are ours, nothing of a dead run is left on them, and whatever we change will be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nicbench.events import Bus, Note
from nicbench.stages.sharing import Claim, taken
from nicbench.store.folder import RunFolder
from nicbench.tuning.stack import UndoStack


@asynccontextmanager
async def machine(
    folder: RunFolder, bus: Bus, *, touched: bool, elsewhere: tuple[Claim, ...] = (), wait_s: float = 0.0
) -> AsyncIterator[UndoStack]:
    """Holds this machine and what is claimed of others, and an undo stack; waits so long for those that hold them.

    ``touched`` is false where a run changes nothing (a simulated lab).
    """
    changes = UndoStack(folder.run_id, folder.path)
    if not touched:
        yield changes
        return
    async with taken(folder.run_id, elsewhere, bus, wait_s), undone(changes, bus):
        yield changes


@asynccontextmanager
async def undone(changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """Undoes afterwards whatever was changed, and says what could not be."""
    try:
        yield
    finally:
        for trouble in await changes.undo_all():
            bus.publish(Note(level="warning", text=trouble))
