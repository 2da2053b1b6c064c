"""One command on a connection that carries many: its channel, and its process with pipes (``hosts.base.Process``)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from nicbench.core.errors import HostError
from nicbench.hosts.base import Process
from nicbench.hosts.kinds.local import LINE_LIMIT_BYTES

# When more output than this waits to be taken, no more is read from the host, and its command blocks.
MOST_WAITING_BYTES = 8 * 1024 * 1024
_MOST_STDERR_BYTES = 256 * 1024
_STDERR_CHARACTERS = 20_000
_WRITE_TIMEOUT_S = 30.0
# As for a local process: the last output may still be on the way, but another holder of the pipe must not delay us.
_LAST_WORDS_S = 0.5


class Connection(Protocol):
    """A connection that carries commands. ``lost`` is the error once the connection has ended by itself."""

    lost: HostError | None

    async def signal(self, pid: int, number: int) -> None:
        """Sends a signal to a command and the processes that it started."""

    def release(self, channel: Channel) -> None:
        """Frees the place of a command whose output is no longer of interest."""

    def failure(self) -> HostError:
        """Returns the error that says how the connection was lost."""


class Channel(ABC):
    """The bytes of one command as they arrive, within bounds, and its exit status.

    ``stdout`` and the end of ``stderr`` hold what has not been taken yet; ``status`` is None until the command ended.
    """

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.status: int | None = None
        self.at_end = False
        """Whether no more output will come."""
        self.closed = False
        self.error: Exception | None = None
        self.room = 0
        """Bytes that may wait beyond MOST_WAITING_BYTES: for one long line, or for the whole output."""
        self.on_change: Callable[[], None] | None = None
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until a condition holds; it is checked after every message."""
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def take(self, count: int) -> bytes:
        """Removes and returns the first bytes of stdout, which makes room for more."""
        taken = bytes(self.stdout[:count])
        del self.stdout[:count]
        self._hold_back()
        return taken

    def allow(self, room: int) -> None:
        """Sets how many bytes may wait beyond MOST_WAITING_BYTES."""
        self.room = room
        self._hold_back()

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Writes bytes to the command's stdin. BrokenPipeError where nobody reads it any more."""

    @abstractmethod
    def write_eof(self) -> None:
        """Closes the command's stdin."""

    @abstractmethod
    def close(self) -> None:
        """Closes the channel; output that still arrives is discarded."""

    @property
    def _is_full(self) -> bool:
        return len(self.stdout) > MOST_WAITING_BYTES + self.room

    @abstractmethod
    def _hold_back(self) -> None:
        """Pauses or resumes reading from the host, depending on how much waits."""

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


class ChannelProcess(Process):
    """A running command of another machine with its pipes.

    Its place on the connection becomes free once it has ended and was waited for, or was killed. ``title`` is the
    command as messages show it.
    """

    def __init__(self, channel: Channel, pid: int, connection: Connection, title: str, host: str) -> None:
        self._channel = channel
        self._pid = pid
        self._connection = connection
        self._title = title
        self._host = host
        self._released = False

    @property
    def pid(self) -> int | None:
        return self._pid

    async def write_line(self, line: str) -> None:
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await self._channel.write(line.encode() + b"\n")
        except TimeoutError:
            message = f"{self._title}: has read nothing for {_WRITE_TIMEOUT_S:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except BrokenPipeError as error:
            raise await self._describe_end() from error

    async def read_line(self, timeout_s: float | None = None) -> str | None:
        channel = self._channel
        channel.allow(LINE_LIMIT_BYTES)
        searched = 0

        def found() -> bool:
            nonlocal searched
            at = channel.stdout.find(b"\n", searched)
            searched = len(channel.stdout) if at < 0 else at
            return at >= 0 or channel.at_end or searched > LINE_LIMIT_BYTES

        try:
            async with asyncio.timeout(timeout_s):
                await channel.until(found)
        except TimeoutError:
            message = f"{self._title}: silent for {timeout_s:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        finally:
            channel.allow(0)
        if searched > LINE_LIMIT_BYTES:
            raise HostError(f"{self._title}: a line of more than {LINE_LIMIT_BYTES} bytes", place=self._host)
        if not channel.stdout:
            if channel.status is None and channel.closed:
                raise await self._describe_end()
            return None
        return channel.take(searched + 1).decode(errors="replace").removesuffix("\n")

    async def read_some(self) -> bytes:
        channel = self._channel
        await channel.until(lambda: bool(channel.stdout) or channel.at_end)
        if not channel.stdout and channel.status is None and channel.closed:
            raise await self._describe_end()
        return channel.take(65536)

    async def close_stdin(self) -> None:
        self._channel.write_eof()

    async def wait(self, timeout_s: float | None = None) -> int:
        channel = self._channel
        try:
            async with asyncio.timeout(timeout_s):
                await channel.until(lambda: channel.status is not None or channel.closed)
        except TimeoutError:
            raise HostError(f"{self._title}: did not end within {timeout_s:g} s", place=self._host) from None
        if channel.status is None:
            raise await self._describe_end()
        if not self._released:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await channel.until(lambda: channel.at_end)
            if not channel.at_end:  # a child of the ended command still holds its pipes
                await self._connection.signal(self._pid, signal.SIGKILL)
            self._release()
        if channel.status == -signal.SIGKILL and self._connection.lost is not None:  # it did not end by itself
            raise self._connection.failure()
        return channel.status

    async def signal(self, number: int) -> None:
        # Children of a process may outlive it and still have to be killed.
        if not self._released and (self._channel.status is None or number == signal.SIGKILL):
            await self._connection.signal(self._pid, number)

    def stderr_tail(self) -> str:
        return bytes(self._channel.stderr).decode(errors="replace")[-_STDERR_CHARACTERS:].strip()

    def _release(self) -> None:
        """Frees the place on the connection; output that was not read yet stays with the channel."""
        if not self._released:
            self._released = True
            self._connection.release(self._channel)

    async def _describe_end(self) -> HostError:
        """Makes the error that says how the command ended, or how the connection did where that took it along."""
        channel = self._channel
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await channel.until(lambda: channel.status is not None or channel.closed)
        if channel.status is None and channel.closed:
            self._release()
            return self._connection.failure()
        status = channel.status
        how = "has ended"
        if status is not None:
            how = f"has ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        return HostError(f"{self._title}: {how}{self._last_words()}", place=self._host)

    def _last_words(self) -> str:
        tail = self.stderr_tail()
        return f"; its last words: {tail[-2000:]}" if tail else ""
