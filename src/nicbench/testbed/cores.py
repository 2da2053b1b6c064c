"""Which CPUs of the tester's machine do what: one for the tester, one for the DUT, the rest for everything else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from nicbench.core.errors import UnknownFactError
from nicbench.core.frozen import frozen
from nicbench.core.machine import parse_cpu_list
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host

_ALLOWED: Final = re.compile(r"^Cpus_allowed_list:\s*(\S+)", re.MULTILINE)
# `core_cpus_list` since Linux 5.3; both are there.
_THREADS: Final = "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list"

PhysicalCores = tuple[tuple[int, ...], ...]
"""The CPUs of each physical core that has several, its hyperthreads. Any other CPU is a core of its own."""


@frozen
class CoreMap:
    """Which CPUs do what. With ``shared`` tester and DUT share one, which the report says.

    ``physical_cores`` are those of the machine; none of them where tester and DUT are on two machines.
    """

    worker: int | None
    dut: tuple[int, ...]
    housekeeping: tuple[int, ...]
    shared: bool
    physical_cores: PhysicalCores = ()

    def halved_cores(self, tester: Iterable[int], dut: Iterable[int]) -> PhysicalCores:
        """Of each physical core that both use by different hyperthreads, the CPUs that they use: they slow each other
        down, although each has a CPU of its own.
        """
        tester, dut = set(tester), set(dut)
        used = ((set(core) & tester, set(core) & dut) for core in self.physical_cores)
        return tuple(
            tuple(sorted(ours | theirs)) for ours, theirs in used if ours and theirs and len(ours | theirs) > 1
        )


def cpus_of_status(text: str) -> tuple[int, ...]:
    """The CPUs that a process may use, from the text of /proc/PID/status."""
    found = _ALLOWED.search(text)
    return parse_cpu_list(found[1]) if found else (0,)


def physical_cores_of(lists: Iterable[str]) -> PhysicalCores:
    """The physical cores with several CPUs, from the texts of ``thread_siblings_list`` of all CPUs."""
    cores = {tuple(sorted(parse_cpu_list(text))) for text in lists}
    return tuple(sorted(core for core in cores if len(core) > 1))


def order_by_core(cpus: tuple[int, ...], physical_cores: PhysicalCores) -> tuple[int, ...]:
    """In the order of their roles: one of each physical core first, the second hyperthread of the first core last."""
    core_of = {cpu: core for core in physical_cores for cpu in core}
    cores = [core_of.get(cpu, (cpu,)) for cpu in cpus]
    turns = [cores[:place].count(core) for place, core in enumerate(cores)]
    places = sorted(range(len(cpus)), key=lambda place: (turns[place] > 0 and cores[place] == cores[0], turns[place]))
    return tuple(cpus[place] for place in places)


def core_map(cpus: tuple[int, ...], physical_cores: PhysicalCores = (), *, dut_apart: bool) -> CoreMap:
    """The first CPU is the worker's, the first of another physical core the DUT's; the rest is for housekeeping.

    Where there is one physical core, the DUT has its other hyperthread. With a single CPU, or ``dut_apart`` false, the
    DUT runs in softirq on the worker's CPU: they share it. With an empty ``housekeeping`` the controller has no CPU of
    its own either; it sleeps during a trial.
    """
    worker, *others = order_by_core(cpus, physical_cores)
    if others and dut_apart:
        return CoreMap(worker, (others[0],), tuple(others[1:]), shared=False, physical_cores=physical_cores)
    return CoreMap(worker, (worker,), tuple(others), shared=True, physical_cores=physical_cores)


async def make_core_map(host: Host, *, dut_apart: bool = True) -> CoreMap:
    """The map of the CPUs that a process of nicbench may use on this host."""
    return core_map(await usable_cpus(host), await physical_cores(host), dut_apart=dut_apart)


async def usable_cpus(host: Host) -> tuple[int, ...]:
    """The CPUs that a process of nicbench may use on this host."""
    return cpus_of_status(await host.read_file("/proc/self/status") or "")


async def physical_cores(host: Host) -> PhysicalCores:
    """Those of the host's machine; none where the kernel does not say which CPUs are hyperthreads."""
    try:
        return physical_cores_of((await values_of(host, (_THREADS,))).values())
    except UnknownFactError:
        return ()
