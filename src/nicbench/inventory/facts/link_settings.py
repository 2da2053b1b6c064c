"""The link of each test interface: speed, duplex, autonegotiation, modes."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.link_settings import parse_link_settings
from nicbench.inventory.facts._per_interface import EthtoolFact


class LinkSettings(EthtoolFact):
    """From ``ethtool DEVICE``."""

    kind = "link_settings"
    options = ()

    def parse(self, text: str) -> Any:
        """What the driver does not say is left out: a virtual one has little more than a speed."""
        return {name: value for name, value in parse_link_settings(text).items() if value not in (None, [])}
