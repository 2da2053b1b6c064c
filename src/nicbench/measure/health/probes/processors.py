"""Probes of processors: temperature, throttling, and power."""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, Energy, HealthView, Level, Probe, chips, number_of, paths_and_values
from nicbench.measure.power.base import RAPL_SCRIPT, read_zones

_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


class ProcessorTemperature(Probe):
    """The temperature of each processor, with the limit at which it protects itself (hwmon).

    Of each processor's sensors the one nearest to its limit.
    """

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


_FOLDER = "/sys/devices/system/cpu/cpu*/thermal_throttle"


class Throttling(Probe):
    """How long processors were slowed down because they were too hot (``thermal_throttle``, Intel; no MSR is read).

    ``core_throttle_total_time_ms`` and ``package_throttle_total_time_ms`` since Linux 5.6; before, only counts of
    events.

    Of the cores, the sum; of a package, once (each of its CPUs tells the same).
    """

    kind = "throttling"
    of_machine = True

    def script(self, view: HealthView) -> str:
        return f'grep -sH "" {_FOLDER}/core_throttle_total_time_ms {_FOLDER}/package_throttle_total_time_ms'

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        cores: list[float] = []
        packages: list[float] = []
        for path, lines in paths_and_values(text).items():
            value = number_of(lines)
            if value is not None:
                (cores if "/core_" in path else packages).append(value)
        rows = (("cores", cores, sum), ("package", packages, max))
        return tuple(
            Counter(f"processor, {where}", "slowed down by heat", how(values), Measure.THROTTLED, "ms")
            for where, values, how in rows
            if values
        )


class Power(Probe):
    """What processors and their memory drew over a trial (RAPL, see ``measure/power/base.py``).

    Energy of each package, and of its memory, which is apart; other domains are parts of their package.
    """

    kind = "power"
    of_machine = True

    def script(self, view: HealthView) -> str:
        return RAPL_SCRIPT

    def read(self, text: str, view: HealthView) -> tuple[Energy, ...]:
        return tuple(
            Energy(zone.where, zone.joules, zone.range_j) for zone in read_zones(text) if zone.joules is not None
        )
