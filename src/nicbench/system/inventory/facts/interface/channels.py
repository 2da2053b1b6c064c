"""Channels of each test interface: how many queues it has, and could."""

from __future__ import annotations

from typing import Annotated, Any

from nicbench.core.described import NotEverywhere
from nicbench.system.adapters.ethtool_queues import parse_limits
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class Channels(EthtoolFact):
    """From ``ethtool -l``."""

    kind = "channels"
    shape = Annotated[dict[str, Any], NotEverywhere]
    options = ("-l",)

    def parse(self, text: str) -> Any:
        return parse_limits(text)
