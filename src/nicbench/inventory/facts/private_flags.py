"""Switches that only the driver of a test interface has."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.private_flags import parse_private_flags
from nicbench.inventory.facts._per_interface import EthtoolFact


class PrivateFlags(EthtoolFact):
    """From ``ethtool --show-priv-flags``."""

    kind = "private_flags"
    options = ("--show-priv-flags",)

    def parse(self, text: str) -> Any:
        return parse_private_flags(text)
