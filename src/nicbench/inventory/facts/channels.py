"""Channels of each test interface: how many queues it has, and could."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.limits import parse_limits
from nicbench.inventory.facts._per_interface import EthtoolFact


class Channels(EthtoolFact):
    """From ``ethtool -l``."""

    kind = "channels"
    options = ("-l",)

    def parse(self, text: str) -> Any:
        return parse_limits(text)
