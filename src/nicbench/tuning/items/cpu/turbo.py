"""Whether CPUs may run above their nominal frequency: off, the frequency depends less on heat and on neighbours.

Source: Documentation/admin-guide/pm/intel_pstate.rst (no_turbo), cpufreq.rst (boost).
"""

from __future__ import annotations

from nicbench.core.plan import Values
from nicbench.tuning.items._files import FilesItem, SwitchOptions
from nicbench.tuning.items.base import Phase


class Turbo(FilesItem):
    """The switch of intel_pstate, or that of other drivers."""

    kind = "turbo"
    Options = SwitchOptions
    options: SwitchOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "on"
    folder = "/sys/devices/system/cpu/"
    patterns = ("intel_pstate/no_turbo", "cpufreq/boost")
    missing = "the frequency driver of this machine has no switch for turbo (a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        return {key: str(int(self.options.on != key.endswith("no_turbo"))) for key in now}
