"""One command on one ssh connection: its bytes as they come, within bounds, and how it ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import asyncssh

# Beyond this the host is not read from any more, and its command waits, until somebody takes lines away.
_MOST_WAITING_BYTES = 8 * 1024 * 1024
_MOST_STDERR_BYTES = 256 * 1024


class Channel(asyncssh.SSHClientSession[bytes]):
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
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False

    # What asyncssh calls.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.stderr += data
            del self.stderr[:-_MOST_STDERR_BYTES]
        else:
            self.stdout += data
            self._hold_back()
        self._tell()

    def eof_received(self) -> bool:
        self.at_end = True
        self._tell()
        return True  # our direction stays open: the command may still read

    def exit_status_received(self, status: int) -> None:
        self.status = status
        self._tell()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.status = -_number_of(signal)
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = self.at_end = True
        self.error = exc
        self._writable.set()
        self._tell()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # What we call.

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

    async def write(self, data: bytes) -> None:
        """Gives bytes to the command. BrokenPipeError where nobody reads any more."""
        if self._channel is None or self.closed or self._channel.is_closing():
            raise BrokenPipeError
        try:
            self._channel.write(data)
        except OSError as error:
            raise BrokenPipeError from error
        await self._writable.wait()
        if self.closed:
            raise BrokenPipeError

    def write_eof(self) -> None:
        if self._channel is not None and not self.closed and not self._channel.is_closing():
            self._channel.write_eof()

    def close(self) -> None:
        """Lets go of it: what still comes is thrown away."""
        if self._channel is not None:
            self._channel.close()

    def _hold_back(self) -> None:
        if self._channel is None or self.closed:
            return
        full = len(self.stdout) > _MOST_WAITING_BYTES + self.room
        if full and not self._paused:
            self._channel.pause_reading()
        elif self._paused and not full:
            self._channel.resume_reading()
        self._paused = full

    def _tell(self) -> None:
        self._changed.set()
        if self.on_change is not None:
            self.on_change()


def _number_of(name: str) -> int:
    """Of a signal's name without SIG, as RFC 4254 section 6.10 has it."""
    try:
        return signal.Signals[f"SIG{name.partition('@')[0]}"].value
    except KeyError:
        return signal.SIGKILL.value
