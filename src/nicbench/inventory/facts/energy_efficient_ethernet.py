"""Energy-Efficient Ethernet of each test interface: it delays the first frame after an idle time."""

from __future__ import annotations

from typing import Any

from nicbench.adapters.energy import parse_energy
from nicbench.inventory.facts._per_interface import EthtoolFact


class EnergyEfficientEthernet(EthtoolFact):
    """From ``ethtool --show-eee``."""

    kind = "energy_efficient_ethernet"
    options = ("--show-eee",)

    def parse(self, text: str) -> Any:
        return parse_energy(text)
