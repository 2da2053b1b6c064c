"""Flow control (pause frames) of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.pause import parse_pause
from nicbench.inventory.facts._per_interface import EthtoolFact


class FlowControl(EthtoolFact):
    """From ``ethtool -a``."""

    kind = "flow_control"
    options = ("-a",)
    as_json = True

    def parse(self, text: str) -> Any:
        return parse_pause(text)
