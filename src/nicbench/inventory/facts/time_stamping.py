"""Which time stamps each test interface can give."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.time_stamping import parse_time_stamping
from nicbench.inventory.facts._per_interface import EthtoolFact


class TimeStamping(EthtoolFact):
    """From ``ethtool -T``."""

    kind = "time_stamping"
    options = ("-T",)

    def parse(self, text: str) -> Any:
        return parse_time_stamping(text)
