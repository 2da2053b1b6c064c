"""Driver, firmware and place on the bus of each test interface."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nicbench.core.described import NotEverywhere
from nicbench.system.adapters.ethtool_link import parse_driver
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Driver(TypedDict):
    """Of one interface."""

    name: str | None
    version: str | None
    firmware: Annotated[str | None, NotEverywhere]
    option_rom: str | None
    bus: Annotated[str | None, NotEverywhere]


class Drivers(EthtoolFact):
    """From ``ethtool -i``."""

    kind = "drivers"
    shape = dict[str, _Driver]
    options = ("-i",)

    def parse(self, text: str) -> Any:
        return parse_driver(text)
