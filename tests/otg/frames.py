"""The frames of a flow's program, made here a second time, after the protocol's description and not after the engine.

Only for programs without a signature. Frames have no FCS.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from nicbench.otg.configuration import read_configuration
from nicbench.otg.flows import ServedPort

SERVED = {"left": ServedPort(0, "left", 10e9), "right": ServedPort(1, "right", 10e9)}
PORTS = [{"name": "p1", "location": "left"}, {"name": "p2", "location": "right"}]


def flow(packet: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    """A flow of the model that sends this packet from p1 to p2."""
    return {"name": "f", "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p2"]}}, "packet": packet, **members}


def program_of(packet: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    """The engine's program of such a flow, read as the server does it."""
    config = {"ports": PORTS, "flows": [flow(packet, **members)]}
    return read_configuration(config, SERVED, seed=1).flows[0].program


def header(kind: str, **fields: Any) -> dict[str, Any]:
    """A header whose fields are single values, or patterns as the model writes them."""
    return {"choice": kind, kind: {name: _pattern(field) for name, field in fields.items()}}


def _pattern(field: Any) -> Any:
    if isinstance(field, int | str):
        return {"choice": "value", "value": field}
    return {"choice": "values", "values": field} if _is_values(field) else field


def _is_values(field: Any) -> bool:
    return isinstance(field, list) and not any(isinstance(value, Mapping) for value in field)


def frame_of(program: Mapping[str, Any], number: int, frame_bytes: int | None = None) -> bytes:
    """Frame ``number`` of a program, without FCS; ``frame_bytes`` is with FCS, by default the fixed size."""
    size = (frame_bytes or program["sizes"]["fixed"]) - 4
    template = bytes.fromhex(program["template"])
    frame = bytearray(template + _filler(program["filler"], size - len(template)))
    for field in program["fields"]:
        _write(frame, field["bit_offset"], field["bits"], value_of(field["values"], field["bits"], number))
    for fixup in program["fixups"]:
        _fix(frame, fixup)
    return bytes(frame)


def value_of(values: Mapping[str, Any], bits: int, number: int) -> int:
    """Value ``number`` of a field."""
    if "list" in values:
        return _number(values["list"][number % len(values["list"])])
    step = number % values["count"]
    return (_number(values["first"]) + step * _number(values["step"])) % 2**bits


def _number(sent: int | str) -> int:
    return int(sent, 16) if isinstance(sent, str) else sent


def _filler(filler: Mapping[str, Any], count: int) -> bytes:
    pattern = {
        "zeros": b"\0",
        "incrementing_byte": bytes(range(256)),
        "hex": bytes.fromhex(filler.get("hex", "")),
    }[filler["kind"]]
    return (pattern * (count // len(pattern) + 1))[:count]


def _write(frame: bytearray, bit_offset: int, bits: int, value: int) -> None:
    whole = int.from_bytes(frame, "big")
    shift = 8 * len(frame) - bit_offset - bits
    whole = whole & ~(((1 << bits) - 1) << shift) | value << shift
    frame[:] = whole.to_bytes(len(frame), "big")


def _fix(frame: bytearray, fixup: Mapping[str, Any]) -> None:
    at = fixup["at"]
    if fixup["kind"] == "length":
        length = len(frame) - fixup["counted_from"] - fixup["minus"]
        frame[at : at + fixup["bytes"]] = length.to_bytes(fixup["bytes"], "big")
        return
    end = fixup["to"] if fixup["to"] is not None else len(frame) - fixup.get("minus", 0)
    frame[at : at + 2] = b"\0\0"
    covered = bytes(frame[fixup["from"] : end])
    if "pseudo" in fixup:
        pseudo = fixup["pseudo"]
        first = pseudo["addresses_at"]
        half = pseudo["address_bytes"] // 2
        last = pseudo.get("destination_at", first + half)
        addresses = frame[first : first + half] + frame[last : last + half]
        covered = bytes(addresses) + len(covered).to_bytes(4, "big") + pseudo["protocol"].to_bytes(4, "big") + covered
    covered += bytes(len(covered) % 2)
    total = sum(int.from_bytes(covered[index : index + 2], "big") for index in range(0, len(covered), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = 0xFFFF - total
    if checksum == 0 and fixup.get("zero_as_ffff"):
        checksum = 0xFFFF
    frame[at : at + 2] = (checksum ^ (1 if fixup.get("spoil") else 0)).to_bytes(2, "big")


def draw(seed: int) -> random.Random:
    """A generator of numbers for a test that draws."""
    return random.Random(seed)
