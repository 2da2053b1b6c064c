"""The arguments of an encoder, and the numbers by which headers announce the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.draft import Draft


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
    "gre": 47,
    "icmpv6": 58,
    "mpls": 137,
}
"""IP protocol numbers (IANA)."""

PPP_PROTOCOLS: Final = {"ipv4": 0x0021, "ipv6": 0x0057, "mpls": 0x0281}
"""PPP protocol numbers (IANA)."""
