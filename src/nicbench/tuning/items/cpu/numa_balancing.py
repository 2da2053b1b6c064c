"""Whether the kernel moves memory and processes between NUMA nodes while they work.

Source: Documentation/admin-guide/sysctl/kernel.rst, numa_balancing. Its page faults are seen as latency.
"""

from __future__ import annotations

from nicbench.tuning.items._files import SwitchItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class NumaBalancing(SwitchItem):
    """kernel.numa_balancing; 1 is the ordinary kind."""

    kind = "numa_balancing"
    Options = SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/proc/sys/kernel/"
    patterns = ("numa_balancing",)
    missing = "this kernel has no NUMA balancing"
