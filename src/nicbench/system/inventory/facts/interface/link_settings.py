"""The link of each test interface: speed, duplex, autonegotiation, modes."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_link import parse_link_settings
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Link(TypedDict):
    """Of one interface, what its driver says."""

    link: bool | None
    why_no_link: str | None
    speed_bits_per_s: int | None
    lanes: int | None
    duplex: str | None
    autonegotiation: bool | None
    autonegotiation_possible: bool | None
    port: str | None
    transceiver: str | None
    supported_modes: list[str]
    advertised_modes: list[str]
    partner_modes: list[str]
    supported_fec: list[str]
    advertised_fec: list[str]


class LinkSettings(EthtoolFact):
    """From ``ethtool DEVICE``."""

    kind = "link_settings"
    shape = dict[str, _Link]
    options = ()

    def parse(self, text: str) -> Any:
        """What the driver does not say is left out: a virtual one has little more than a speed."""
        return {name: value for name, value in parse_link_settings(text).items() if value not in (None, [])}
