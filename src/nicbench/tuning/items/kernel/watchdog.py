"""The detectors of hard and soft lockups, which interrupt every CPU regularly.

Source: Documentation/admin-guide/lockup-watchdogs.rst. Each is set by itself: kernel.watchdog would switch both on.
"""

from __future__ import annotations

from nicbench.tuning.items._files import SwitchItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class Watchdog(SwitchItem):
    """kernel.nmi_watchdog and kernel.soft_watchdog."""

    kind = "watchdog"
    Options = SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/proc/sys/kernel/"
    patterns = (
        "nmi_watchdog",
        "soft_watchdog",
    )
    missing = "this kernel has no lockup detectors"
