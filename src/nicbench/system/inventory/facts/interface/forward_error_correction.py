"""Forward error correction of each test interface: configured and active."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_link import parse_fec
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Fec(TypedDict):
    """Of one interface."""

    configured: list[str]
    active: list[str]


class ForwardErrorCorrection(EthtoolFact):
    """From ``ethtool --show-fec``."""

    kind = "forward_error_correction"
    shape = dict[str, _Fec]
    options = ("--show-fec",)
    as_json = True

    def parse(self, text: str) -> Any:
        return parse_fec(text)
