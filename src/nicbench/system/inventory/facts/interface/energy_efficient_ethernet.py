"""Energy-Efficient Ethernet of each test interface: it delays the first frame after an idle time."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_link import parse_energy
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Energy(TypedDict):
    """Of one interface."""

    supported: bool
    enabled: bool
    active: bool
    transmit_idle: bool | None
    transmit_idle_timer_ns: int | None


class EnergyEfficientEthernet(EthtoolFact):
    """From ``ethtool --show-eee``."""

    kind = "energy_efficient_ethernet"
    shape = dict[str, _Energy]
    options = ("--show-eee",)

    def parse(self, text: str) -> Any:
        return parse_energy(text)
