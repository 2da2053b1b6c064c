"""The transceiver or cable in the cage of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.module import parse_module
from nicbench.inventory.facts._per_interface import EthtoolFact


class Modules(EthtoolFact):
    """From ``ethtool -m``."""

    kind = "modules"
    options = ("-m",)

    def parse(self, text: str) -> Any:
        return parse_module(text)
