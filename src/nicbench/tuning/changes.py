"""The undo stack: whatever changes a machine writes its undo, with the recorded old value, before the change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from nicbench.hosts.base import Host
from nicbench.tuning.undo.base import Undo


async def by_others() -> None:
    """The change is made by another process."""


class Changes(ABC):
    """Collects undos in order.

    The implementation keeps them, flushed, in the run folder and in /run/nicbench/RUN/undo.json.
    """

    run_id: str

    @abstractmethod
    async def make(self, host: Host, undo: Undo, apply: Callable[[], Awaitable[None]] = by_others) -> None:
        """Writes ``undo`` down, flushed, and then applies the change."""

    @abstractmethod
    async def set_file(self, host: Host, path: str, value: str) -> None:
        """Changes a value under /proc or /sys (or a file): records the old, writes, verifies by reading back."""

    @abstractmethod
    def before_undoing(self, end: Callable[[], Awaitable[None]]) -> None:
        """Has ``end`` called before anything is undone: a process whose pipes this one holds is ended by its holder."""

    @abstractmethod
    async def undo_all(self) -> list[str]:
        """Undoes in reverse order, idempotently, never over a value that somebody changed since.

        Returns what could not be undone.
        """
