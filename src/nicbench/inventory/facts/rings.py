"""Rings of each test interface: how many frames a queue holds, and could."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.limits import parse_limits
from nicbench.inventory.facts._per_interface import EthtoolFact


class Rings(EthtoolFact):
    """From ``ethtool -g``."""

    kind = "rings"
    options = ("-g",)

    def parse(self, text: str) -> Any:
        return parse_limits(text)
