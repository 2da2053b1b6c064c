"""Offloads of each test interface that are on, whether or not they could be off."""

from __future__ import annotations

from typing import Any

from nicbench.system.adapters.ethtool_queues import parse_features
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class Offloads(EthtoolFact):
    """From ``ethtool -k``."""

    kind = "offloads_on"
    shape = dict[str, list[str]]
    options = ("-k",)
    as_json = True

    def parse(self, text: str) -> Any:
        return [name for name, feature in parse_features(text).items() if feature.on]
