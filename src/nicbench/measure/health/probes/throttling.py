"""How long processors were slowed down because they were too hot (``thermal_throttle``, Intel; no MSR is read).

``core_throttle_total_time_ms`` and ``package_throttle_total_time_ms`` since Linux 5.6; before, only counts of events.
"""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, HealthView, Probe, number_of, paths_and_values

_FOLDER = "/sys/devices/system/cpu/cpu*/thermal_throttle"


class Throttling(Probe):
    """Of the cores, the sum; of a package, once (each of its CPUs tells the same)."""

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
