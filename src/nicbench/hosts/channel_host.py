"""Base of hosts whose commands go over a connection that carries many: another machine, or a guest."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from nicbench.core.errors import HostError
from nicbench.hosts.base import OUTPUT_LIMIT_BYTES, Completed, Host, Process
from nicbench.hosts.channel import Channel, ChannelProcess, Connection
from nicbench.hosts.copying import CHUNK_BYTES, COPY_TIMEOUT_S, receiving_script, storing_at, whole_file
from nicbench.hosts.owner import MARK, owner_mark


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
        raise HostError(f"cannot read {path}: {_reason(done)}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        # tee, because it names the kernel's reason and needs no shell quoting.
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            raise HostError(f"cannot write {text.strip()!r} to {path}: {_reason(done)}", place=self.name)

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
            raise HostError(f"cannot copy {local} to {remote}: {_reason(done)}", place=self.name)

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
                        f"cannot copy {remote}: {_reason(_read_completed(command, channel))}", place=self.name
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


def _reason(done: Completed) -> str:
    """Returns the last line of stderr, where tools write the reason."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


def _shorten(command: Sequence[str]) -> str:
    """Joins a command for a message, cut to 200 characters."""
    text = shlex.join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
