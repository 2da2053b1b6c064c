"""The temperature of each adapter, with the limit that its driver tells (hwmon)."""

from __future__ import annotations

import shlex

from nicbench.measure.health.base import HealthView, Level, Probe
from nicbench.measure.health.probes._hwmon import chips


class CardTemperature(Probe):
    """Of each adapter's sensors the one nearest to its limit."""

    kind = "card-temperature"

    def script(self, view: HealthView) -> str:
        cards = [f"/sys/class/net/{shlex.quote(device)}/device/hwmon/hwmon*" for device in view.devices]
        files = " ".join(
            f"{card}/{name}" for card in cards for name in ("name", "temp*_input", "temp*_max", "temp*_crit")
        )
        return f'grep -sH "" {files}' if cards else ""

    def read(self, text: str, view: HealthView) -> tuple[Level, ...]:
        return tuple(
            Level(f"{folder.split('/')[4]} ({name})", now, "C", limit)
            for folder, (name, now, limit) in chips(text).items()
            if folder.startswith("/sys/class/net/")
        )
