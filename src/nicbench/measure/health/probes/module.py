"""The temperature of each pluggable module, and at what it warns (``ethtool -m``, SFF-8472, SFF-8636, CMIS)."""

from __future__ import annotations

import re

from nicbench.measure.health.base import HealthView, Level, Probe, script_for_devices, split_by_device

_NOW = re.compile(r"^\s*Module temperature\s*:\s*(-?\d+(?:\.\d+)?) degrees C", re.MULTILINE)
_WARNING = re.compile(r"^\s*Module temperature high warning threshold\s*:\s*(-?\d+(?:\.\d+)?) degrees C", re.MULTILINE)


class Module(Probe):
    """Degrees Celsius; the module itself says which are too many."""

    kind = "module"
    slow = True

    def script(self, view: HealthView) -> str:
        cards = tuple(device for device in view.devices if view.drivers.get(device) not in ("veth", "", None))
        return script_for_devices(HealthView(view.host, cards), "ethtool -m {}")

    def read(self, text: str, view: HealthView) -> tuple[Level, ...]:
        levels = []
        for device, lines in split_by_device(text).items():
            text = "\n".join(lines)
            now, warning = _NOW.search(text), _WARNING.search(text)
            if now is not None:
                # A module without thresholds has zeros there.
                limit = float(warning[1]) if warning is not None and float(warning[1]) > 0 else None
                levels.append(Level(f"module of {device}", float(now[1]), "C", limit))
        return tuple(levels)
