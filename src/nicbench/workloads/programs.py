"""What a machine has: which tool in which version, and whether processes can be placed where they shall run.

Each is asked once for each machine, and remembered for the run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.model.round import Ask, Placement
from nicbench.workloads.base import Command, Workload, last_words

_TIMEOUT_S = 20.0


Finder = Callable[[Host, str], Awaitable[str]]
"""The path, on a host, of a program of nicbench, which it puts there where it is not."""


class Programs:
    """Remembers what was found out; make one for a run, and give it to every round."""

    def __init__(self, own: Finder | None = None) -> None:
        self._own = own
        self._versions: dict[tuple[str, Command], str | None] = {}
        self._placements: dict[tuple[str, Placement], str | None] = {}
        self._asking: dict[object, asyncio.Lock] = {}

    async def version(self, host: Host, workload: Workload, ask: Ask) -> str | None:
        """The version of the tool on the host, None where it does not say; NotReadyError where there is none."""
        command = workload.version_command(ask)
        key = (_machine(host), command)
        async with self._one_asks(key):
            if key not in self._versions:
                if workload.is_ours:
                    command = await self.located(host, workload, command)
                else:
                    await _need(host, workload.program(ask), workload.package)
                done = await host.run(command, check=False, timeout_s=_TIMEOUT_S, environment=workload.environment)
                self._versions[key] = workload.parse_version(f"{done.stdout}\n{done.stderr}")
        return self._versions[key]

    async def located(self, host: Host, workload: Workload, command: Command) -> Command:
        """The command with the path of its program, where that is one of nicbench's own."""
        if not workload.is_ours or self._own is None:
            return command
        return (await self._own(host, command[0]), *command[1:])

    async def cannot_place(self, host: Host, placement: Placement) -> str | None:
        """Why processes cannot be placed so there, in words; None where they can. It is tried."""
        key = (_machine(host), placement)
        async with self._one_asks(key):
            if key not in self._placements:
                self._placements[key] = await _try(host, placement)
        return self._placements[key]

    def _one_asks(self, key: object) -> asyncio.Lock:
        """Jobs of a round want to know the same at the same time: the first asks, the others wait."""
        return self._asking.setdefault(key, asyncio.Lock())


def placed(command: Command, placement: Placement) -> Command:
    """The command as it is to be run: on these CPUs, with memory of this node."""
    return (*_cpus(placement), *_memory(placement), *command)


def _cpus(placement: Placement) -> Command:
    return () if placement.cpus is None else ("taskset", "-c", ",".join(str(cpu) for cpu in placement.cpus))


def _memory(placement: Placement) -> Command:
    return () if placement.memory_node is None else ("numactl", f"--membind={placement.memory_node}")


async def _try(host: Host, placement: Placement) -> str | None:
    """A CPU that is offline or not ours is left out by the kernel without a word, so what came of it is read back."""
    if placement.cpus is not None:
        await _need(host, "taskset", "util-linux")
        said = await _said(host, (*_cpus(placement), "sed", "-n", "s/^Cpus_allowed_list:[[:space:]]*//p", _STATUS))
        if said is None or _numbers(said) != set(placement.cpus):
            wanted = ",".join(str(cpu) for cpu in placement.cpus)
            return f"its processes cannot be kept on the CPUs {wanted}: the kernel allows {said or 'none of them'}"
    if placement.memory_node is not None:
        await _need(host, "numactl", "numactl")
        said = await _said(host, (*_memory(placement), "numactl", "--show"))
        bound = [line for line in (said or "").splitlines() if line.startswith("membind:")]
        if not bound or bound[0].split()[1:] != [str(placement.memory_node)]:
            return f"its processes cannot be given memory of node {placement.memory_node}: {said or 'refused'}"
    return None


_STATUS = "/proc/self/status"


async def _said(host: Host, command: Sequence[str]) -> str | None:
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
    """Network namespaces of a machine have the same programs and processors; a container has its own."""
    while isinstance(host, NetnsHost):
        host = host.inner
    return json.dumps(host.spec(), sort_keys=True, default=str)


def _numbers(text: str) -> set[int]:
    """``0-3,8`` as numbers."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return set()
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
