"""Flow control (pause frames) of each test interface."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_link import parse_pause
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Pause(TypedDict):
    """Of one interface."""

    autonegotiate: bool | None
    rx: bool | None
    tx: bool | None
    rx_negotiated: bool | None
    tx_negotiated: bool | None


class FlowControl(EthtoolFact):
    """From ``ethtool -a``."""

    kind = "flow_control"
    shape = dict[str, _Pause]
    options = ("-a",)
    as_json = True

    def parse(self, text: str) -> Any:
        return parse_pause(text)
