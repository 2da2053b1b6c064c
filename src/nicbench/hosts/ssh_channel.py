"""The channel of one command on an ssh connection."""

from __future__ import annotations

import asyncio
import signal

import asyncssh

from nicbench.hosts.channel import Channel


class SshChannel(Channel, asyncssh.SSHClientSession[bytes]):
    """A ``Channel`` that is a session of asyncssh."""

    def __init__(self) -> None:
        super().__init__()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._paused = False

    # Called by asyncssh.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._see_errors(data)
        else:
            self._see_output(data)

    def eof_received(self) -> bool:
        self.at_end = True
        self._tell()
        return True  # our direction stays open: the command may still read

    def exit_status_received(self, status: int) -> None:
        self.status = status
        self._tell()

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.status = -_signal_number(signal)
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

    # Called by nicbench.

    async def write(self, data: bytes) -> None:
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
        if self._channel is not None:
            self._channel.close()

    def _hold_back(self) -> None:
        if self._channel is None or self.closed:
            return
        full = self._is_full
        if full and not self._paused:
            self._channel.pause_reading()
        elif self._paused and not full:
            self._channel.resume_reading()
        self._paused = full


def _signal_number(name: str) -> int:
    """Returns the number of a signal from its name without SIG (RFC 4254, section 6.10); SIGKILL if unknown."""
    try:
        return signal.Signals[f"SIG{name.partition('@')[0]}"].value
    except KeyError:
        return signal.SIGKILL.value
