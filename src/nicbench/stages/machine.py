"""First stage: the machine is ours, nothing of a dead run is left on it, and whatever we change will be undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nicbench.events import Bus, Note
from nicbench.store.folder import RunFolder
from nicbench.tuning.lock import HostLock
from nicbench.tuning.restore import restore_stale
from nicbench.tuning.stack import UndoStack


@asynccontextmanager
async def machine(folder: RunFolder, bus: Bus, *, touched: bool) -> AsyncIterator[UndoStack]:
    """Holds the host's lock and an undo stack. ``touched`` is false where a run changes nothing (a simulated lab)."""
    changes = UndoStack(folder.run_id, folder.path)
    if not touched:
        yield changes
        return
    lock = HostLock(folder.run_id)
    try:
        for sentence in [*await lock.take(), *await restore_stale()]:
            bus.publish(Note(level="warning", text=sentence))
        async with undone(changes, bus):
            yield changes
    finally:
        lock.release()


@asynccontextmanager
async def undone(changes: UndoStack, bus: Bus) -> AsyncIterator[None]:
    """Undoes afterwards whatever was changed, and says what could not be."""
    try:
        yield
    finally:
        for trouble in await changes.undo_all():
            bus.publish(Note(level="warning", text=trouble))
