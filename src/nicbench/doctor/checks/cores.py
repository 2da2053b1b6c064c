"""Cores and their roles: which would send and receive, which would forward, which are left for everything else."""

from __future__ import annotations

from nicbench.core.machine import cpu_list
from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.testbed.cores import CoreMap, make_core_map


class Cores(Examination):
    """From the CPUs that this process may use, and which of them are hyperthreads of one physical core."""

    kind = "cores"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        return (judge(await make_core_map(host)),)


def judge(cores: CoreMap) -> Check:
    """The map that a lab on this machine would use."""
    name = "cores"
    roles = f"tester on CPU {cores.worker}, DUT on {cpu_list(cores.dut)}, everything else on "
    if cores.shared:
        return warning(name, f"one CPU only: {roles}the same; runs are labelled `shared cores`")
    rest = cpu_list(cores.housekeeping) if cores.housekeeping else "both: the controller sleeps during a trial"
    if halved := cores.halved_cores([] if cores.worker is None else [cores.worker], cores.dut):
        text = f"{roles}{rest}; CPUs {cpu_list(halved[0])} are hyperthreads of one physical core"
        return warning(name, f"{text}, so tester and DUT slow each other down; runs are labelled `shared cores`")
    return ok(name, f"{roles}{rest}")
