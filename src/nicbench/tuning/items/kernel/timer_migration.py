"""Whether timers move to CPUs that are awake anyway: off, a measuring CPU gets no timer of another one.

Source: kernel/time/timer.c, sysctl kernel.timer_migration.
"""

from __future__ import annotations

from nicbench.tuning.items._files import SwitchItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class TimerMigration(SwitchItem):
    """kernel.timer_migration."""

    kind = "timer_migration"
    Options = SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/proc/sys/kernel/"
    patterns = ("timer_migration",)
    missing = "this kernel does not move timers"
