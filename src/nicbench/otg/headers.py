"""The arguments of an encoder, and the numbers by which headers announce the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.draft import Addresses, Draft, Field, Kind, Pattern, ipv4_address, ipv6_address, is_given, mac
from nicbench.otg.model import Problems
from nicbench.otg.segment_routing import IPV6_BYTES, encode_routing, read_container


@dataclass(frozen=True, slots=True)
class Next:
    """The header that follows: its kind in OTG, None at the end, and its message."""

    kind: str | None
    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a packet: its message, its path in the configuration, and what follows."""

    message: Mapping[str, Any]
    path: str
    next: Next


Encode = Callable[[Draft, Header], None]

ETHER_TYPES: Final = {
    "ipv4": 0x0800,
    "arp": 0x0806,
    "vlan": 0x8100,
    "ipv6": 0x86DD,
    "mpls": 0x8847,
    "ppp": 0x880B,
    "ethernet": 0x6558,
}
"""EtherTypes (IEEE registration authority), also the protocol types of GRE (RFC 2784, RFC 1701)."""
LAST_RESORT_ETHER_TYPE: Final = 0xFFFF
"""OTG's default where nothing that is known follows; the reserved EtherType."""

IP_PROTOCOLS: Final = {
    "icmp": 1,
    "igmpv1": 2,
    "ipv4": 4,
    "tcp": 6,
    "udp": 17,
    "ipv6": 41,
    "ipv6_extension_header": 43,
    "gre": 47,
    "icmpv6": 58,
    "mpls": 137,
}
"""IP protocol numbers (IANA). The extension header of OTG is a routing header."""

PPP_PROTOCOLS: Final = {"ipv4": 0x0021, "ipv6": 0x0057, "mpls": 0x0281}
"""PPP protocol numbers (IANA)."""


_VLAN_TYPE: Final = ETHER_TYPES["vlan"]
_PAUSE_ADDRESS: Final = 0x0180C2000001
_MAC_CONTROL: Final = 0x8808


def ethernet(draft: Draft, header: Header) -> None:
    """IEEE 802.3 section 3.1.1. The EtherType of a VLAN tag that follows stands here, and is its ``tpid``."""
    draft.put_fields(header.message, header.path, mac("dst"), mac("src"))
    _put_type(draft, header, "ether_type")
    queue = Pattern(f"{header.path}.pfc_queue", 3, Kind.NUMBER, draft.problems)
    if queue.read(header.message.get("pfc_queue"), 0) != 0:
        draft.problems.not_implemented(f"{header.path}.pfc_queue", "queues of priority flow control are not chosen")


def vlan(draft: Draft, header: Header) -> None:
    """IEEE 802.1Q section 9.6: the tag's control information, and the type of what follows."""
    specs = (Field("priority", 3), Field("cfi", 1), Field("id", 12, tells=1))
    draft.put_fields(header.message, header.path, *specs)
    _put_type(draft, header, None)


def _put_type(draft: Draft, header: Header, name: str | None) -> None:
    """Adds the type of what follows: of a tag its ``tpid``; else as given by ``name``; else the known number."""
    following = header.next
    given = header.message.get(name) if name else None
    own = bool(name) and is_given(given)
    if following.kind == "vlan" and is_given(following.message.get("tpid")):
        if own and given != following.message["tpid"]:
            draft.problems.invalid(
                f"{header.path}.{name}", "the vlan header after it has a tpid, which stands there: give one of both"
            )
        pattern = Pattern(f"{header.path}: tpid of the vlan header after it", 16, Kind.NUMBER, draft.problems)
        draft.note_tags(following.message["tpid"], 16, f"{following.kind}.tpid")
        draft.put(16, pattern.read(following.message["tpid"], _VLAN_TYPE), tells=1)
        return
    auto = ETHER_TYPES.get(following.kind or "", LAST_RESORT_ETHER_TYPE)
    if name:
        draft.put_field(header.message, Field(name, 16, LAST_RESORT_ETHER_TYPE, tells=1), header.path, auto)
    else:
        draft.put(16, auto, tells=1)


def mpls(draft: Draft, header: Header) -> None:
    """RFC 3032 section 2.1; the last of a stack has the bottom bit."""
    message, path = header.message, header.path
    draft.put_field(message, Field("label", 20, 16, tells=1), path)
    draft.put_field(message, Field("traffic_class", 3), path)
    draft.put_field(message, Field("bottom_of_stack", 1, 1), path, 0 if header.next.kind == "mpls" else 1)
    draft.put_field(message, Field("time_to_live", 8, 64), path)


def ppp(draft: Draft, header: Header) -> None:
    """RFC 1662 section 3.1."""
    message, path = header.message, header.path
    draft.put_fields(message, path, Field("address", 8, 0xFF), Field("control", 8, 0x03))
    protocol = PPP_PROTOCOLS.get(header.next.kind or "", PPP_PROTOCOLS["ipv4"])
    draft.put_field(message, Field("protocol_type", 16, PPP_PROTOCOLS["ipv4"]), path, protocol)


def ethernet_pause(draft: Draft, header: Header) -> None:
    """IEEE 802.3 annex 31B."""
    specs = (
        mac("dst", _PAUSE_ADDRESS),
        mac("src"),
        Field("ether_type", 16, _MAC_CONTROL),
        Field("control_op_code", 16, 0x0001),
        Field("time", 16),
    )
    draft.put_fields(header.message, header.path, *specs)


def pfc_pause(draft: Draft, header: Header) -> None:
    """IEEE 802.1Q section 36 (priority-based flow control)."""
    specs = (
        mac("dst", _PAUSE_ADDRESS),
        mac("src"),
        Field("ether_type", 16, _MAC_CONTROL),
        Field("control_op_code", 16, 0x0101),
        Field("class_enable_vector", 16),
        *(Field(f"pause_class_{priority}", 16) for priority in range(8)),
    )
    draft.put_fields(header.message, header.path, *specs)


def custom(draft: Draft, header: Header) -> None:
    """Bytes as the client gives them."""
    digits = str(header.message.get("bytes", "")).replace(":", "").replace(" ", "")
    digits = digits[2:] if digits[:2] in ("0x", "0X") else digits
    try:
        draft.note_tags(header.message, 4 * len(digits), header.path)
        draft.put_bytes(bytes.fromhex(digits))
    except ValueError:
        draft.problems.invalid(f"{header.path}.bytes", "is no even number of hexadecimal digits")


LINK: Final[Mapping[str, Encode]] = {
    "ethernet": ethernet,
    "vlan": vlan,
    "mpls": mpls,
    "ppp": ppp,
    "ethernetpause": ethernet_pause,
    "pfcpause": pfc_pause,
    "custom": custom,
}


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
    specs = (Field("version", 4, 6), Field("traffic_class", 8), Field("flow_label", 20, tells=2))
    draft.put_fields(message, path, *specs)
    draft.put_length(message, "payload_length", path, counted_from=draft.at - 4 + 40)
    following = IP_PROTOCOLS.get(header.next.kind or "", _NO_NEXT_HEADER)
    draft.put_field(message, Field("next_header", 8, _NO_NEXT_HEADER, tells=2), path, following)
    draft.put_field(message, Field("hop_limit", 8, 64), path)
    draft.addresses = Addresses(draft.at, 32)
    draft.put_field(message, ipv6_address("src"), path)
    if message.get("dst_usids"):
        draft.put(128, read_container(message["dst_usids"], f"{path}.dst_usids", draft.problems))
    else:
        draft.put_field(message, ipv6_address("dst"), path)


def ipv6_extension_header(draft: Draft, header: Header) -> None:
    """RFC 8200 section 4.4. Checksums of what follows cover the last segment, unless the packet is there already."""
    message, path, addresses = header.message, header.path, draft.addresses
    if addresses is None or addresses.count_bytes != 2 * IPV6_BYTES:
        draft.problems.invalid(path, "follows an ipv6 header: put one before it")
        return
    routing = encode_routing(message.get("routing") or {}, f"{path}.routing", draft.problems)
    following = IP_PROTOCOLS.get(header.next.kind or "", _NO_NEXT_HEADER)
    draft.put_field(message, Field("next_header", 8, _NO_NEXT_HEADER), path, following)
    draft.put_field(message, Field("hdr_ext_len", 8), path, max((2 + routing.draft.at) // 8 - 1, 0))
    if routing.last_segment_at is not None:
        addresses.destination_at = draft.at + routing.last_segment_at
    draft.append(routing.draft)


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


NETWORK: Final[Mapping[str, Encode]] = {
    "ipv4": ipv4,
    "ipv6": ipv6,
    "ipv6_extension_header": ipv6_extension_header,
    "arp": arp,
}


_TCP_FLAGS: Final = (
    "ecn_ns",
    "ecn_cwr",
    "ecn_echo",
    "ctl_urg",
    "ctl_ack",
    "ctl_psh",
    "ctl_rst",
    "ctl_syn",
    "ctl_fin",
)
_TCP_WORDS: Final = 5
_PORTS: Final = (Field("src_port", 16, tells=2), Field("dst_port", 16, tells=2))


def udp(draft: Draft, header: Header) -> None:
    """RFC 768. A length that is not given is that of the datagram."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, *_PORTS)
    draft.put_length(message, "length", path, counted_from=start)
    protocol = IP_PROTOCOLS["udp"]
    draft.put_checksum(message, "checksum", path, start=start, end=None, protocol=protocol, zero_as_ffff=True)


def tcp(draft: Draft, header: Header) -> None:
    """RFC 9293 section 3.1. A data offset that is not given is that of a header without options."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, *_PORTS, Field("seq_num", 32), Field("ack_num", 32))
    draft.put_field(message, Field("data_offset", 4, _TCP_WORDS), path)
    draft.put(3)
    draft.put_fields(message, path, *(Field(name, 1) for name in _TCP_FLAGS), Field("window", 16))
    draft.put_checksum(message, "checksum", path, start=start, end=None, protocol=IP_PROTOCOLS["tcp"])
    draft.put(16)  # the urgent pointer, which the model does not have


def icmp(draft: Draft, header: Header) -> None:
    """RFC 792, echo."""
    message, path = _echo(header)
    start = draft.at
    draft.put_fields(message, path, Field("type", 8, 8, tells=2), Field("code", 8, tells=2))
    draft.put_checksum(message, "checksum", path, start=start, end=None)
    draft.put_fields(message, path, Field("identifier", 16, tells=2), Field("sequence_number", 16, tells=2))


def icmpv6(draft: Draft, header: Header) -> None:
    """RFC 4443 section 4, echo."""
    message, path = _echo(header)
    start = draft.at
    draft.put_fields(message, path, Field("type", 8, 128, tells=2), Field("code", 8, tells=2))
    draft.put_checksum(message, "checksum", path, start=start, end=None, protocol=IP_PROTOCOLS["icmpv6"])
    draft.put_fields(message, path, Field("identifier", 16, tells=2), Field("sequence_number", 16, tells=2))


def _echo(header: Header) -> tuple[Mapping[str, Any], str]:
    return header.message.get("echo") or {}, f"{header.path}.echo"


def igmpv1(draft: Draft, header: Header) -> None:
    """RFC 1112 appendix I."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, Field("version", 4, 1), Field("type", 4, 1), Field("unused", 8))
    draft.put_checksum(message, "checksum", path, start=start, end=start + 8)
    draft.put_field(message, ipv4_address("group_address"), path)


TRANSPORT: Final[Mapping[str, Encode]] = {"udp": udp, "tcp": tcp, "icmp": icmp, "icmpv6": icmpv6, "igmpv1": igmpv1}


_GTP_EXTENSION_WORDS: Final = 2
"""An extension header of OTG's has 48 bits of contents: with length and next type, two words of 32 bits."""


def gre(draft: Draft, header: Header) -> None:
    """RFC 2784 section 2.1. Checksum and reserved1 are there only where ``checksum_present`` is 1."""
    message, path, start = header.message, header.path, draft.at
    present = draft.put_field(message, Field("checksum_present", 1), path)
    draft.put_fields(message, path, Field("reserved0", 12), Field("version", 3))
    protocol = ETHER_TYPES.get(header.next.kind or "", ETHER_TYPES["ipv4"])
    draft.put_field(message, Field("protocol", 16, ETHER_TYPES["ipv4"], tells=2), path, protocol)
    _require_constant(draft, present, f"{path}.checksum_present")
    if present == 1:
        draft.put_checksum(message, "checksum", path, start=start, end=None)
        draft.put_field(message, Field("reserved1", 16), path)
        return
    for name in ("checksum", "reserved1"):
        if (message.get(name) or {}).get("choice") not in (None, "generated") or "value" in (message.get(name) or {}):
            draft.problems.invalid(f"{path}.{name}", "is not sent where checksum_present is 0: set that to 1")


def vxlan(draft: Draft, header: Header) -> None:
    """RFC 7348 section 5. What follows is a whole Ethernet frame, whose lengths leave room for its FCS."""
    specs = (Field("flags", 8, 8), Field("reserved0", 24), Field("vni", 24, tells=2), Field("reserved1", 8))
    draft.put_fields(header.message, header.path, *specs)
    draft.inner = True


def gtpv1(draft: Draft, header: Header) -> None:
    """3GPP TS 29.060 section 6. The optional word is there where one of the flags E, S and PN is 1."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, Field("version", 3, 1), Field("protocol_type", 1, 1), Field("reserved", 1))
    flags = {name: draft.put_field(message, Field(name, 1), path) for name in ("e_flag", "s_flag", "pn_flag")}
    for name, flag in flags.items():
        _require_constant(draft, flag, f"{path}.{name}")
    draft.put_field(message, Field("message_type", 8), path)
    draft.put_length(message, "message_length", path, counted_from=start + 8)
    draft.put_field(message, Field("teid", 32, tells=2), path)
    optional = (Field("squence_number", 16), Field("n_pdu_number", 8), Field("next_extension_header_type", 8))
    if 1 in flags.values():
        draft.put_fields(message, path, *optional)
    else:
        for field in optional:
            if message.get(field.name):
                draft.problems.invalid(f"{path}.{field.name}", "is not sent without e_flag, s_flag or pn_flag: set one")
    extensions = message.get("extension_headers") or ()
    if extensions and flags["e_flag"] != 1:
        draft.problems.invalid(f"{path}.extension_headers", "are announced by e_flag: set it to 1")
    for index, extension in enumerate(extensions):
        _gtp_extension(draft, extension, f"{path}.extension_headers[{index}]")


def _gtp_extension(draft: Draft, message: Mapping[str, Any], path: str) -> None:
    """3GPP TS 29.281 section 5.2.1."""
    specs = (
        Field("extension_length", 8, _GTP_EXTENSION_WORDS),
        Field("contents", 48),
        Field("next_extension_header", 8),
    )
    draft.put_fields(message, path, *specs)


def gtpv2(draft: Draft, header: Header) -> None:
    """3GPP TS 29.274 section 5.1. The tunnel's identifier is there where ``teid_flag`` is 1."""
    message, path, start = header.message, header.path, draft.at
    draft.put_fields(message, path, Field("version", 3, 2), Field("piggybacking_flag", 1))
    flag = draft.put_field(message, Field("teid_flag", 1), path)
    _require_constant(draft, flag, f"{path}.teid_flag")
    draft.put_fields(message, path, Field("spare1", 3), Field("message_type", 8))
    draft.put_length(message, "message_length", path, counted_from=start + 4)
    if flag == 1:
        draft.put_field(message, Field("teid", 32, tells=2), path)
    elif message.get("teid"):
        draft.problems.invalid(f"{path}.teid", "is not sent where teid_flag is 0: set that to 1")
    draft.put_fields(message, path, Field("sequence_number", 24), Field("spare2", 8))


def _require_constant(draft: Draft, flag: object, path: str) -> None:
    if not isinstance(flag, int):
        draft.problems.not_implemented(path, "decides which fields follow, and cannot vary within a flow")


TUNNEL: Final[Mapping[str, Encode]] = {"gre": gre, "vxlan": vxlan, "gtpv1": gtpv1, "gtpv2": gtpv2}


ENCODERS: Final[Mapping[str, Encode]] = {**LINK, **NETWORK, **TRANSPORT, **TUNNEL}
"""How each header class is encoded, by its name in OTG."""
_MOST_HEADERS: Final = 64
_LEAVE_ADDRESSES: Final = frozenset({*NETWORK, "custom"})
"""Headers behind which a checksum still covers the addresses; custom bytes may be an extension header of IPv6."""
_NO_NEXT: Final = Next(None, {})


def encode_packet(packet: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> Draft:
    """Assembles the headers of a packet; without any, an Ethernet header with OTG's defaults."""
    draft = Draft(problems)
    if len(packet) > _MOST_HEADERS:
        problems.invalid(path, f"has {len(packet)} headers, of at most {_MOST_HEADERS}")
        return draft
    kinds = [str(header.get("choice", "ethernet")) for header in packet] or ["ethernet"]
    bodies: list[Mapping[str, Any]] = [header.get(kind) or {} for header, kind in zip(packet, kinds, strict=False)]
    bodies = bodies or [{}]
    for index, (kind, body) in enumerate(zip(kinds, bodies, strict=True)):
        here = f"{path}[{index}].{kind}"
        last = index + 1 == len(kinds)
        following = _NO_NEXT if last else Next(kinds[index + 1], bodies[index + 1])
        encode = ENCODERS.get(kind)
        if encode is None:
            problems.not_implemented(here, f"this header is not encoded; {', '.join(sorted(ENCODERS))} are")
        else:
            encode(draft, Header(body, here, following))
        if kind not in _LEAVE_ADDRESSES:
            draft.addresses = None
    return draft
