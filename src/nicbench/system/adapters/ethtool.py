"""What ethtool and hwstamp_ctl print of a network adapter. Pure: text in, plain data out."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any, Final

from nicbench.core.frozen import frozen
from nicbench.core.headers import FlowRule

# Rows of ``name: value`` as ethtool and lspci print them.


def rows_of(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each row that has a colon, without the space around them, in order."""
    for row in text.splitlines():
        name, colon, value = row.partition(":")
        if colon:
            yield name.strip(), value.strip()


def known_value(value: str | None) -> str | None:
    """The value, null where the tool says that it does not know."""
    if value is None or value in ("", "n/a", "N/A") or value.lower().startswith(("unknown", "not reported")):
        return None
    return value


def number_of(value: str | None) -> int | None:
    """Returns a whole number, None if the text is not one."""
    return int(value) if value is not None and value.isascii() and value.isdecimal() else None


def switch_of(value: str | None) -> bool | None:
    """``on`` or ``off`` (whatever stands behind it), null for anything else."""
    return {"on": True, "off": False}.get((value or "").partition(" ")[0])


def key_of(name: str) -> str:
    """A printed name as a key: ``RX Mini`` is ``rx_mini``."""
    return "_".join(name.lower().replace("-", " ").split())


# What ethtool says of an interface's link, its transceiver, its driver and its clock. Pure: text in, plain data out.

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
    types = []
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


# What ethtool says of an interface's queues: how many, how deep, what they offload, who gets which frame. Pure.

# ``ethtool -g`` and ``-l``: rings and channels, each with its maximum and its current value.


def parse_limits(text: str) -> dict[str, dict[str, int | None]]:
    """For each row its maximum and its current value, null where it is ``n/a``; rows without any number are left out.

    Rows without a number (``TX Push: off``) are read by ``parse_ring_switches``.
    """
    limits: dict[str, dict[str, int | None]] = {}
    column = "maximum"
    for name, value in rows_of(text):
        if name.startswith("Current hardware settings"):
            column = "current"
        elif value:
            limits.setdefault(key_of(name), {})[column] = number_of(value)
    return {name: values for name, values in limits.items() if any(value is not None for value in values.values())}


# ``ethtool -c``: after how long, or how many frames, an interrupt comes.


_PAIR = re.compile(r"^(?P<name>Adaptive|CQE mode) RX: (?P<rx>\S+)\s+TX: (?P<tx>\S+)\s*$")


def parse_coalescing(text: str) -> dict[str, int | bool | None]:
    """By the names that set them, ``rx_usecs`` for ``rx-usecs``; what the driver lacks (``n/a``) is left out."""
    found: dict[str, int | bool | None] = {}
    for row in text.splitlines():
        if pair := _PAIR.match(row.strip()):
            for side in ("rx", "tx"):
                found[f"{key_of(pair['name'])}_{side}"] = switch_of(pair[side])
    for name, value in rows_of(text):
        found.setdefault(key_of(name), number_of(value))
    return {name: value for name, value in found.items() if value is not None}


# ``ethtool -k``: offloads, as JSON (5.8 and newer) or as text.


@frozen
class Feature:
    """An offload. ``fixed``: the driver lets nobody change it. ``requested``: what was asked for, where it differs."""

    on: bool
    fixed: bool = False
    requested: bool | None = None


def parse_features(text: str) -> dict[str, Feature]:
    """Every offload by its name, in ethtool's order; both of its layouts."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        return {name: _feature_of_json(value) for name, value in answer.items() if isinstance(value, dict)}
    found = {}
    for name, value in rows_of(text):
        on = switch_of(value)
        if on is not None:
            requested = switch_of(value.partition("[requested ")[2].rstrip("]"))
            found[name] = Feature(on, fixed="[fixed]" in value, requested=requested)
    return found


def _feature_of_json(value: dict[str, object]) -> Feature:
    on, fixed, requested = value.get("active"), value.get("fixed"), value.get("requested")
    different = isinstance(requested, bool) and requested != on and not fixed
    return Feature(on is True, fixed is True, bool(requested) if different else None)


# ``ethtool --show-priv-flags``: switches that only this driver has.


def parse_private_flags(text: str) -> dict[str, bool]:
    """By the driver's names, as text or JSON."""
    if text.lstrip().startswith("["):
        answer = json.loads(text)[0]
        flags = answer.get("private-flags", answer)
        return {str(name): value for name, value in flags.items() if isinstance(value, bool)}
    switches = ((name, switch_of(value)) for name, value in rows_of(text))
    return {name: on for name, on in switches if on is not None}


# ``ethtool -n DEVICE rx-flow-hash TYPE``: which fields of a flow its hash is made of.


_FIELDS = {
    "L2DA": "m",
    "VLAN tag": "v",
    "L3 proto": "t",
    "IP SA": "s",
    "IP DA": "d",
    "L4 bytes 0 & 1 [TCP/UDP src port]": "f",
    "L4 bytes 2 & 3 [TCP/UDP dst port]": "n",
}
"""ethtool's words, and the letters that set them (ethtool(8), rx-flow-hash)."""


def parse_hash_fields(text: str) -> str:
    """The letters in ethtool's order: ``sdfn``; ``r`` where such frames are dropped. ValueError for neither."""
    rows = [row.strip() for row in text.splitlines()]
    if any("All matching flows discarded on RX" in row for row in rows):
        return "r"
    if not any("use these fields for computing Hash flow key" in row for row in rows):
        raise ValueError("no fields of a hash in it")
    return "".join(letter for words, letter in _FIELDS.items() if words in rows)


# ``ethtool -x``: to which receive queue the hash of a flow leads (RSS): table, key, function.


_HEAD = re.compile(r"indirection table for \S+ with (\d{1,6}) RX ring")
_ENTRIES = re.compile(r"^\s*(\d{1,6}):((?:\s+\d{1,6})+)\s*$")
_KEY = re.compile(r"^\s*((?:[0-9a-fA-F]{2}:)+[0-9a-fA-F]{2})\s*$")
_FUNCTION = re.compile(r"^\s+(\w[\w-]*): (on|off)\s*$")


@frozen
class ReceiveHashing:
    """``table`` has a queue for each value of the hash's low bits; without one it is empty and ``key`` null."""

    queues: int | None
    table: tuple[int, ...]
    key: str | None
    functions: dict[str, bool]

    @property
    def function(self) -> str | None:
        """The hash function that is on."""
        return next((name for name, on in self.functions.items() if on), None)


def parse_receive_hashing(text: str) -> ReceiveHashing:
    """Every layout since 2.6.36; ValueError where there is nothing of it."""
    head = _HEAD.search(text)
    table: list[int] = []
    key = None
    functions = {}
    for row in text.splitlines():
        if entries := _ENTRIES.match(row):
            if int(entries[1]) != len(table):
                raise ValueError(f"entry {entries[1]} of the indirection table follows after {len(table)} entries")
            table += [int(queue) for queue in entries[2].split()]
        elif (found := _KEY.match(row)) and key is None:
            key = found[1].lower()
        elif (found := _FUNCTION.match(row)) and (on := switch_of(found[2])) is not None:
            functions[found[1]] = on
    if head is None and not table and key is None:
        raise ValueError("no receive hashing in it")
    return ReceiveHashing(int(head[1]) if head else None, tuple(table), key, functions)


def describe_table(table: tuple[int, ...]) -> str | None:
    """The table in a few words, exactly: its repeated beginning, or runs of the same queue. Null for an empty one."""
    if not table:
        return None
    size = len(table)
    for period in range(1, min(size, 129)):
        # At least two whole repetitions, or it would be no shorter than the table itself.
        if period * 2 <= size and all(table[at] == table[at % period] for at in range(period, size)):
            return f"{_numbers(table[:period])}, again and again to {size} entries"
    runs = [(queue, len(list(group))) for queue, group in groupby(table)]
    return " ".join(f"{queue}x{length}" if length > 1 else str(queue) for queue, length in runs)


def _numbers(queues: tuple[int, ...]) -> str:
    if len(queues) > 2 and all(after == before + 1 for before, after in pairwise(queues)):
        return f"{queues[0]} to {queues[-1]}"
    return " ".join(map(str, queues))


# The rules for single flows of an interface, as ``ethtool -n`` prints them. Pure.

# rxclass.c of ethtool: rxclass_print_nfc_spec_ext, rxclass_print_ipv4_rule and its neighbours.
_FLOW_RULES_HEAD: Final = re.compile(r"^Total (\d+) rules", re.MULTILINE)
_RULE: Final = re.compile(r"^Filter: (\d+)\s*$", re.MULTILINE)
_MASKED: Final = re.compile(r"^(?P<value>\S+) mask: (?P<mask>\S+)$")
_TYPES: Final = {
    "TCP over IPv4": "tcp4",
    "UDP over IPv4": "udp4",
    "SCTP over IPv4": "sctp4",
    "TCP over IPv6": "tcp6",
    "UDP over IPv6": "udp6",
    "SCTP over IPv6": "sctp6",
}
_FLOW_RULES_FIELDS: Final = {
    "Src IP addr": "source_address",
    "Dest IP addr": "destination_address",
    "Src port": "source_port",
    "Dest port": "destination_port",
}
_QUEUE: Final = re.compile(r"^Direct to queue (\d+)$")
_DROP: Final = "Drop"


@frozen
class PlacedRule:
    """A rule at its place; ``text`` is all of it, and ``rule`` None if ``FlowRule`` cannot express it."""

    place: int
    rule: FlowRule | None
    text: str


def parse_flow_rules(text: str) -> tuple[PlacedRule, ...]:
    """Returns the rules by their places. ValueError if the text is not a whole list of rules."""
    head = _FLOW_RULES_HEAD.search(text)
    if head is None:
        raise ValueError("no list of rules in it")
    parts = _RULE.split(text)[1:]
    found = [PlacedRule(int(place), _rule_of(block), " ".join(block.split())) for place, block in _pairs(parts)]
    if len(found) != int(head[1]):
        raise ValueError(f"{head[1]} rules are announced, and {len(found)} follow")
    return tuple(sorted(found, key=lambda each: each.place))


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    return list(zip(parts[::2], parts[1::2], strict=True))


def _rule_of(block: str) -> FlowRule | None:
    given: dict[str, object] = {}
    rows = dict(rows_of(block))
    flow = _TYPES.get(rows.pop("Rule Type", ""))
    action = rows.pop("Action", "")
    queue = _QUEUE.match(action)
    if flow is None or (queue is None and action != _DROP):
        return None
    for name, value in rows.items():
        known = _known(name, value)
        if known is None:
            return None
        given |= known
    try:
        return FlowRule.model_validate({"flow": flow, "queue": int(queue[1]) if queue else None, **given})
    except ValueError:
        return None


def _known(name: str, value: str) -> Mapping[str, object] | None:
    """The field of a row whose mask is whole, nothing where it does not count; None for anything else.

    ethtool prints what is left out of the comparison as ones.
    """
    masked = _MASKED.match(value)
    if masked is None:
        return None
    ignored = _bits(masked["mask"])
    if name not in _FLOW_RULES_FIELDS:
        return {} if ignored and not ignored & (ignored + 1) else None
    if ignored is None:
        return None
    if ignored == 0:
        plain = masked["value"]
        return {_FLOW_RULES_FIELDS[name]: plain if "address" in _FLOW_RULES_FIELDS[name] else int(plain, 0)}
    return {} if ignored & (ignored + 1) == 0 and ignored.bit_length() in (16, 32, 128) else None


def _bits(mask: str) -> int | None:
    try:
        return int(mask, 0)
    except ValueError:
        pass
    try:
        return int(ipaddress.ip_address(mask))
    except ValueError:
        return None


# Which frames a card stamps, as its driver is set (SIOCGHWTSTAMP), by hwstamp_ctl of linuxptp.  Source:
# Documentation/networking/timestamping.rst; hwstamp_ctl(8).

ALL_FRAMES = 1
"""HWTSTAMP_FILTER_ALL of linux/net_tstamp.h."""


@frozen
class StampSetting:
    """The numbers of linux/net_tstamp.h: HWTSTAMP_TX_* and HWTSTAMP_FILTER_*."""

    transmit: int
    receive: int


def parse_stamp_setting(text: str) -> StampSetting:
    """Of what hwstamp_ctl prints, the last setting: it prints the old one before it sets another."""
    found = dict[str, int]()
    for row in text.splitlines():
        name, _, number = row.partition(" ")
        if name in ("tx_type", "rx_filter") and number.strip().isdecimal():
            found[name] = int(number)
    if len(found) != 2:
        raise ValueError("neither tx_type nor rx_filter in it" if not found else "only one of tx_type and rx_filter")
    return StampSetting(found["tx_type"], found["rx_filter"])
