"""Finds out a tool's version and environment on a machine, and whether processes can be placed on CPUs and memory.

Each is found out once per machine and cached for the run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.redaction import hide_secrets
from nicbench.core.round import JobSpec, Placement, ToolEnvironment
from nicbench.hosts.base import Host
from nicbench.hosts.containers import BEGIN_VARIABLE
from nicbench.hosts.containers import MARK as COMMAND_MARK
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.owner import MARK as OWNER_MARK
from nicbench.workloads.base import Command, Workload, clean, last_words

_TIMEOUT_S = 20.0
_STATUS = "/proc/self/status"
# By these nicbench finds its processes: they differ each time, and no tool knows them. The shell sets the last.
_OUR_MARKS = frozenset({OWNER_MARK, COMMAND_MARK, BEGIN_VARIABLE, "_"})

Finder = Callable[[Host, str], Awaitable[str]]
"""Returns the path of a nicbench program on a host, and copies the program there if it is missing."""


class Programs:
    """Caches versions and placements; a run makes one and passes it to every round."""

    def __init__(self, own: Finder | None = None) -> None:
        self._own = own
        self._versions: dict[tuple[str, Command], str | None] = {}
        self._placements: dict[tuple[str, Placement], str | None] = {}
        self._environments: dict[tuple[str, str, str], dict[str, str]] = {}
        self._asking: dict[object, asyncio.Lock] = {}

    async def version(self, host: Host, workload: Workload, ask: JobSpec) -> str | None:
        """Returns the tool's version on the host, None where it prints none. NotReadyError where it is missing."""
        command = workload.version_command(ask)
        key = (_machine(host), command)
        async with self._one_asks(key):
            if key not in self._versions:
                if workload.is_ours:
                    command = await self.locate(host, workload, command)
                else:
                    await _need(host, workload.program(ask), workload.package)
                done = await host.run(command, check=False, timeout_s=_TIMEOUT_S, environment=workload.environment)
                self._versions[key] = workload.parse_version(f"{done.stdout}\n{done.stderr}")
        return self._versions[key]

    async def require_somewhere(self, hosts: Iterable[Host], workload: Workload, ask: JobSpec) -> None:
        """Raises NotReadyError where none of the machines of these hosts has the tool, so that no job could run."""
        if workload.is_ours:
            return
        missing = None
        for host in {_machine(host): host for host in hosts}.values():
            try:
                await self.version(host, workload, ask)
            except NotReadyError as error:
                missing = missing or error
            else:
                return
        if missing is not None:
            raise missing

    async def learn_environment(self, host: Host, workload: Workload) -> None:
        """Finds out, once, what environment the tool's processes get on the host: that of any command there.

        Nothing is known where the host has no ``env``; the tool runs all the same.
        """
        key = (_machine(host), host.name, workload.kind)
        async with self._one_asks(key):
            if key in self._environments:
                return
            try:
                done = await host.run(
                    ("env", "-0"), check=False, timeout_s=_TIMEOUT_S, environment=workload.environment
                )
            except NicbenchError:
                self._environments[key] = {}
            else:
                self._environments[key] = parse_environment(done.stdout) if done.status == 0 else {}

    def environments(self, workloads: Collection[str]) -> tuple[ToolEnvironment, ...]:
        """Returns what is known of these tools, those hosts together that have the same."""
        found: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
        for (_, host, workload), variables in self._environments.items():
            if workload in workloads and variables:
                found.setdefault((workload, tuple(variables.items())), []).append(host)
        return tuple(
            ToolEnvironment(workload=workload, hosts=tuple(sorted(hosts)), variables=dict(variables))
            for (workload, variables), hosts in found.items()
        )

    async def locate(self, host: Host, workload: Workload, command: Command) -> Command:
        """Replaces the program of a command by its path on the host, if it is one of nicbench's own."""
        if not workload.is_ours or self._own is None:
            return command
        return (await self._own(host, command[0]), *command[1:])

    async def cannot_place(self, host: Host, placement: Placement) -> str | None:
        """Tries a placement on the host; returns why processes cannot be placed so, None where they can."""
        key = (_machine(host), placement)
        async with self._one_asks(key):
            if key not in self._placements:
                self._placements[key] = await _try(host, placement)
        return self._placements[key]

    def _one_asks(self, key: object) -> asyncio.Lock:
        """Returns the lock of a question: jobs of a round ask the same at the same time, so the others wait."""
        return self._asking.setdefault(key, asyncio.Lock())


def parse_environment(text: str) -> dict[str, str]:
    """Parses what ``env -0`` prints, by name: without our own marks, with nothing that looks like a secret."""
    variables = dict(part.split("=", 1) for part in text.split("\0") if "=" in part)
    shown = {name: clean(variables[name]) for name in sorted(variables) if name not in _OUR_MARKS}
    return hide_secrets(shown)


def place(command: Command, placement: Placement) -> Command:
    """Prefixes a command so that it runs on the CPUs and with the memory node of its placement."""
    return (*_cpu_prefix(placement), *_memory_prefix(placement), *command)


def _cpu_prefix(placement: Placement) -> Command:
    return () if placement.cpus is None else ("taskset", "-c", ",".join(str(cpu) for cpu in placement.cpus))


def _memory_prefix(placement: Placement) -> Command:
    return () if placement.memory_node is None else ("numactl", f"--membind={placement.memory_node}")


async def _try(host: Host, placement: Placement) -> str | None:
    """Tries a placement and reads it back, because the kernel silently ignores CPUs that are offline or not allowed."""
    if placement.cpus is not None:
        await _need(host, "taskset", "util-linux")
        script = "s/^Cpus_allowed_list:[[:space:]]*//p"
        allowed = await _read_output(host, (*_cpu_prefix(placement), "sed", "-n", script, _STATUS))
        if allowed is None or _parse_numbers(allowed) != set(placement.cpus):
            wanted = ",".join(str(cpu) for cpu in placement.cpus)
            return f"its processes cannot be kept on the CPUs {wanted}: the kernel allows {allowed or 'none of them'}"
    if placement.memory_node is not None:
        await _need(host, "numactl", "numactl")
        policy = await _read_output(host, (*_memory_prefix(placement), "numactl", "--show"))
        bound = [line for line in (policy or "").splitlines() if line.startswith("membind:")]
        if not bound or bound[0].split()[1:] != [str(placement.memory_node)]:
            return f"its processes cannot be given memory of node {placement.memory_node}: {policy or 'refused'}"
    return None


async def _read_output(host: Host, command: Sequence[str]) -> str | None:
    done = await host.run(command, check=False, timeout_s=_TIMEOUT_S)
    return done.stdout.strip() if done.status == 0 else None


async def _need(host: Host, program: str, package: str) -> None:
    try:
        done = await host.run(("sh", "-c", 'command -v -- "$1"', "sh", program), check=False, timeout_s=_TIMEOUT_S)
    except NotReadyError:
        raise
    except HostError as error:
        raise HostError(f"{program} cannot be looked for: {last_words(str(error))}", place=host.name) from error
    if done.status != 0:
        raise NotReadyError(
            f"{program} is not installed there",
            place=host.name,
            next_step=f"install it on that machine: apt-get install {package}",
        )


def _machine(host: Host) -> str:
    """Returns a key for a machine: its network namespaces share programs and CPUs; a container has its own."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return json.dumps(host.spec(), sort_keys=True, default=str)


def _parse_numbers(text: str) -> set[int]:
    """Parses a list like ``0-3,8``; empty where it is invalid."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return set()
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
