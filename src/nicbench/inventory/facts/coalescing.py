"""Interrupt coalescing of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.coalescing import parse_coalescing
from nicbench.inventory.facts._per_interface import EthtoolFact


class Coalescing(EthtoolFact):
    """From ``ethtool -c``."""

    kind = "coalescing"
    options = ("-c",)

    def parse(self, text: str) -> Any:
        return parse_coalescing(text)
