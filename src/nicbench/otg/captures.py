"""Captures of a configuration in the engine's terms: OTG's filters become bytes and masks at offsets of the frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.refusals import Problems

_ETHERNET_BYTES: Final = 14
_TAG_BYTES: Final = 4
_MOST_FILTERS: Final = 16
LARGEST_CAPTURE_BYTES: Final = 256 * 2**20

_FIELDS: Final[Mapping[str, Mapping[str, tuple[int, int]]]] = {
    "ethernet": {"dst": (0, 48), "src": (48, 48), "ether_type": (96, 16)},
    "vlan": {"priority": (0, 3), "cfi": (3, 1), "id": (4, 12), "protocol": (16, 16)},
    "ipv4": {
        "version": (0, 4),
        "header_length": (4, 4),
        "priority": (8, 8),
        "total_length": (16, 16),
        "identification": (32, 16),
        "reserved": (48, 1),
        "dont_fragment": (49, 1),
        "more_fragments": (50, 1),
        "fragment_offset": (51, 13),
        "time_to_live": (64, 8),
        "protocol": (72, 8),
        "header_checksum": (80, 16),
        "src": (96, 32),
        "dst": (128, 32),
    },
    "ipv6": {
        "version": (0, 4),
        "traffic_class": (4, 8),
        "flow_label": (12, 20),
        "payload_length": (32, 16),
        "next_header": (48, 8),
        "hop_limit": (56, 8),
        "src": (64, 128),
        "dst": (192, 128),
    },
}
"""Bit offset and bits of each field of a filter, in its header."""


@dataclass(frozen=True, slots=True)
class Capture:
    """What one port captures: frames that match all filters, the first bytes of each, the first or the last frames."""

    port: str
    filters: tuple[dict[str, Any], ...]
    overwrite: bool
    snap_bytes: int | None
    form: str


def read_captures(config: Mapping[str, Any], problems: Problems) -> dict[str, Capture]:
    """Reads the captures of a configuration, by the name of their port."""
    captures = {}
    for index, message in enumerate(config.get("captures") or ()):
        path = f"config.captures[{index}]"
        if message.get("format") == "pcapng":
            problems.not_implemented(f"{path}.format", "captures are written as pcap: give that")
        filters = read_filters(message.get("filters") or (), f"{path}.filters", problems)
        snap = message.get("packet_size")
        for port in message.get("port_names") or ():
            overwrite = bool(message.get("overwrite", True))
            captures[str(port)] = Capture(str(port), filters, overwrite, int(snap) if snap else None, "pcap")
    return captures


def read_filters(filters: Any, path: str, problems: Problems) -> tuple[dict[str, Any], ...]:
    """Reads filters: of successive headers, or of bytes at an offset of the frame."""
    if len(filters) > _MOST_FILTERS:
        problems.invalid(path, f"are {len(filters)}, of at most {_MOST_FILTERS}")
        return ()
    made: list[dict[str, Any]] = []
    at = 0
    for index, message in enumerate(filters):
        choice = message.get("choice", "custom")
        here, body = f"{path}[{index}].{choice}", message.get(choice) or {}
        if choice == "custom":
            made += _custom(body, here, problems)
            continue
        if choice == "ethernet":
            at = 0
        elif choice == "vlan" or at < _ETHERNET_BYTES:
            at = max(at, _ETHERNET_BYTES)
        for name, field in body.items():
            if name not in _FIELDS[choice]:
                problems.not_implemented(f"{here}.{name}", "is not looked at: leave it out")
                continue
            offset, bits = _FIELDS[choice][name]
            made += _filter(8 * at + offset, bits, field, f"{here}.{name}", problems)
        at += {"ethernet": _ETHERNET_BYTES, "vlan": _TAG_BYTES}.get(choice, 0)
    return tuple(made)


def _custom(message: Mapping[str, Any], path: str, problems: Problems) -> list[dict[str, Any]]:
    offset, bits = int(message.get("offset", 0)), int(message.get("bit_length", 8))
    if not 1 <= bits <= 1024 or offset > 65_535:
        problems.invalid(path, "bit_length is 1 to 1024, and offset a bit of the frame")
        return []
    return _filter(offset, bits, message, path, problems)


def _filter(at: int, bits: int, message: Mapping[str, Any], path: str, problems: Problems) -> list[dict[str, Any]]:
    """The engine's filter of a field at a bit of the frame; none where its mask is 0, which every frame passes."""
    value = _number(str(message.get("value", "00")), bits, f"{path}.value", problems)
    mask = _number(str(message.get("mask", "00")), bits, f"{path}.mask", problems)
    if not mask:
        if message.get("negate"):
            problems.invalid(f"{path}.mask", "is 0, so that no frame passes what is negated")
        return []
    first, last = at // 8, (at + bits + 7) // 8
    shift = 8 * last - at - bits
    count = last - first
    return [
        {
            "offset": first,
            "bytes": (value << shift).to_bytes(count, "big").hex(),
            "mask": (mask << shift).to_bytes(count, "big").hex(),
            "negate": bool(message.get("negate", False)),
        }
    ]


def _number(digits: str, bits: int, path: str, problems: Problems) -> int:
    try:
        number = int(digits, 16)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << bits:
        problems.invalid(path, f"{digits[:80]!r} is no hexadecimal number of {bits} bits")
        return 0
    return number
