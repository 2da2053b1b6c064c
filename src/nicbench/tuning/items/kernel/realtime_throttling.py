"""Whether the kernel takes a CPU away from a real-time program that does not yield (a polling one).

Source: Documentation/scheduler/sched-rt-group.rst. Off is -1; on is the kernel's own 950 ms of each second.
"""

from __future__ import annotations

from nicbench.tuning.items._files import SwitchItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class RealtimeThrottling(SwitchItem):
    """kernel.sched_rt_runtime_us."""

    kind = "realtime_throttling"
    Options = SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/proc/sys/kernel/"
    patterns = ("sched_rt_runtime_us",)
    missing = "this kernel does not throttle real-time programs"
    on = "950000"
    off = "-1"
