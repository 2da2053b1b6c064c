"""The hypervisor: how much of the CPUs' time it has taken away since the start of this machine."""

from __future__ import annotations

from nicbench.doctor.base import Check, Examination, ok, warning
from nicbench.hosts.base import Host
from nicbench.system.hypervisor import is_virtual_machine

_STEAL = 7  # proc(5), /proc/stat: user nice system idle iowait irq softirq steal
# Above this share, trials on this machine are often disturbed.
_WORTH_A_WARNING = 0.01


class Hypervisor(Examination):
    """From ``/proc/stat``, and what the processor or systemd says."""

    kind = "hypervisor"

    async def examine(self, host: Host) -> tuple[Check, ...]:
        virtual = await is_virtual_machine(host)
        return (judge(virtual, steal_share(await host.read_file("/proc/stat") or "")),)


def steal_share(stat: str) -> float | None:
    """Share of stolen time in all of the CPUs' time since the start, None where the kernel does not count it."""
    total = next((line.split()[1:] for line in stat.splitlines() if line.startswith("cpu ")), [])
    # The guest columns after steal are already in user and nice.
    times = [int(value) for value in total[: _STEAL + 1]]
    if len(times) <= _STEAL or not any(times):
        return None
    return times[_STEAL] / sum(times)


def judge(virtual: bool | None, steal: float | None) -> Check:
    """A virtual machine measures its host as well."""
    name = "hypervisor"
    if virtual is False:
        return ok(name, "none: this is no virtual machine")
    stolen = "an unknown share" if steal is None else f"{100 * steal:.2f} %"
    what = "this is a virtual machine" if virtual else "whether this is a virtual machine is not known here"
    text = f"{what}; {stolen} of its CPU time has been taken away since it started"
    if steal is not None and steal > _WORTH_A_WARNING:
        return warning(name, f"{text}: expect disturbed trials")
    return ok(name, text)
