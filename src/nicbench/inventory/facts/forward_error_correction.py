"""Forward error correction of each test interface: configured and active."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.fec import parse_fec
from nicbench.inventory.facts._per_interface import EthtoolFact


class ForwardErrorCorrection(EthtoolFact):
    """From ``ethtool --show-fec``."""

    kind = "forward_error_correction"
    options = ("--show-fec",)
    as_json = True

    def parse(self, text: str) -> Any:
        return parse_fec(text)
