"""Which time stamps each test interface can give."""

from __future__ import annotations

from typing import Any

from nicbench.system.adapters.ethtool_link import parse_time_stamping
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class TimeStamping(EthtoolFact):
    """From ``ethtool -T``."""

    kind = "time_stamping"
    shape = dict[str, dict[str, Any]]
    options = ("-T",)

    def parse(self, text: str) -> Any:
        return parse_time_stamping(text)
