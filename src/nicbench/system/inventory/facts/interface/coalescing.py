"""Interrupt coalescing of each test interface."""

from __future__ import annotations

from typing import Any

from nicbench.system.adapters.ethtool_queues import parse_coalescing
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class Coalescing(EthtoolFact):
    """From ``ethtool -c``."""

    kind = "coalescing"
    shape = dict[str, dict[str, Any]]
    options = ("-c",)

    def parse(self, text: str) -> Any:
        return parse_coalescing(text)
