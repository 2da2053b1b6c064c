"""How the frequency of CPUs is chosen: governor, energy preference, bounds.

Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.plan import Values
from nicbench.tuning.items._files import FilesItem
from nicbench.tuning.items.base import Phase
from nicbench.tuning.setting import CannotSetError

_GOVERNOR = "scaling_governor"
_PREFERENCE = "energy_performance_preference"
_LEAST = "scaling_min_freq"
_MOST = "scaling_max_freq"


class CpuFrequencyOptions(Frozen):
    """``cpu_frequency: performance``; what is not given stays as it is."""

    governor: str | None = Field(default=None, pattern=r"^[a-z_]{1,32}$")
    energy_preference: str | None = Field(default=None, pattern=r"^[a-z0-9_]{1,32}$")
    least_khz: int | None = Field(default=None, ge=1)
    most_khz: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _require_something(self) -> CpuFrequencyOptions:
        if not self.model_dump(exclude_none=True):
            raise ValueError("give a governor, an energy_preference, least_khz or most_khz")
        return self


class CpuFrequency(FilesItem):
    """Of every frequency policy of the machine. The governor comes first: `performance` fixes the preference."""

    kind = "cpu_frequency"
    Options = CpuFrequencyOptions
    options: CpuFrequencyOptions
    scope = "machine"
    phase = Phase.MACHINE
    alone = "governor"
    folder = "/sys/devices/system/cpu/cpufreq/"
    patterns = tuple(f"policy*/{name}" for name in (_GOVERNOR, _PREFERENCE, _LEAST, _MOST))
    missing = "the CPU frequency of this machine cannot be set (no cpufreq policy; a virtual machine has none)"

    def target_values(self, now: Values) -> Values:
        options = self.options
        asked = {
            _GOVERNOR: options.governor,
            _PREFERENCE: options.energy_preference,
            _MOST: options.most_khz,
            _LEAST: options.least_khz,
        }
        wanted: Values = {}
        for name, value in asked.items():
            keys = [key for key in now if key.endswith(f"/{name}")]
            if value is not None and not keys:
                raise CannotSetError(f"the frequency driver has no {name}")
            wanted |= {key: str(value) for key in keys if value is not None}
        return wanted
