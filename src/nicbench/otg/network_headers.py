"""Headers of the network layer: IPv4 with its options, IPv6 and ARP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nicbench.otg.draft import Addresses, Draft, Field, ipv4_address, ipv6_address, mac
from nicbench.otg.header import ETHER_TYPES, IP_PROTOCOLS, Encode, Header
from nicbench.otg.refusals import Problems

_ANY_HOST_INTERNAL: Final = 61
"""OTG's default of the protocol where nothing that is known follows (IANA)."""
_NO_NEXT_HEADER: Final = 59
"""RFC 8200 section 4.7."""
_IPV4_BYTES: Final = 20
_MOST_OPTION_BYTES: Final = 40
_TOS: Final = (("precedence", 3), ("delay", 1), ("throughput", 1), ("reliability", 1), ("monetary", 1), ("unused", 1))
_TIMESTAMP_FLAGS: Final = {
    "timestamps": 0,
    "address_and_timestamps": 1,
    "prespecified_address_and_timestamps": 3,
}


def ipv4(draft: Draft, header: Header) -> None:
    """RFC 791 section 3.1."""
    message, path, start = header.message, header.path, draft.at
    options = _encode_options(message.get("options") or (), f"{path}.options", draft.problems)
    end = start + _IPV4_BYTES + options.at
    draft.put_field(message, Field("version", 4, 4), path)
    draft.put_field(message, Field("header_length", 4, 5), path, (end - start) // 4)
    _put_priority(draft, message.get("priority") or {}, f"{path}.priority")
    draft.put_length(message, "total_length", path, counted_from=start)
    draft.put_fields(
        message,
        path,
        Field("identification", 16),
        Field("reserved", 1),
        Field("dont_fragment", 1),
        Field("more_fragments", 1),
        Field("fragment_offset", 13),
        Field("time_to_live", 8, 64),
    )
    protocol = IP_PROTOCOLS.get(header.next.kind or "", _ANY_HOST_INTERNAL)
    draft.put_field(message, Field("protocol", 8, _ANY_HOST_INTERNAL, tells=2), path, protocol)
    draft.put_checksum(message, "header_checksum", path, start=start, end=end)
    draft.addresses = Addresses(draft.at, 8)
    draft.put_fields(message, path, ipv4_address("src"), ipv4_address("dst"))
    draft.append(options)


def _put_priority(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    """The 8 bits of service: one number, type of service (RFC 1349), or DSCP (RFC 2474) and ECN (RFC 3168)."""
    choice = message.get("choice") or next((key for key in ("raw", "tos", "dscp") if key in message), "dscp")
    if choice == "raw":
        draft.put_field(message, Field("raw", 8), path)
    elif choice == "tos":
        draft.put_fields(message.get("tos") or {}, f"{path}.tos", *(Field(name, bits) for name, bits in _TOS))
    else:
        draft.put_fields(message.get("dscp") or {}, f"{path}.dscp", Field("phb", 6), Field("ecn", 2))


def _encode_options(options: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> Draft:
    """Puts the options of a header together, padded to 32 bits (RFC 791 section 3.1)."""
    draft = Draft(problems)
    for index, option in enumerate(options):
        choice = option.get("choice", "router_alert")
        here = f"{path}[{index}].{choice}"
        if choice == "router_alert":  # RFC 2113 section 2.1
            draft.put_bytes(bytes.fromhex("94040000"))
        elif choice == "end_of_options":
            draft.put_bytes(b"\0")
        elif choice == "custom":
            _custom_option(draft, option.get("custom") or {}, here)
        else:
            _timestamp_option(draft, option.get("timestamp") or {}, here)
    draft.put_bytes(bytes(-draft.at % 4))
    if draft.at > _MOST_OPTION_BYTES:
        problems.invalid(path, f"take {draft.at} bytes, of at most {_MOST_OPTION_BYTES}")
        return Draft(problems)
    return draft


def _custom_option(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    kinds = (Field("copied_flag", 1), Field("option_class", 2), Field("option_number", 5))
    draft.put_fields(message.get("type") or {}, f"{path}.type", *kinds)
    digits = str(message.get("value", "0000"))
    digits = digits[2:] if digits[:2] in ("0x", "0X") else digits
    try:
        value = bytes.fromhex(digits)
    except ValueError:
        draft.problems.invalid(f"{path}.value", "is no even number of hexadecimal digits")
        return
    length = message.get("length") or {}
    given = length.get("choice") == "value" or ("value" in length and "choice" not in length)
    own = int(length.get("value", 0)) if given else 2 + len(value)
    if own > 0xFF:
        draft.problems.invalid(f"{path}.length.value", f"{own} does not fit into 8 bits")
        return
    draft.put(8, own)
    draft.put_bytes(value)


def _timestamp_option(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    """RFC 791 section 3.1, "Internet Timestamp"."""
    form = message.get("format") or {}
    choice = form.get("choice") or next((key for key in _TIMESTAMP_FLAGS if key in form), "timestamps")
    entries = form.get(choice) or ()
    with_address = choice != "timestamps"
    start = draft.at
    draft.put(8, 68)
    draft.put(8, 4 + len(entries) * (8 if with_address else 4))
    pointer = message.get("pointer") or {}
    draft.put(8, int(pointer.get("value", 5)) if pointer.get("choice", "value") == "value" else 5)
    draft.put_field(message, Field("overflow", 4), path)
    draft.put(4, _TIMESTAMP_FLAGS[choice])
    for index, entry in enumerate(entries):
        here = f"{path}.format.{choice}[{index}]"
        if with_address:
            draft.put_field(entry, ipv4_address("address", tells=0), here)
        draft.put_field(entry, Field("timestamp", 32), here)
    if draft.at - start > _MOST_OPTION_BYTES:
        draft.problems.invalid(f"{path}.format", f"takes {draft.at - start} bytes, of at most {_MOST_OPTION_BYTES}")


def ipv6(draft: Draft, header: Header) -> None:
    """RFC 8200 section 3."""
    message, path = header.message, header.path
    if message.get("dst_usids"):
        draft.problems.not_implemented(f"{path}.dst_usids", "micro segments are not encoded: give dst")
    specs = (Field("version", 4, 6), Field("traffic_class", 8), Field("flow_label", 20, tells=2))
    draft.put_fields(message, path, *specs)
    draft.put_length(message, "payload_length", path, counted_from=draft.at - 4 + 40)
    following = IP_PROTOCOLS.get(header.next.kind or "", _NO_NEXT_HEADER)
    draft.put_field(message, Field("next_header", 8, _NO_NEXT_HEADER, tells=2), path, following)
    draft.put_field(message, Field("hop_limit", 8, 64), path)
    draft.addresses = Addresses(draft.at, 32)
    draft.put_fields(message, path, ipv6_address("src"), ipv6_address("dst"))


def arp(draft: Draft, header: Header) -> None:
    """RFC 826."""
    specs = (
        Field("hardware_type", 16, 1),
        Field("protocol_type", 16, ETHER_TYPES["ipv4"]),
        Field("hardware_length", 8, 6),
        Field("protocol_length", 8, 4),
        Field("operation", 16, 1),
        mac("sender_hardware_addr"),
        ipv4_address("sender_protocol_addr", tells=1),
        mac("target_hardware_addr"),
        ipv4_address("target_protocol_addr", tells=1),
    )
    draft.put_fields(header.message, header.path, *specs)


NETWORK: Final[Mapping[str, Encode]] = {"ipv4": ipv4, "ipv6": ipv6, "arp": arp}
