"""CPUs that measure do not sleep. One that sleeps is slow to wake up, and a hypervisor gives its physical core away.

A virtual CPU that sleeps between frames wakes up wherever the hypervisor has room, mostly beside a neighbour on the
other hyperthread, which takes up to half of the core; one that is always busy gets a core of its own before long.
Source: Documentation/ABI/testing/sysfs-devices-power, ``pm_qos_resume_latency_us``: "n/a" tolerates no latency at all,
so that the CPU polls. It is of each CPU, so that idle hyperthreads beside the DUT's go on sleeping.
"""

from __future__ import annotations

from nicbench.errors import HostError
from nicbench.hosts.base import Host
from nicbench.tuning.changes import Changes

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
