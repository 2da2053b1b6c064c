"""Headers above IP: UDP, TCP, ICMP, ICMPv6 and IGMPv1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nicbench.otg.draft import Draft, Field, ipv4_address
from nicbench.otg.header import IP_PROTOCOLS, Encode, Header

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
