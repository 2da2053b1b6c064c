"""Another machine, by ssh: keys and agent, host keys always checked, jump hosts; nothing there survives the controller.

It needs a shell and util-linux there, no Python. What ends its processes when nobody hears of nicbench any more is in
``_ssh_scripts``.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicbench.errors import HostError
from nicbench.hosts._copying import CHUNK_BYTES, COPY_TIMEOUT_S, receiving_script, storing_at, whole_file
from nicbench.hosts._ssh_options import SshOptions
from nicbench.hosts._ssh_pool import Machine, machine
from nicbench.hosts.base import OUTPUT_LIMIT_BYTES, Completed, Host, Presence, Process

if TYPE_CHECKING:
    from nicbench.hosts._ssh_channel import Channel
    from nicbench.hosts._ssh_lease import LeasedConnection


class SshHost(Host):
    """Runs commands on another machine; all its commands share one connection (several, beyond eight at once)."""

    kind = "ssh"
    Options = SshOptions

    def __init__(self, options: SshOptions, name: str | None = None) -> None:
        self.options = options
        self.name = name or options.address

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]) -> SshHost:
        return cls(SshOptions.model_validate({key: value for key, value in spec.items() if key != "kind"}), name)

    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.options.model_dump(mode="json", exclude_defaults=True)}

    async def close(self) -> None:
        # Its end would be the sign to put the host's settings back: then it stays until the undo was done over it.
        if not self._machine.held:
            await self._machine.close()

    async def reconnect(self) -> None:
        await self._machine.reconnect(self.name)

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        async with self._running(command, environment, timeout_s) as (connection, channel):
            channel.allow(OUTPUT_LIMIT_BYTES)
            feeding = asyncio.create_task(_feed(channel, input_text))
            try:
                await channel.until(lambda: channel.at_end or len(channel.stdout) > OUTPUT_LIMIT_BYTES)
                if len(channel.stdout) > OUTPUT_LIMIT_BYTES:
                    message = f"{_shown(command)}: more than {OUTPUT_LIMIT_BYTES} bytes of output; it was killed"
                    raise HostError(message, place=self.name)
                await _ended(connection, channel)
            finally:
                feeding.cancel()
                await asyncio.wait((feeding,))
        done = _completed(command, channel)
        if check and done.status != 0:
            raise _failed(done, self.name)
        return done

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        from nicbench.hosts._ssh_process import SshProcess  # as in _ssh_pool

        connection, channel, pid = await self._start(command, environment)
        return SshProcess(channel, pid, connection, _shown(command), self.name)

    async def when_unheard(self, script: str) -> Presence:
        keeper = (await self._machine.with_room(self.name)).keeper
        self._machine.held = True
        await self.write_file(f"{keeper.folder}/guard", f"sh {shlex.quote(script)}\n")
        return Presence(keeper.pid, keeper.start_ticks, keeper.boot_id)

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
        # Over a command of its own rather than sftp, which an sshd need not have; it ends with the lease as well.
        content = await asyncio.to_thread(whole_file, local)
        command = ("sh", "-c", receiving_script(), "put", remote, f"{mode:o}", str(len(content)))
        async with self._running(command, None, COPY_TIMEOUT_S) as (connection, channel):
            with contextlib.suppress(BrokenPipeError):
                for start in range(0, len(content), CHUNK_BYTES):
                    await channel.write(content[start : start + CHUNK_BYTES])
                channel.write_eof()
            await channel.until(lambda: channel.at_end)
            await _ended(connection, channel)
        done = _completed(command, channel)
        if done.status != 0:
            raise HostError(f"cannot copy {local} to {remote}: {_reason(done)}", place=self.name)

    async def get(self, remote: str, local: Path) -> None:
        command = ("cat", "--", remote)
        async with self._running(command, None, COPY_TIMEOUT_S) as (connection, channel):
            channel.write_eof()
            with storing_at(local) as stream:
                while True:
                    await channel.until(lambda: channel.at_end or bool(channel.stdout))
                    if not channel.stdout:
                        break
                    await asyncio.to_thread(stream.write, channel.take(len(channel.stdout)))
                await _ended(connection, channel)
                if channel.status != 0:
                    raise HostError(f"cannot copy {remote}: {_reason(_completed(command, channel))}", place=self.name)

    @property
    def _machine(self) -> Machine:
        return machine(self.options)

    async def _start(
        self, command: Sequence[str], environment: Mapping[str, str] | None
    ) -> tuple[LeasedConnection, Channel, int]:
        from nicbench.hosts._ssh_lease import FullError  # as in _ssh_pool

        while True:
            connection = await self._machine.with_room(self.name)
            with contextlib.suppress(FullError):
                return connection, *await connection.start(command, environment)

    @contextlib.asynccontextmanager
    async def _running(
        self, command: Sequence[str], environment: Mapping[str, str] | None, timeout_s: float
    ) -> AsyncIterator[tuple[LeasedConnection, Channel]]:
        """The command while the caller handles it; killed with what it started where that did not go to its end."""
        started: tuple[LeasedConnection, Channel, int] | None = None
        ended = False
        try:
            async with asyncio.timeout(timeout_s):
                started = await self._start(command, environment)
                yield started[:2]
                ended = True
        except TimeoutError:
            message = f"{_shown(command)}: did not end within {timeout_s:g} s and was killed"
            raise HostError(message, place=self.name) from None
        finally:
            if started is not None:
                connection, channel, pid = started
                if not ended and connection.lost is None:
                    await asyncio.shield(connection.signal(pid, signal.SIGKILL))
                connection.release(channel)


async def _feed(channel: Channel, text: str | None) -> None:
    # A command may end without reading everything; its exit status tells.
    with contextlib.suppress(BrokenPipeError):
        if text:
            await channel.write(text.encode())
        channel.write_eof()


async def _ended(connection: LeasedConnection, channel: Channel) -> None:
    """Waits for the exit status; the connection's own failure where that came first."""
    await channel.until(lambda: channel.status is not None or channel.closed)
    if channel.status is None:
        raise connection.failure()


def _completed(command: Sequence[str], channel: Channel) -> Completed:
    stdout, stderr = (bytes(each).decode(errors="replace") for each in (channel.stdout, channel.stderr))
    return Completed(tuple(command), channel.status or 0, stdout, stderr)


def _failed(done: Completed, host: str) -> HostError:
    reason = done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:] or "no message"
    return HostError(f"{_shown(done.command)}: exit status {done.status}: {reason}", place=host)


def _reason(done: Completed) -> str:
    """The last line of stderr, where the tools put it."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


def _shown(command: Sequence[str]) -> str:
    """The command for a message, cut short."""
    text = shlex.join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
