"""Changes that are made and noted, and undone by nobody: for tests of what makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.base import Undo


class NotedChanges(Changes):
    """``undos`` are those of all changes, in their order."""

    run_id = "run"

    def __init__(self) -> None:
        self.undos: list[Undo] = []

    async def make(self, host: Host, undo: Undo, apply: Callable[[], Awaitable[None]]) -> None:
        self.undos.append(undo)
        await apply()

    async def set_file(self, host: Host, path: str, value: str) -> None:
        await host.write_file(path, value)

    def before_undoing(self, end: Callable[[], Awaitable[None]]) -> None:
        raise NotImplementedError

    async def undo_all(self) -> list[str]:
        raise NotImplementedError
