"""How deep idle CPUs sleep (C-states): those that take longer to leave than the limit are switched off.

Source: Documentation/admin-guide/pm/cpuidle.rst. The latency is what the driver states, in microseconds.
"""

from __future__ import annotations

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items._files import FilesItem
from nicbench.tuning.items.base import Phase


class IdleStatesOptions(Frozen):
    """``idle_states: 2``: none that takes longer than 2 us to leave."""

    most_exit_latency_us: int = Field(ge=0, le=1_000_000)


class IdleStates(FilesItem):
    """Of every CPU of the machine."""

    kind = "idle_states"
    Options = IdleStatesOptions
    options: IdleStatesOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "most_exit_latency_us"
    folder = "/sys/devices/system/cpu/"
    patterns = ("cpu[0-9]*/cpuidle/state*/latency", "cpu[0-9]*/cpuidle/state*/disable")
    missing = "this kernel has no idle states to choose from (cpuidle has no driver; a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        wanted: Values = {}
        for key, latency_us in now.items():
            state, _, name = key.rpartition("/")
            if name == "latency" and f"{state}/disable" in now:
                too_slow = int(str(latency_us)) > self.options.most_exit_latency_us
                wanted[f"{state}/disable"] = str(int(too_slow))
        return wanted
