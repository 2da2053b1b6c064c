"""What ethtool says of an interface's link, its transceiver, its driver and its clock. Pure: text in, plain data
out.
"""

from __future__ import annotations

import json
import re
from typing import Any

from nicbench.system.adapters._rows import known_value, number_of, rows_of, switch_of

# ``ethtool DEVICE``: speed, duplex, autonegotiation, modes, and whether there is a link.


_ROW = re.compile(r"^\s+(?P<name>[A-Z][A-Za-z0-9 /-]*):\s*(?P<value>.*)$")
_SPEED = re.compile(r"^(\d{1,9})Mb/s$")
_MODE = re.compile(r"^\S+/(?:Half|Full)$|^\S*base\S+$")


def parse_link_settings(text: str) -> dict[str, Any]:
    """Null is what the driver does not say, as a virtual one does not."""
    rows = _rows(text)

    def one(name: str) -> str | None:
        return known_value(" ".join(rows.get(name, [])) or None)

    speed = _SPEED.match(one("Speed") or "")
    detected = one("Link detected")
    return {
        "link": None if detected is None else detected.startswith("yes"),
        "why_no_link": detected.partition("(")[2].rstrip(")") or None if detected else None,
        "speed_bits_per_s": int(speed[1]) * 1_000_000 if speed else None,
        "lanes": int(lanes) if (lanes := one("Lanes") or "").isdecimal() else None,
        "duplex": duplex.lower() if (duplex := one("Duplex")) else None,
        "autonegotiation": {"on": True, "off": False}.get(one("Auto-negotiation") or ""),
        "autonegotiation_possible": {"Yes": True, "No": False}.get(one("Supports auto-negotiation") or ""),
        "port": one("Port"),
        "transceiver": one("Transceiver"),
        "supported_modes": _modes(rows.get("Supported link modes", [])),
        "advertised_modes": _modes(rows.get("Advertised link modes", [])),
        "partner_modes": _modes(rows.get("Link partner advertised link modes", [])),
        "supported_fec": (one("Supported FEC modes") or "").split(),
    }


def _rows(text: str) -> dict[str, list[str]]:
    """Name to values: a list of modes goes on over the rows below its name."""
    rows: dict[str, list[str]] = {}
    name = ""
    for row in text.splitlines():
        if found := _ROW.match(row):
            name = found["name"]
            rows.setdefault(name, []).append(found["value"].strip())
        elif name and row[:1].isspace():
            rows[name].append(row.strip())
    if not rows:
        raise ValueError("no link settings in it")
    return rows


def _modes(values: list[str]) -> list[str]:
    return [word for value in values for word in value.split() if _MODE.match(word)]


# ``ethtool --show-fec``: forward error correction, as JSON (5.13 and newer) or as text.


def parse_fec(text: str) -> dict[str, list[str]]:
    """``configured`` and ``active`` encodings (None, Auto, Off, RS, BaseR, LLRS) in ethtool's words.

    ``None`` active is what drivers say of a link that is down as well.
    """
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        return {"configured": _words(answer.get("config")), "active": _words(answer.get("active"))}
    rows = dict(rows_of(text))
    # Up to 5.18 it said "Configured", then "Supported/Configured"; up to 5.12 "FEC encodings" and "FEC encoding".
    configured = rows.get("Supported/Configured FEC encodings", rows.get("Configured FEC encodings"))
    active = rows.get("Active FEC encodings", rows.get("Active FEC encoding"))
    if configured is None or active is None:
        raise ValueError("no FEC encodings in it")
    return {"configured": configured.split(), "active": active.split()}


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else []


# ``ethtool -a``: flow control (IEEE 802.3 annex 31B), as JSON (5.9 and newer) or as text.


def parse_pause(text: str) -> dict[str, bool | None]:
    """What is set (``autonegotiate``, ``rx``, ``tx``) and, where it was negotiated, what came of it."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        negotiated = answer.get("negotiated") or {}
        found = {"autonegotiate": answer.get("autonegotiate"), "rx": answer.get("rx"), "tx": answer.get("tx")}
        found |= {"rx_negotiated": negotiated.get("rx"), "tx_negotiated": negotiated.get("tx")}
    else:
        rows = dict(rows_of(text))
        found = {"autonegotiate": switch_of(rows.get("Autonegotiate"))}
        found |= {side.lower(): switch_of(rows.get(side)) for side in ("RX", "TX")}
        found |= {f"{side.lower()}_negotiated": switch_of(rows.get(f"{side} negotiated")) for side in ("RX", "TX")}
    known = {name: value for name, value in found.items() if isinstance(value, bool)}
    if not known:
        raise ValueError("no flow control in it")
    return {name: known.get(name) for name in found if name in known or not name.endswith("negotiated")}


# ``ethtool --show-eee``: Energy-Efficient Ethernet (IEEE 802.3az), which delays the first frame after an idle time.


_MICROSECONDS = re.compile(r"^(\d{1,9}) \(us\)")


def parse_energy(text: str) -> dict[str, bool | int | None]:
    """``active`` says that both ends agreed to it."""
    rows = dict(rows_of(text))
    status = rows.get("EEE status")
    if status is None:
        raise ValueError("no EEE status in it")
    enabled = status.startswith("enabled")
    idle = rows.get("Tx LPI", "")
    timer = _MICROSECONDS.match(idle)
    return {
        "supported": not status.startswith("not supported"),
        "enabled": enabled,
        "active": enabled and status.endswith("- active"),
        "transmit_idle": False if idle.startswith("disabled") else bool(timer) or None,
        "transmit_idle_timer_ns": int(timer[1]) * 1000 if timer else None,
    }


# ``ethtool -m``: the transceiver or cable in an adapter's cage (SFF-8472, SFF-8636, CMIS).


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
        "vendor": known_value(rows.get("Vendor name")),
        "part": known_value(rows.get("Vendor PN")),
        "revision": known_value(rows.get("Vendor rev", rows.get("Revision"))),
        "serial": known_value(rows.get("Vendor SN")),
        "date": known_value(rows.get("Date code")),
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


# ``ethtool -i``: driver, version, firmware, and where on the bus it sits.


def parse_driver(text: str) -> dict[str, str | None]:
    """An empty field is unknown."""
    fields = {name: value or None for name, value in rows_of(text)}
    return {
        "name": fields.get("driver"),
        "version": fields.get("version"),
        "firmware": fields.get("firmware-version"),
        "option_rom": fields.get("expansion-rom-version"),
        "bus": fields.get("bus-info"),
    }


# ``ethtool -T``: which time stamps an interface can give, and its clock.


_SECTIONS = {
    "Capabilities:": "capabilities",
    "Hardware Transmit Timestamp Modes:": "transmit_modes",
    "Hardware Receive Filter Modes:": "receive_filters",
}


def parse_time_stamping(text: str) -> dict[str, Any]:
    """The number of its PTP clock (/dev/ptpN), null where it has none; the modes in ethtool's words."""
    found: dict[str, Any] = {"clock": None, **{name: [] for name in _SECTIONS.values()}}
    section: str | None = None
    for row in text.splitlines():
        if row[:1].isspace():
            if section is not None and row.split():
                # "hardware-transmit" or, up to 5.2, "hardware-transmit     (SOF_TIMESTAMPING_TX_HARDWARE)".
                found[section].append(row.split()[0])
            continue
        section = next((name for head, name in _SECTIONS.items() if row.startswith(head)), None)
        if row.startswith(("PTP Hardware Clock:", "Hardware timestamp provider index:")):
            found["clock"] = number_of(row.rpartition(":")[2].strip())
    if not found["capabilities"]:
        raise ValueError("no time-stamping capabilities in it")
    return found
