"""Forward error correction of each link (``ethtool -I --show-fec``, since ethtool 5.13; IEEE 802.3 30.5.1.1.17 and 18).

Corrected blocks are a fibre's daily life at 25 Gb/s and more; a block that could not be corrected is lost frames.
"""

from __future__ import annotations

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, HealthView, Probe, script_for_devices, split_by_device

_NAMES = {
    "corrected_blocks": (Measure.FEC_CORRECTED, "corrected FEC blocks"),
    "uncorrectable_blocks": (Measure.FEC_UNCORRECTED, "uncorrectable FEC blocks"),
}


class Fec(Probe):
    """Blocks, corrected and not; lanes are parts of their sum and are left out."""

    kind = "fec"

    def script(self, view: HealthView) -> str:
        return script_for_devices(view, "ethtool -I --show-fec {}")

    def read(self, text: str, view: HealthView) -> tuple[Counter, ...]:
        counters = []
        for device, lines in split_by_device(text).items():
            for line in lines:
                name, _, value = line.partition(":")
                known = _NAMES.get(name.strip().lower())
                if known is not None and value.strip().isdecimal():
                    measure, what = known
                    counters.append(Counter(device, what, int(value), measure, "blocks"))
        return tuple(counters)
