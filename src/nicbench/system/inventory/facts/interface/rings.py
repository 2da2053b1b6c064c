"""Rings of each test interface: how many frames a queue holds, and could."""

from __future__ import annotations

from typing import Annotated, Any

from nicbench.core.described import NotEverywhere
from nicbench.system.adapters.ethtool_queues import parse_limits
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class Rings(EthtoolFact):
    """From ``ethtool -g``."""

    kind = "rings"
    shape = Annotated[dict[str, Any], NotEverywhere]
    options = ("-g",)

    def parse(self, text: str) -> Any:
        return parse_limits(text)
