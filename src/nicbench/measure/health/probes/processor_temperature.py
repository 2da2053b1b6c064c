"""The temperature of each processor, with the limit at which it protects itself (hwmon)."""

from __future__ import annotations

from nicbench.measure.health.base import HealthView, Level, Probe
from nicbench.measure.health.probes._hwmon import chips

_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


class ProcessorTemperature(Probe):
    """Of each processor's sensors the one nearest to its limit."""

    kind = "processor-temperature"
    of_machine = True

    def script(self, view: HealthView) -> str:
        names = "|".join(_CHIPS)
        files = '"$h"/name "$h"/temp*_input "$h"/temp*_max "$h"/temp*_crit'
        return (
            "for h in /sys/class/hwmon/hwmon*; do "
            f'case "$(cat "$h"/name)" in {names}) grep -sH "" {files} ;; esac; done'
        )

    def read(self, text: str, view: HealthView) -> tuple[Level, ...]:
        return tuple(
            Level(f"processor ({name}, {folder.rpartition('/')[2]})", now, "C", limit)
            for folder, (name, now, limit) in chips(text).items()
        )
