"""Driver, firmware and place on the bus of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.driver import parse_driver
from nicbench.inventory.facts._per_interface import EthtoolFact


class Drivers(EthtoolFact):
    """From ``ethtool -i``."""

    kind = "drivers"
    options = ("-i",)

    def parse(self, text: str) -> Any:
        return parse_driver(text)
