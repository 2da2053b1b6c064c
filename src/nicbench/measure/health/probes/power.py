"""What processors and their memory drew over a trial (RAPL, see ``measure/power/rapl.py``)."""

from __future__ import annotations

from nicbench.measure.health.base import Energy, HealthView, Probe
from nicbench.measure.power.rapl import SCRIPT, read_zones


class Power(Probe):
    """Energy of each package, and of its memory, which is apart; other domains are parts of their package."""

    kind = "power"
    of_machine = True

    def script(self, view: HealthView) -> str:
        return SCRIPT

    def read(self, text: str, view: HealthView) -> tuple[Energy, ...]:
        return tuple(
            Energy(zone.where, zone.joules, zone.range_j) for zone in read_zones(text) if zone.joules is not None
        )
