"""``ethtool -m``: the transceiver or cable in an adapter's cage (SFF-8472, SFF-8636, CMIS)."""

from __future__ import annotations

import re
from typing import Any

from nicbench.adapters._rows import known, rows_of

_METRES = re.compile(r"^(\d{1,6}(?:\.\d+)?)m$")
_LENGTHS = ("Length (Copper)", "Length (Copper or Active cable)", "Cable assembly length")
_NUMBER = re.compile(r"^(-?\d{1,9}(?:\.\d+)?)")
_DBM = re.compile(r"(-?\d{1,4}(?:\.\d+)?) dBm")
_POWER = {
    "transmit_power_dbm": ("Laser output power", "Transmit avg optical power (Channel 1)"),
    "receive_power_dbm": (
        "Receiver signal average optical power",
        "Rcvr signal avg optical power(Channel 1)",
        "Rcvr signal avg optical power (Channel 1)",
    ),
}


def parse_module(text: str) -> dict[str, Any]:
    """What it is, who made it, how long its cable is, and how warm and bright it was when read.

    ``serial`` is its serial number. Powers are those of the first lane.
    """
    rows: dict[str, str] = {}
    types: list[str] = []
    for name, value in rows_of(text):
        if name == "Transceiver type":
            types.append(value)
        rows.setdefault(name, value)
    if "Identifier" not in rows:
        raise ValueError("no identifier of a module in it")
    return {
        "identifier": _meaning(rows["Identifier"]),
        "connector": _meaning(rows.get("Connector")),
        "types": types,
        "vendor": known(rows.get("Vendor name")),
        "part": known(rows.get("Vendor PN")),
        "revision": known(rows.get("Vendor rev", rows.get("Revision"))),
        "serial": known(rows.get("Vendor SN")),
        "date": known(rows.get("Date code")),
        "cable_m": _cable_m(rows),
        "wavelength_nm": _number(rows.get("Laser wavelength"), "nm"),
        "temperature_c": _number(rows.get("Module temperature"), "degrees C"),
        "voltage_v": _number(rows.get("Module voltage"), "V"),
    } | {name: _dbm(rows, names) for name, names in _POWER.items()}


def _meaning(value: str | None) -> str | None:
    """``0x03 (SFP)`` means SFP."""
    if value is None:
        return None
    return value.partition("(")[2].removesuffix(")") or value


def _cable_m(rows: dict[str, str]) -> float | None:
    """Of a cable that is fixed to its modules; 0 is how a module for a fibre of its own says that it has none."""
    for name in _LENGTHS:
        if found := _METRES.match(rows.get(name, "")):
            length = float(found[1])
            if length > 0:
                return length
    return None


def _number(value: str | None, unit: str) -> float | None:
    found = _NUMBER.match(value or "")
    return float(found[1]) if found and value and value[found.end() :].lstrip().startswith(unit) else None


def _dbm(rows: dict[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        if found := _DBM.search(rows.get(name, "")):
            return float(found[1])
    return None
