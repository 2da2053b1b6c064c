"""The transceiver or cable in the cage of each test interface."""

from __future__ import annotations

from typing import Any, TypedDict

from nicbench.system.adapters.ethtool_link import parse_module
from nicbench.system.inventory.facts._per_interface import EthtoolFact


class _Module(TypedDict):
    """Of one cage."""

    identifier: str
    connector: str | None
    types: list[str]
    vendor: str | None
    part: str | None
    revision: str | None
    serial: str | None
    date: str | None
    cable_m: float | None
    wavelength_nm: float | None
    temperature_c: float | None
    voltage_v: float | None
    transmit_power_dbm: float | None
    receive_power_dbm: float | None


class Modules(EthtoolFact):
    """From ``ethtool -m``."""

    kind = "modules"
    shape = dict[str, _Module]
    options = ("-m",)

    def parse(self, text: str) -> Any:
        return parse_module(text)
