"""A container of podman or docker: commands run in it by the engine's ``exec``; it ends with the controller.

It is started when it is first needed. Its network is that of the host that it wraps (``network: host``), a namespace,
or none.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicbench.errors import HostError, NicbenchError, NotReadyError, UsageError
from nicbench.hosts._container_engine import (
    BOOT_LABEL,
    MARK,
    OWNER_LABEL,
    READY,
    Adaptation,
    adaptation_for,
    engine_command,
    exec_prefix,
    kill_script,
    run_command,
    signal_script,
    start_error,
    status_of,
)
from nicbench.hosts._container_options import ContainerOptions
from nicbench.hosts._container_process import ContainerProcess, reworded
from nicbench.hosts._containers_left import remove_left_containers
from nicbench.hosts.base import Completed, Host, Process
from nicbench.hosts.netns import NAMESPACE_FOLDER, NetnsHost
from nicbench.tuning.owner import this_process

_START_TIMEOUT_S = 120.0
_BEGIN_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 10.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ContainerHost(Host):
    """``inner`` is the host that the engine runs on; of a network namespace, the container joins it."""

    kind = "container"
    Options = ContainerOptions
    stands_on = ("netns",)

    def __init__(self, inner: Host, options: ContainerOptions, name: str | None = None) -> None:
        self.inner = inner
        self.options = options
        self.name = name or self.kind
        self.adaptations: tuple[Adaptation, ...] = ()
        """What this machine needed beyond the plain start."""
        self._outside, self._network = _joined(inner, options, self.name)
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
        """Outside, where no right is missing; the container itself where it has a network of its own."""
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
            with reworded(prefix, self.name):
                done = await self._outside.run(
                    (*prefix, *command), input_text=input_text, timeout_s=timeout_s, check=False
                )
        except BaseException:
            # The engine's client was killed: what it started in the container goes on until it is killed there.
            await asyncio.shield(self._kill(mark))
            raise
        begun, _, stdout = done.stdout.partition("\n")
        self._check_begun(command, begun, done.stderr)
        completed = Completed(tuple(command), status_of(done.status), stdout, done.stderr)
        if check and completed.status != 0:
            reason = done.stderr.strip()[-2000:] or stdout.strip()[-2000:] or "no message"
            raise HostError(f"{_shown(command)}: exit status {completed.status}: {reason}", place=self.name)
        return completed

    async def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Process:
        await self._start()
        mark = secrets.token_hex(8)
        prefix = self._exec(mark, environment, has_input=True)
        client = await self._outside.start((*prefix, *command))
        try:
            with reworded(prefix, self.name):
                begun = await client.read_line(_BEGIN_TIMEOUT_S)
                if begun is None or not begun.isdigit():
                    await client.wait(_END_TIMEOUT_S)
            self._check_begun(command, begun or "", client.stderr_tail())
        except BaseException:
            await asyncio.shield(self._kill(mark))
            await client.signal(signal.SIGKILL)
            raise
        pid = int(begun or 0)

        async def send(number: int) -> None:
            await (self._kill(mark) if number == signal.SIGKILL else self._inside(signal_script(pid, number)))

        return ContainerProcess(client, pid, send, lambda: reworded(prefix, self.name))

    async def read_file(self, path: str) -> str | None:
        done = await self.run(("cat", "--", path), check=False)
        if done.status == 0:
            return done.stdout
        if re.search(r"No such file or directory|Not a directory", done.stderr):
            return None
        raise HostError(f"cannot read {path}: {_reason(done)}", place=self.name)

    async def write_file(self, path: str, text: str) -> None:
        done = await self.run(("tee", "--", path), input_text=text, check=False)
        if done.status != 0:
            step = "set it on the machine, or give the container `privileged: true`"
            read_only = "Read-only file system" in done.stderr
            raise HostError(
                f"cannot write {text.strip()!r} to {path}: {_reason(done)}",
                place=self.name,
                next_step=step if read_only else None,
            )

    async def machine_pid(self, pid: int) -> int | None:
        """The number that the machine outside knows a process of the container by; None where there is none.

        For what looks from outside: the monitor, pinning, /proc of the machine.
        """
        first = await self.inspect("{{.State.Pid}}")
        # The last number of NSpid is the one in the innermost namespace (proc_pid_status(5)).
        script = (
            'space=$(readlink "/proc/$1/ns/pid"); '
            'for each in $(grep -lsE "^NSpid:.*[[:space:]]$2$" /proc/[0-9]*/status); do each=${each%/status}; '
            '[ "$(readlink "$each/ns/pid")" = "$space" ] && echo "${each#/proc/}"; done; true'
        )
        found = await self._outside.run(("sh", "-c", script, "sh", first, str(pid)))
        return int(found.stdout.split()[0]) if found.stdout.split() else None

    @property
    def network_words(self) -> str:
        """As the engine was told."""
        return self._network

    async def inspect(self, form: str) -> str:
        """What the engine says of the container, in a Go template's words."""
        await self._start()
        shown = await self._outside.run((*self._engine, "inspect", f"--format={form}", self._container))
        return shown.stdout.strip()

    async def engine_version(self) -> str:
        """As the engine tells it."""
        shown = await self._outside.run((*self._engine, "version", "--format={{.Client.Version}}"))
        return shown.stdout.strip()

    async def reconnect(self) -> None:
        await self.inner.reconnect()

    async def close(self) -> None:
        """Ends the container and everything in it; it is started again where it is needed again."""
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
                self._first = await self._started(command)
            _RUNNING.add(self)

    async def _started(self, command: Sequence[str]) -> Process | None:
        """None where it failed, and an adaptation was found that may help."""
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
        """What a start that failed may have left; mostly nothing."""
        with contextlib.suppress(NicbenchError):
            await self._outside.run((*self._engine, "rm", "--force", self._container), check=False)

    def _exec(self, mark: str, environment: Mapping[str, str] | None, *, has_input: bool) -> tuple[str, ...]:
        """What stands before a command; its first line of output is its process id, or ``missing``."""
        variables = {"LC_ALL": "C", **(environment or {}), MARK: mark}
        return exec_prefix(self._engine, self._container, variables, has_input=has_input)

    def _check_begun(self, command: Sequence[str], begun: str, stderr: str) -> None:
        if begun.isdigit():
            return
        if begun == "missing":
            raise NotReadyError(
                f"{command[0]}: command not found",
                place=self.name,
                next_step=f"install it in {self.options.image or self.options.root}, the container's file system",
            )
        said = stderr.strip()[-2000:] or "no message"
        raise HostError(f"{_shown(command)}: {self.options.engine} could not run it: {said}", place=self.name)

    async def _kill(self, mark: str) -> None:
        await self._inside(kill_script(mark))

    async def _inside(self, script: str) -> None:
        """A script in the container; nothing happens where the container has ended."""
        with contextlib.suppress(NicbenchError):
            await self._outside.run((*self._engine, "exec", self._container, "sh", "-c", script), check=False)


_RUNNING: set[ContainerHost] = set()
"""Those that are to be ended."""


async def close_containers() -> None:
    """Ends every container that this process has started. What fails is left to the next start to remove."""
    await asyncio.gather(*(host.close() for host in tuple(_RUNNING)), return_exceptions=True)


def _joined(inner: Host, options: ContainerOptions, name: str) -> tuple[Host, str]:
    """The host that the engine runs on, and the network in its words."""
    if not isinstance(inner, NetnsHost) or options.network != "host":
        return (inner.machine if isinstance(inner, NetnsHost) else inner), options.network
    if options.engine == "docker":
        raise UsageError(
            f"docker cannot join the namespace {inner.namespace}", place=name, next_step="use `engine: podman`"
        )
    return inner.machine, f"ns:{NAMESPACE_FOLDER}/{inner.namespace}"


def _reason(done: Completed) -> str:
    """The last line of stderr, where the tools put it."""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {done.status}"


def _shown(command: Sequence[str]) -> str:
    """The command for a message, cut short."""
    text = " ".join(command)
    return text if len(text) <= 200 else f"{text[:200]}..."
