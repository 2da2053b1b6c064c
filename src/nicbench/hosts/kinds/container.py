"""A container of podman or docker: commands run in it by the engine's ``exec``; it ends with the controller.

It starts when it is first needed. Its network is that of the host that it wraps (``network: host``), a namespace, or
none.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicbench.core.errors import HostError, NicbenchError, NotReadyError, UsageError
from nicbench.hosts.base import Completed, Host, Process, short_command
from nicbench.hosts.containers import (
    BOOT_LABEL,
    MARK,
    OWNER_LABEL,
    READY,
    Adaptation,
    ContainerProcess,
    adaptation_for,
    clean_errors,
    engine_command,
    exec_prefix,
    kill_script,
    remove_left_containers,
    run_command,
    signal_script,
    start_error,
    status_of,
)
from nicbench.hosts.kinds.netns import NAMESPACE_FOLDER, NetnsHost
from nicbench.hosts.options import ContainerOptions
from nicbench.hosts.owner import this_process

_START_TIMEOUT_S = 120.0
_BEGIN_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 10.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ContainerHost(Host):
    """A container. ``inner`` is the host that the engine runs on, or a network namespace that the container joins."""

    kind = "container"
    Options = ContainerOptions
    stands_on = ("netns",)

    def __init__(self, inner: Host, options: ContainerOptions, name: str | None = None) -> None:
        self.inner = inner
        self.options = options
        self.name = name or self.kind
        self.adaptations: tuple[Adaptation, ...] = ()
        """What this machine needed beyond the plain command line to start it."""
        self._outside, self._network = _resolve_network(inner, options, self.name)
        self._first: Process | None = None
        self._container = ""
        self._starting = asyncio.Lock()

    @classmethod
    def of_spec(
        cls, spec: Mapping[str, Any], name: str | None, make: Callable[[Mapping[str, Any]], Host]
    ) -> ContainerHost:
        given = {key: value for key, value in spec.items() if key not in ("kind", "inner", "name")}
        return cls(make(spec.get("inner", {"kind": "local"})), ContainerOptions.model_validate(given), name)

    def spec(self) -> dict[str, Any]:
        chosen = self.options.model_dump(mode="json", exclude={"inner"}, exclude_defaults=True)
        return {"kind": self.kind, **chosen, "inner": self.inner.spec()}

    @property
    def machine(self) -> Host:
        return self.inner.machine

    @property
    def network(self) -> Host:
        """The host whose network it uses, where no privilege is missing; the container itself if it has its own."""
        path = self._network.removeprefix("ns:")
        if self._network == "host":
            return self._outside
        if path == self._network or not path.startswith(f"{NAMESPACE_FOLDER}/"):
            return self
        return NetnsHost(self._outside, path.removeprefix(f"{NAMESPACE_FOLDER}/"), self.name)

    async def run(
        self,
        command: Sequence[str],
        *,
        input_text: str | None = None,
        timeout_s: float = 30.0,
        check: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        await self._start()
        mark = secrets.token_hex(8)
        prefix = self._exec(mark, environment, has_input=input_text is not None)
        try:
            with clean_errors(prefix, self.name):
                done = await self._outside.run(
                    (*prefix, *command), input_text=input_text, timeout_s=timeout_s, check=False
                )
        except BaseException:
            # Killing the engine's client leaves the command running in the container: it is killed there.
            await asyncio.shield(self._kill(mark))
            raise
        first_line, _, stdout = done.stdout.partition("\n")
        self._check_started(command, first_line, done.stderr)
        completed = Completed(tuple(command), status_of(done.status), stdout, done.stderr)
        if check and completed.status != 0:
            reason = done.stderr.strip()[-2000:] or stdout.strip()[-2000:] or "no message"
            raise HostError(f"{short_command(command)}: exit status {completed.status}: {reason}", place=self.name)
        return completed

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        await self._start()
        mark = secrets.token_hex(8)
        prefix = self._exec(mark, environment, has_input=True)
        client = await self._outside.start((*prefix, *command))
        try:
            with clean_errors(prefix, self.name):
                first_line = await client.read_line(_BEGIN_TIMEOUT_S)
                if first_line is None or not first_line.isdigit():
                    await client.wait(_END_TIMEOUT_S)
            self._check_started(command, first_line or "", client.stderr_tail())
        except BaseException:
            await asyncio.shield(self._kill(mark))
            await client.signal(signal.SIGKILL)
            raise
        pid = int(first_line or 0)

        async def send(number: int) -> None:
            await (self._kill(mark) if number == signal.SIGKILL else self._inside(signal_script(pid, number)))

        return ContainerProcess(client, pid, send, lambda: clean_errors(prefix, self.name))

    async def read_file(self, path: str) -> str | None:
        done = await self.run(("cat", "--", path), check=False)
        if done.status == 0:
            return done.stdout
        if re.search(r"No such file or directory|Not a directory", done.stderr):
            return None
        raise HostError(f"cannot read {path}: {done.reason}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            step = "set it on the machine, or give the container `privileged: true`"
            read_only = "Read-only file system" in done.stderr
            raise HostError(
                f"cannot write {text.strip()!r} to {path}: {done.reason}",
                place=self.name,
                next_step=step if read_only else None,
            )

    @property
    def network_words(self) -> str:
        """The network that was given to the engine (``--network``)."""
        return self._network

    async def inspect(self, form: str) -> str:
        """Reads a property of the container from the engine by a Go template."""
        await self._start()
        shown = await self._outside.run((*self._engine, "inspect", f"--format={form}", self._container))
        return shown.stdout.strip()

    async def look_from_machine(self, script: str) -> str:
        """Runs a script on the machine that gets the pid there of the container's first process; "" where it fails."""
        pid = await self.inspect("{{.State.Pid}}")
        return (await self._outside.run(("sh", "-c", script, "look", pid), check=False)).stdout

    async def engine_version(self) -> str:
        """Reads the version of the engine's client."""
        shown = await self._outside.run((*self._engine, "version", "--format={{.Client.Version}}"))
        return shown.stdout.strip()

    async def reconnect(self) -> None:
        await self.inner.reconnect()

    async def close(self) -> None:
        """Ends the container and everything in it; later use starts it again."""
        first, self._first = self._first, None
        _RUNNING.discard(self)
        if first is None:
            return
        try:
            await first.close_stdin()
            await first.wait(_END_TIMEOUT_S)
        except HostError:
            await first.signal(signal.SIGKILL)
            await self._outside.run((*self._engine, "rm", "--force", self._container), check=False)

    @property
    def _engine(self) -> tuple[str, ...]:
        return engine_command(self.options, self.adaptations)

    async def _start(self) -> None:
        async with self._starting:
            if self._first is not None:
                return
            await remove_left_containers(self._outside, self._engine)
            owner = this_process()
            labels = {
                OWNER_LABEL: f"{owner.pid}:{owner.start_ticks}:{owner.boot_id}",
                BOOT_LABEL: (await self._outside.read_file(_BOOT_ID) or "").strip(),
            }
            while self._first is None:
                self._container = f"nicbench-{secrets.token_hex(6)}"
                command = run_command(self.options, self._container, self._network, labels, self.adaptations)
                self._first = await self._try_start(command)
            _RUNNING.add(self)

    async def _try_start(self, command: Sequence[str]) -> Process | None:
        """Starts the container; None where that failed but an adaptation was found that may help."""
        first = await self._outside.start(command)
        try:
            line = await first.read_line(_START_TIMEOUT_S)
            if line == READY:
                return first
            if line is None:
                await first.wait(_END_TIMEOUT_S)
            message = f"{line or ''}\n{first.stderr_tail()}"
        except BaseException:
            await first.signal(signal.SIGKILL)
            await asyncio.shield(self._remove())
            raise
        await self._remove()
        limits = await self._outside.read_file("/proc/self/limits")
        highest = await self._outside.read_file("/proc/sys/kernel/pid_max")
        adaptation = adaptation_for(self.options, message, limits or "", highest or "")
        if adaptation is None or adaptation in self.adaptations:
            raise start_error(self.options, message, self.name)
        self.adaptations = (*self.adaptations, adaptation)
        return None

    async def _remove(self) -> None:
        """Removes what a failed start may have left; mostly nothing."""
        with contextlib.suppress(NicbenchError):
            await self._outside.run((*self._engine, "rm", "--force", self._container), check=False)

    def _exec(self, mark: str, environment: Mapping[str, str] | None, *, has_input: bool) -> tuple[str, ...]:
        """Builds the words before a command; the first line of its output is its process id, or ``missing``."""
        variables = {"LC_ALL": "C", **(environment or {}), MARK: mark}
        return exec_prefix(self._engine, self._container, variables, has_input=has_input)

    def _check_started(self, command: Sequence[str], first_line: str, stderr: str) -> None:
        if first_line.isdigit():
            return
        if first_line == "missing":
            raise NotReadyError(
                f"{command[0]}: command not found",
                place=self.name,
                next_step=f"install it in {self.options.image or self.options.root}, the container's file system",
            )
        said = stderr.strip()[-2000:] or "no message"
        raise HostError(f"{short_command(command)}: {self.options.engine} could not run it: {said}", place=self.name)

    async def _kill(self, mark: str) -> None:
        await self._inside(kill_script(mark))

    async def _inside(self, script: str) -> None:
        """Runs a script in the container; nothing happens where the container has ended."""
        with contextlib.suppress(NicbenchError):
            await self._outside.run((*self._engine, "exec", self._container, "sh", "-c", script), check=False)


_RUNNING: set[ContainerHost] = set()
"""Containers that this process has started and must end."""


async def close_containers() -> None:
    """Ends every container that this process has started; the next start removes those where that fails."""
    await asyncio.gather(*(host.close() for host in tuple(_RUNNING)), return_exceptions=True)


def _resolve_network(inner: Host, options: ContainerOptions, name: str) -> tuple[Host, str]:
    """Returns the host that the engine runs on, and the network as the engine's ``--network`` takes it."""
    if not isinstance(inner, NetnsHost) or options.network != "host":
        return (inner.machine if isinstance(inner, NetnsHost) else inner), options.network
    if options.engine == "docker":
        raise UsageError(
            f"docker cannot join the namespace {inner.namespace}", place=name, next_step="use `engine: podman`"
        )
    return inner.machine, f"ns:{NAMESPACE_FOLDER}/{inner.namespace}"
