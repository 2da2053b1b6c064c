"""Switches that only the driver of a test interface has."""

from __future__ import annotations

from typing import Any

from nicbench.system.adapters.ethtool_queues import parse_private_flags
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class PrivateFlags(EthtoolFact):
    """From ``ethtool --show-priv-flags``."""

    kind = "private_flags"
    shape = dict[str, dict[str, bool]]
    options = ("--show-priv-flags",)

    def parse(self, text: str) -> Any:
        return parse_private_flags(text)
