"""How often each interface's link changed its state (``/sys/class/net/DEVICE/carrier_changes``)."""

from __future__ import annotations

import shlex

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, HealthView, Probe, number_of, paths_and_values


class Carrier(Probe):
    """One counter for each interface."""

    kind = "carrier"

    def script(self, view: HealthView) -> str:
        paths = (f"/sys/class/net/{shlex.quote(device)}/carrier_changes" for device in view.devices)
        return f'grep -sH "" {" ".join(paths)}' if view.devices else ""

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = []
        for path, lines in paths_and_values(text).items():
            changes = number_of(lines)
            if changes is not None:
                device = path.split("/")[-2]
                counters.append(Counter(device, "changes of the link", changes, Measure.LINK, "changes"))
        return tuple(counters)
