"""Segment routing headers of IPv6 (RFC 8754), whose segments are addresses or containers of short ones (RFC 9800)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.draft import Draft, Field, Kind, Pattern, ipv6_address
from nicbench.otg.model import Problems

IPV6_BYTES: Final = 16
"""An address, which is a segment."""
_ROUTING_TYPE: Final = 4
_MOST_SEGMENTS: Final = 127
"""What a header's length of 8 bits has room for (RFC 8200 section 4.4)."""
_PADDING_TYPE: Final = 4
_PADDING_BYTES: Final = 6
"""With type and length it is a unit of 8 bytes."""


@dataclass(frozen=True, slots=True)
class Routing:
    """A routing header behind its first two bytes. Without ``last_segment_at`` the packet has reached that segment."""

    draft: Draft
    last_segment_at: int | None


def encode_routing(message: Mapping[str, Any], path: str, problems: Problems) -> Routing:
    """Puts a routing header together (RFC 8754 section 2)."""
    choice = str(message.get("choice") or next((key for key in _CHOICES if key in message), _CHOICES[0]))
    body, path, draft = message.get(choice) or {}, f"{path}.{choice}", Draft(problems)
    is_short = choice == "segment_routing_usid"
    segments = body.get("segment_list") or ()
    if len(segments) > _MOST_SEGMENTS:
        problems.invalid(f"{path}.segment_list", f"has {len(segments)} segments, of at most {_MOST_SEGMENTS}")
        return Routing(draft, None)
    last_entry = max(len(segments) - 1, 0)
    draft.put(8, _ROUTING_TYPE)
    # As the model has it: the first segment of a list of addresses is the destination, and not in the list.
    left = draft.put_field(body, Field("segments_left", 8), path, last_entry if is_short else len(segments))
    if not isinstance(left, int):
        problems.not_implemented(f"{path}.segments_left", "decides what checksums cover, and cannot vary within a flow")
    draft.put_field(body, Field("last_entry", 8), path, last_entry)
    draft.put(1)
    flags = ("protected", "oam", "alert")
    draft.put_fields(body.get("flags") or {}, f"{path}.flags", *(Field(name, 1) for name in flags))
    draft.put(4)
    draft.put_field(body, Field("tag", 16), path)
    first_at = draft.at
    for index, segment in enumerate(segments):
        here = f"{path}.segment_list[{index}]"
        if is_short:
            draft.put(8 * IPV6_BYTES, read_container(segment, here, problems))
        else:
            draft.put_field(segment, Field("segment", 128, 0, Kind.IPV6), here)
    if "pad_tlv" in body:
        _put_padding(draft, body["pad_tlv"], f"{path}.pad_tlv")
    return Routing(draft, first_at if segments and left != 0 else None)


_CHOICES: Final = ("segment_routing", "segment_routing_usid")


def _put_padding(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    """RFC 8754 section 2.1.1.2."""
    draft.put_field(message, Field("type", 8, _PADDING_TYPE), path)
    length = draft.put_field(message, Field("length", 8), path, _PADDING_BYTES)
    if not isinstance(length, int):
        draft.problems.not_implemented(f"{path}.length", "decides how long the header is, and cannot vary")
    elif (2 + length) % 8:
        draft.problems.invalid(f"{path}.length", f"is 6, 14, 22, ...: with {length} the header has no whole 8 bytes")
    else:
        draft.put_bytes(bytes(length))


def read_container(message: Mapping[str, Any], path: str, problems: Problems) -> int:
    """Reads an address that is a container: the bits of a locator, then short segments, each as long as its digits."""
    fields = (ipv6_address("locator"), Field("locator_length", 8, 32))
    locator, length = (
        Pattern(f"{path}.{field.name}", field.bits, field.kind, problems).read(message.get(field.name), field.default)
        for field in fields
    )
    if not isinstance(locator, int) or not isinstance(length, int):
        problems.not_implemented(path, "varies: give one locator and one locator_length")
        return 0
    digits = "".join(str(segment).removeprefix("0x").removeprefix("0X") for segment in message.get("usids") or ())
    room = 128 - length - 4 * len(digits)
    if room < 0:
        problems.invalid(path, f"has a locator of {length} bits and {len(digits)} digits, of at most 128 bits")
        return 0
    high = locator >> 128 - length << 4 * len(digits) if length else 0
    return (high | int(digits or "0", 16)) << room
