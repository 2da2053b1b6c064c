"""Cores and their roles: which would send and receive, which would forward, which are left for everything else."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.testbed.labs.base import core_map, cpus_of_status


class Cores(Examination):
    """From the CPUs that this process may use."""

    kind = "cores"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge(cpus_of_status(await host.read_file("/proc/self/status") or "")),)


def judge(cpus: tuple[int, ...]) -> Check:
    """The map that a lab on this machine would use."""
    name = "cores"
    cores = core_map(cpus, dut_apart=True)
    roles = f"tester on CPU {cores.worker}, DUT on {_list_text(cores.dut)}, everything else on "
    if cores.shared:
        return warning(name, f"one CPU only: {roles}the same; runs are labelled `shared cores`")
    if not cores.housekeeping:
        return ok(name, f"{roles}both: the controller sleeps during a trial")
    return ok(name, f"{roles}{_list_text(cores.housekeeping)}")


def _list_text(cpus: tuple[int, ...]) -> str:
    return ", ".join(str(cpu) for cpu in cpus)
