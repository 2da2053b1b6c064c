"""One command on a connection that carries many: its channel, and its process with pipes (``hosts.base.Process``)."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from nicbench.core.errors import HostError
from nicbench.hosts.base import (
    CHUNK_BYTES,
    COPY_TIMEOUT_S,
    OUTPUT_LIMIT_BYTES,
    Completed,
    Host,
    Process,
    receiving_script,
    storing_at,
    whole_file,
)
from nicbench.hosts.kinds.local import LINE_LIMIT_BYTES
from nicbench.hosts.owner import MARK, owner_mark

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
        """Frees the place of a command whose output is not needed any more."""

    def failure(self) -> HostError:
        """Returns the error that says how the connection was lost."""


class Channel(ABC):
    """The bytes of one command as they arrive, within bounds, and its exit status.

    ``stdout`` and the end of ``stderr`` hold what has not been taken yet; ``status`` stays None until the command
    ended.
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


# Base of hosts whose commands go over a connection that carries many: another machine, or a guest.


class ChannelHost(Host):
    """A host that runs, reads and writes by commands over a ``Connection``."""

    @abstractmethod
    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[Connection, Channel, int]:
        """Starts a command; returns its connection, channel and pid. NotReadyError where it is missing; HostError."""

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        async with self._run_channel(command, _marked(environment), timeout_s) as (connection, channel):
            channel.allow(OUTPUT_LIMIT_BYTES)
            feeding = asyncio.create_task(_feed(channel, input_text))
            try:
                await channel.until(lambda: channel.at_end or len(channel.stdout) > OUTPUT_LIMIT_BYTES)
                if len(channel.stdout) > OUTPUT_LIMIT_BYTES:
                    message = f"{_shorten(command)}: more than {OUTPUT_LIMIT_BYTES} bytes of output; it was killed"
                    raise HostError(message, place=self.name)
                await _wait_for_status(connection, channel)
            finally:
                feeding.cancel()
                await asyncio.wait((feeding,))
        done = _read_completed(command, channel)
        if check and done.status != 0:
            raise _make_error(done, self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        connection, channel, pid = await self._start(command, _marked(environment))
        return ChannelProcess(channel, pid, connection, _shorten(command), self.name)

    async def read_file(self, path: str) -> str | None:
        done = await self.run(("cat", "--", path), check=False)
        if done.status == 0:
            return done.stdout
        if done.stderr.rstrip().endswith(("No such file or directory", "Not a directory")):
            return None
        raise HostError(f"cannot read {path}: {done.reason}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        # tee, because it names the kernel's reason and needs no shell quoting.
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            raise HostError(f"cannot write {text.strip()!r} to {path}: {done.reason}", place=self.name)

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        # By a command and not by sftp, which an sshd need not offer; and a command ends with the lease.
        content = await asyncio.to_thread(whole_file, local)
        command = ("sh", "-c", receiving_script(), "put", remote, f"{mode:o}", str(len(content)))
        async with self._run_channel(command, None, COPY_TIMEOUT_S) as (connection, channel):
            with contextlib.suppress(BrokenPipeError):
                for start in range(0, len(content), CHUNK_BYTES):
                    await channel.write(content[start : start + CHUNK_BYTES])
                channel.write_eof()
            await channel.until(lambda: channel.at_end)
            await _wait_for_status(connection, channel)
        done = _read_completed(command, channel)
        if done.status != 0:
            raise HostError(f"cannot copy {local} to {remote}: {done.reason}", place=self.name)

    async def get(self, remote: str, local: Path) -> None:
        command = ("cat", "--", remote)
        async with self._run_channel(command, None, COPY_TIMEOUT_S) as (connection, channel):
            channel.write_eof()
            with storing_at(local) as stream:
                while True:
                    await channel.until(lambda: channel.at_end or bool(channel.stdout))
                    if not channel.stdout:
                        break
                    await asyncio.to_thread(stream.write, channel.take(len(channel.stdout)))
                await _wait_for_status(connection, channel)
                if channel.status != 0:
                    raise HostError(
                        f"cannot copy {remote}: {_read_completed(command, channel).reason}", place=self.name
                    )

    @contextlib.asynccontextmanager
    async def _run_channel(
        self, command: Sequence[str], environment: Mapping[str, str] | None, timeout_s: float
    ) -> AsyncIterator[tuple[Connection, Channel]]:
        """Runs a command while the caller handles its channel; kills it, with its children, if the caller fails."""
        started: tuple[Connection, Channel, int] | None = None
        ended = False
        try:
            async with asyncio.timeout(timeout_s):
                started = await self._start(command, environment)
                yield started[:2]
                ended = True
        except TimeoutError:
            message = f"{_shorten(command)}: did not end within {timeout_s:g} s and was killed"
            raise HostError(message, place=self.name) from None
        finally:
            if started is not None:
                connection, channel, pid = started
                if not ended and connection.lost is None:
                    await asyncio.shield(connection.signal(pid, signal.SIGKILL))
                connection.release(channel)


def _marked(environment: Mapping[str, str] | None) -> dict[str, str]:
    return {**(environment or {}), MARK: owner_mark()}


async def _feed(channel: Channel, text: str | None) -> None:
    # A command may end without reading everything; its exit status says whether that matters.
    with contextlib.suppress(BrokenPipeError):
        if text:
            await channel.write(text.encode())
        channel.write_eof()


async def _wait_for_status(connection: Connection, channel: Channel) -> None:
    """Waits for the exit status. HostError where the connection failed first."""
    await channel.until(lambda: channel.status is not None or channel.closed)
    if channel.status is None:
        raise connection.failure()


def _read_completed(command: Sequence[str], channel: Channel) -> Completed:
    stdout, stderr = (bytes(each).decode(errors="replace") for each in (channel.stdout, channel.stderr))
    return Completed(tuple(command), channel.status or 0, stdout, stderr)


def _make_error(done: Completed, host: str) -> HostError:
    reason = done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:] or "no message"
    return HostError(f"{_shorten(done.command)}: exit status {done.status}: {reason}", place=host)


def _shorten(command: Sequence[str]) -> str:
    """Joins a command for a message, cut to 200 characters."""
    text = shlex.join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
