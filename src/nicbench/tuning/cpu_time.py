"""The CPUs of a DUT work for it alone: they do not sleep, and the kernel's packet work goes before other programs.

A CPU that sleeps is slow to wake up, and a hypervisor gives its physical core away.
"""

from __future__ import annotations

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.owner import nice_of_stat, start_ticks_of_stat
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.restore_nice import RestoreNice

# CPUs that measure do not sleep. One that sleeps is slow to wake up, and a hypervisor gives its physical core away.
#
# A virtual CPU that sleeps between frames wakes up wherever the hypervisor has room, mostly beside a neighbour on the
# other hyperthread, which takes up to half of the core; one that is always busy gets a core of its own before long.
# Source: Documentation/ABI/testing/sysfs-devices-power, ``pm_qos_resume_latency_us``: "n/a" tolerates no latency at
# all,
# so that the CPU polls. It is of each CPU, so that idle hyperthreads beside the DUT's go on sleeping.


NEVER_SLEEPS = "n/a"
_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"


async def keep_awake(changes: Changes, host: Host, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """Those of these CPUs that do not sleep from now on; none where the kernel has no idle states to choose from."""
    driver = (await host.read_file(_DRIVER) or "").strip()
    if driver in ("", "none"):
        return ()
    awake = []
    for cpu in cpus:
        try:
            path = f"/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"
            await changes.set_file(host, path, NEVER_SLEEPS)
        except HostError:
            continue  # not allowed here: it sleeps as it does anyway, and what that does to its core is watched
        awake.append(cpu)
    return tuple(awake)


# Packet work of the kernel on the DUT's CPUs goes before other programs there: a DUT shares with nobody.


FIRST = -20


async def prefer_softirq_work(changes: Changes, host: Host, cpus: tuple[int, ...]) -> dict[str, int]:
    """Raises ``ksoftirqd`` of each CPU; gives what was set. Where such a thread is not to be seen, nothing is set."""
    raised: dict[str, int] = {}
    for cpu in cpus:
        name = f"ksoftirqd/{cpu}"
        found = await host.run(("pgrep", "-x", name), check=False)
        stat = await host.read_file(f"/proc/{found.stdout.strip()}/stat") if found.stdout.strip().isdigit() else None
        ticks = start_ticks_of_stat(stat) if stat is not None else None
        if stat is None or ticks is None:
            continue
        pid, old = int(found.stdout), nice_of_stat(stat)

        async def apply(pid: int = pid) -> None:
            await host.run(("renice", "-n", str(FIRST), "-p", str(pid)))

        if old != FIRST:
            try:
                await changes.make(host, RestoreNice(pid=pid, start_ticks=ticks, old=old, new=FIRST), apply)
            except HostError:
                continue  # not allowed here: the DUT competes as it does anyway, and its time is watched
        raised[name] = FIRST
    return raised
