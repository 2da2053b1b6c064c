"""A running command of another machine with its pipes (see ``hosts.base.Process``)."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from nicbench.errors import HostError
from nicbench.hosts._channel import Channel, Connection
from nicbench.hosts._process import LINE_LIMIT_BYTES
from nicbench.hosts.base import Process

_STDERR_CHARACTERS = 20_000
_WRITE_TIMEOUT_S = 30.0
# As for a local process: last words may be on the way; who else holds a pipe must not hold us up.
_LAST_WORDS_S = 0.5


class ChannelProcess(Process):
    """Its place on the connection is free again once it has ended and was waited for, or was killed."""

    def __init__(self, channel: Channel, pid: int, connection: Connection, shown: str, host: str) -> None:
        self._channel = channel
        self._pid = pid
        self._connection = connection
        self._shown = shown
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
            message = f"{self._shown}: has read nothing for {_WRITE_TIMEOUT_S:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        except BrokenPipeError as error:
            raise await self._ended() from error

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
            message = f"{self._shown}: silent for {timeout_s:g} s{self._last_words()}"
            raise HostError(message, place=self._host) from None
        finally:
            channel.allow(0)
        if searched > LINE_LIMIT_BYTES:
            raise HostError(f"{self._shown}: a line of more than {LINE_LIMIT_BYTES} bytes", place=self._host)
        if not channel.stdout:
            if channel.status is None and channel.closed:
                raise await self._ended()
            return None
        return channel.take(searched + 1).decode(errors="replace").removesuffix("\n")

    async def read_some(self) -> bytes:
        channel = self._channel
        await channel.until(lambda: bool(channel.stdout) or channel.at_end)
        if not channel.stdout and channel.status is None and channel.closed:
            raise await self._ended()
        return channel.take(65536)

    async def close_stdin(self) -> None:
        self._channel.write_eof()

    async def wait(self, timeout_s: float | None = None) -> int:
        channel = self._channel
        try:
            async with asyncio.timeout(timeout_s):
                await channel.until(lambda: channel.status is not None or channel.closed)
        except TimeoutError:
            raise HostError(f"{self._shown}: did not end within {timeout_s:g} s", place=self._host) from None
        if channel.status is None:
            raise await self._ended()
        if not self._released:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await channel.until(lambda: channel.at_end)
            if not channel.at_end:  # a child of its own has its pipes, and has lost its master
                await self._connection.signal(self._pid, signal.SIGKILL)
            self._release()
        if channel.status == -signal.SIGKILL and self._connection.lost is not None:  # it did not end by itself
            raise self._connection.failure()
        return channel.status

    async def signal(self, number: int) -> None:
        # What a process started may outlive it, and still be there to be killed.
        if not self._released and (self._channel.status is None or number == signal.SIGKILL):
            await self._connection.signal(self._pid, number)

    def stderr_tail(self) -> str:
        return bytes(self._channel.stderr).decode(errors="replace")[-_STDERR_CHARACTERS:].strip()

    def _release(self) -> None:
        """Output that was not read yet stays with the channel."""
        if not self._released:
            self._released = True
            self._connection.release(self._channel)

    async def _ended(self) -> HostError:
        """How it ended, as far as that is known by now; the connection's own end where it went with that."""
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
        return HostError(f"{self._shown}: {how}{self._last_words()}", place=self._host)

    def _last_words(self) -> str:
        tail = self.stderr_tail()
        return f"; its last words: {tail[-2000:]}" if tail else ""
