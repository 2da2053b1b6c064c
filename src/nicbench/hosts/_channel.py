"""One command on a connection that carries many: its bytes as they come, within bounds, and how it ended."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from nicbench.errors import HostError

# Beyond this the host is not read from any more, and its command waits, until somebody takes lines away.
MOST_WAITING_BYTES = 8 * 1024 * 1024
_MOST_STDERR_BYTES = 256 * 1024


class Connection(Protocol):
    """What carries commands. ``lost`` says, once it has ended by itself, how."""

    lost: HostError | None

    async def signal(self, pid: int, number: int) -> None:
        """To the command and what it started."""

    def release(self, channel: Channel) -> None:
        """Nobody listens to that command any more."""

    def failure(self) -> HostError:
        """How it was lost, for whoever asks later."""


class Channel(ABC):
    """``stdout`` and ``stderr`` (its end) hold what nobody has taken; ``status`` is None until the command ended."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.status: int | None = None
        self.at_end = False
        """No more output will come."""
        self.closed = False
        self.error: Exception | None = None
        self.room = 0
        """How much more may wait than ordinarily: for one long line, or the whole output."""
        self.on_change: Callable[[], None] | None = None
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until it holds; what it looks at changes with every message."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def take(self, count: int) -> bytes:
        """The first bytes of stdout; room for more."""
        taken = bytes(self.stdout[:count])
        del self.stdout[:count]
        self._hold_back()
        return taken

    def allow(self, room: int) -> None:
        """How many bytes may wait beyond the ordinary bound."""
        self.room = room
        self._hold_back()

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Gives bytes to the command. BrokenPipeError where nobody reads any more."""

    @abstractmethod
    def write_eof(self) -> None:
        """Ends its stdin."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of it: what still comes is thrown away."""

    @property
    def _is_full(self) -> bool:
        return len(self.stdout) > MOST_WAITING_BYTES + self.room

    @abstractmethod
    def _hold_back(self) -> None:
        """Lets more come, or not, by how much waits."""

    def _see_output(self, data: bytes) -> None:
        self.stdout += data
        self._hold_back()
        self._tell()

    def _see_errors(self, data: bytes) -> None:
        self.stderr += data
        del self.stderr[:-_MOST_STDERR_BYTES]
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        if self.on_change is not None:
            self.on_change()
