"""Membership reports of hosts, byte by byte: IGMPv2 (RFC 2236), IGMPv3 (RFC 3376), MLDv1 (RFC 2710), MLDv2 (RFC 3810).

Each is a whole frame without FCS. What follows the packet in it is not the packet's, so that a signature may.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from nicbench.core.headers import RECORDS_OF_A_REPORT, group_mac

Address = IPv4Address | IPv6Address

# RFC 3376 section 4.2.12, RFC 3810 section 5.2.12: a host joins by "exclude nothing", and leaves by "include nothing".
_TO_INCLUDE, _TO_EXCLUDE = 3, 4
_ALL_ROUTERS: Final = {4: "224.0.0.2", 6: "ff02::2"}
_REPORTS_TO: Final = {4: "224.0.0.22", 6: "ff02::16"}
_IGMP, _ICMPV6, _HOP_BY_HOP = 2, 58, 0
# Types of messages: version 3 or 2; joining and leaving by the version before.
_IGMP_V3, _IGMP_V2, _IGMP_LEAVE = 0x22, 0x16, 0x17
_MLD_V2, _MLD_V1, _MLD_DONE = 143, 131, 132
# RFC 2113: a router looks into the packet. RFC 2711: the same of IPv6, here that it is of MLD.
_ALERT_4: Final = bytes((0x94, 0x04, 0, 0))
_ALERT_6: Final = bytes((_ICMPV6, 0, 0x05, 0x02, 0, 0, 1, 0))


def reports(mac: str, source: str, groups: Sequence[Address], *, leave: bool, older: bool) -> Iterator[str]:
    """Yields the frames, in hexadecimal, by which a port joins these groups, or leaves them.

    ``source`` is an IPv4 address; over IPv6 the sender is the link-local address of ``mac``.
    """
    version = groups[0].version
    each = 1 if older else RECORDS_OF_A_REPORT[version]
    for first in range(0, len(groups), each):
        some = groups[first : first + each]
        yield (_igmp(mac, source, some, leave, older) if version == 4 else _mld(mac, some, leave, older)).hex()


def _igmp(mac: str, source: str, groups: Sequence[Address], leave: bool, older: bool) -> bytes:
    if older:
        (group,) = groups
        to = _ALL_ROUTERS[4] if leave else str(group)
        message = struct.pack("!BBH", _IGMP_LEAVE if leave else _IGMP_V2, 0, 0) + group.packed
    else:
        to = _REPORTS_TO[4]
        message = struct.pack("!BBHHH", _IGMP_V3, 0, 0, 0, len(groups)) + _records(groups, leave)
    message = _with_sum(message, 2, _checksum(message))
    # RFC 3376 section 4: a time to live of 1, the precedence of internetwork control, the router alert option.
    length = 24 + len(message)
    header = struct.pack("!BBHHHBBH", 0x46, 0xC0, length, 0, 0, 1, _IGMP, 0)
    header += IPv4Address(source).packed + IPv4Address(to).packed + _ALERT_4
    return _ethernet(mac, to, 0x0800) + _with_sum(header, 10, _checksum(header)) + message


def _mld(mac: str, groups: Sequence[Address], leave: bool, older: bool) -> bytes:
    if older:
        (group,) = groups
        to = _ALL_ROUTERS[6] if leave else str(group)
        message = struct.pack("!BBHHH", _MLD_DONE if leave else _MLD_V1, 0, 0, 0, 0) + group.packed
    else:
        to = _REPORTS_TO[6]
        message = struct.pack("!BBHHH", _MLD_V2, 0, 0, 0, len(groups)) + _records(groups, leave)
    ends = _link_local(mac).packed + IPv6Address(to).packed
    pseudo = ends + struct.pack("!II", len(message), _ICMPV6)
    message = _with_sum(message, 2, _checksum(pseudo + message))
    # RFC 3810 section 5: a hop limit of 1, from a link-local address, the router alert option.
    header = struct.pack("!IHBB", 6 << 28, len(_ALERT_6) + len(message), _HOP_BY_HOP, 1) + ends
    return _ethernet(mac, to, 0x86DD) + header + _ALERT_6 + message


def _records(groups: Sequence[Address], leave: bool) -> bytes:
    kind = _TO_INCLUDE if leave else _TO_EXCLUDE
    return b"".join(struct.pack("!BBH", kind, 0, 0) + group.packed for group in groups)


def _ethernet(mac: str, to: str, ethertype: int) -> bytes:
    return bytes.fromhex(group_mac(to).replace(":", "")) + bytes.fromhex(mac.replace(":", "")) + ethertype.to_bytes(2)


def _link_local(mac: str) -> IPv6Address:
    """Returns the address of a MAC address on its link (RFC 4291 appendix A)."""
    own = bytearray(bytes.fromhex(mac.replace(":", "")))
    own[0] ^= 2
    return IPv6Address(b"\xfe\x80" + bytes(6) + own[:3] + b"\xff\xfe" + own[3:])


def _checksum(data: bytes) -> int:
    """Returns the Internet checksum (RFC 1071) of bytes whose own checksum is 0."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _with_sum(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + value.to_bytes(2) + data[at + 2 :]
