"""The streams of frames to multicast groups or to all stations, and of the reports by which ports join and leave. Pure.

The frames are one stream of the engine, which arrives at the first receiving port; each further port has its copy.
Frames to single stations may be between them, and a burden may come along.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from nicbench.core.frame_size import Size
from nicbench.core.headers import (
    BURDEN,
    JOIN,
    LEAVE,
    RECORDS_OF_A_REPORT,
    TO_ALL,
    UNICAST,
    WATCHED,
    Groups,
    group_address,
    group_mac,
)
from nicbench.core.traffic import StreamSpec
from nicbench.core.trial import TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_streams import ip_layer, plain_packet, sizes_of, transport_layer

# Membership reports of hosts, byte by byte: IGMPv2 (RFC 2236), IGMPv3 (RFC 3376), MLDv1 (RFC 2710), MLDv2 (RFC 3810).
#
# Each is a whole frame without FCS. What follows the packet in it is not the packet's, so that a signature may.


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


_LEAVE_AFTER_S: Final = 0.05
"""The time after the last frame at which the ports leave, where nothing else was asked for."""
_REPORTS_PER_S: Final = 1000.0
_ALL_STATIONS: Final = {4: "255.255.255.255", 6: "ff02::1"}
_BROADCAST: Final = "ff:ff:ff:ff:ff:ff"
_SIZES: Final = ("frame_bytes", "sizes", "size_sweep")
_SIGNATURE_BYTES, _FCS_BYTES, _SMALLEST_FRAME = 16, 4, 64


def last_s(groups: Groups, request: TrialRequest) -> float:
    """Returns when the last frame of a trial is due, its reports included."""
    return max(_leave_s(groups, request), groups.send_s + request.duration_s)


def _leave_s(groups: Groups, request: TrialRequest) -> float:
    if groups.leave_s is not None:
        return groups.leave_s
    return groups.send_s + request.duration_s + (_LEAVE_AFTER_S if groups.groups else 0.0)


def beside_streams(streams: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Returns the names of the streams that are not load."""
    return frozenset(one["name"] for one in streams if one["name"].endswith((JOIN, LEAVE, WATCHED, BURDEN)))


def broadcast_streams(streams: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Returns the names of the streams that ``with_broadcasts`` added; streams of a bench file have no blanks."""
    return frozenset(one["name"] for one in streams if one["name"].endswith(f" {TO_ALL}"))


def with_broadcasts(
    streams: Sequence[dict[str, Any]], ways: Sequence[Addressing], size: Size, share: float
) -> list[dict[str, Any]]:
    """Returns the streams, with broadcasts in place of a share of each port's frames (RFC 2544 section 11.1).

    They are as large as the port's first stream, and arrive at every other port of the ways. A port that sends as fast
    as it can has none.
    """
    lowered = [{**one, **_share_of(one, 1.0 - share)} for one in streams]
    ports = sorted({port for way in ways for port in (way.transmit, way.receive)})
    for way in {way.transmit: way for way in reversed(ways)}.values():
        of_port = [one for one in streams if one["transmit_port"] == way.transmit]
        rate = sum(one["rate_frames_per_s"] for one in of_port)
        if not rate:
            continue
        own_sizes: dict[str, Any] = {key: of_port[0][key] for key in _SIZES if key in of_port[0]}
        frames = [one["frames"] for one in of_port if "frames" in one]
        whole = {"rate_frames_per_s": rate, **({"frames": sum(frames)} if len(frames) == len(of_port) else {})}
        sent = {
            "transmit_port": way.transmit,
            **_share_of(whole, share),
            "begins_s": 0.5 / rate,
            **_to_all(way),
            **(own_sizes or sizes_of(size)),
        }
        copied: dict[str, Any] = {}
        for port in (port for port in ports if port != way.transmit):
            name = f"{way.transmit}->{port} {TO_ALL}"
            number = len(lowered)
            lowered.append({"name": name, "receive_port": port, **sent, **copied})
            copied = copied or {"copy_of": number}
    return lowered


def _share_of(one: dict[str, Any], share: float) -> dict[str, Any]:
    """The rate of a share of its frames, and their number where there is one."""
    frames = {"frames": max(1, round(share * one["frames"]))} if "frames" in one else {}
    return {"rate_frames_per_s": share * one["rate_frames_per_s"], **frames}


def group_requests(
    ways: Sequence[Addressing], size: Size, groups: Groups, request: TrialRequest
) -> list[dict[str, Any]]:
    """Returns the streams: the load and its copies, single stations, reports of each member, and the burden.

    ``ways`` are those from the first port to the others and, for a burden, back.
    """
    there = [way for way in ways if way.transmit == ways[0].transmit]
    members = there[: groups.members] if groups.groups else there
    load = _load(there[0], size, groups, request)
    copies = [
        {**load, "name": _name(way, way in members), "receive_port": way.receive, "copy_of": 0} for way in there[1:]
    ]
    if not groups.groups:
        return [load, *copies]
    unicast = _unicast(members, size, groups, request) if groups.unicast and request.load_frames_per_s else ()
    joins = [one for way in members for one in _reports(way, there[0].transmit, groups, groups.join_s, leave=False)]
    leave_s = _leave_s(groups, request)
    leaves = [one for way in members for one in _reports(way, there[0].transmit, groups, leave_s, leave=True)]
    return [load, *copies, *unicast, *joins, *leaves, *_burden(ways, size, groups, request)]


def _name(way: Addressing, is_member: bool) -> str:
    return f"{way.transmit}->{way.receive}" + ("" if is_member else f" {WATCHED}")


def _load(way: Addressing, size: Size, groups: Groups, request: TrialRequest) -> dict[str, Any]:
    """One flow for each group, or a single one to all stations."""
    rate = (request.load_frames_per_s or 0.0) * (1.0 - groups.unicast)
    frames = request.frames or max(1, math.floor(rate * request.duration_s))
    return {
        "name": _name(way, True),
        "transmit_port": way.transmit,
        "receive_port": way.receive,
        "rate_frames_per_s": rate,
        "begins_s": groups.send_s,
        **({"frames": frames} if rate else {}),
        **(_to_groups(way, groups.groups) if groups.groups else _to_all(way)),
        **sizes_of(size),
    }


def _to_groups(way: Addressing, groups: int) -> dict[str, Any]:
    first = str(group_address(way.ip))
    destination = {"first": first, "count": groups, "together": groups > 1}
    return {"flows": groups, "layers": _layers(way, {"first": group_mac(first), "count": groups}, destination)}


def _to_all(way: Addressing) -> dict[str, Any]:
    return {"flows": 1, "layers": _layers(way, _BROADCAST, {"first": _ALL_STATIONS[way.ip], "count": 1})}


def _layers(way: Addressing, mac: dict[str, Any] | str, destination: dict[str, Any]) -> list[dict[str, Any]]:
    plain = StreamSpec(name="all", share=1.0)
    return [
        {"layer": "ethernet", "source": way.source_mac, "destination": mac},
        ip_layer(way.ip, {"first": way.source_address, "count": 1}, destination, plain),
        transport_layer(plain),
    ]


def _unicast(
    members: Sequence[Addressing], size: Size, groups: Groups, request: TrialRequest
) -> Iterator[dict[str, Any]]:
    """Frames to a station at each member's port in turn, between those to groups (RFC 3918 section 4.1)."""
    every = (request.load_frames_per_s or 0.0) * groups.unicast
    for number, way in enumerate(members):
        begins_s = groups.send_s + (number + 0.5) / every
        yield _plain(way, UNICAST, size, every / len(members), begins_s, request.duration_s)


def _burden(ways: Sequence[Addressing], size: Size, groups: Groups, request: TrialRequest) -> Iterator[dict[str, Any]]:
    """Frames of each burdening port to each other one, from the beginning to the last frame of the load."""
    burden = groups.burden
    if burden is None:
        return
    there = {way.receive: way for way in ways if way.transmit == ways[0].transmit}
    back = {way.transmit: way for way in ways if way.receive == ways[0].transmit}
    ports = sorted(there)[-burden.ports :]
    others = len(ports) - 1
    for own, here in enumerate(ports):
        for turn in range(others):
            to = ports[(own + 1 + turn) % len(ports)]
            # A frame to a router bears the router's address, whatever port it leaves through.
            switched = back[here].destination_mac == there[here].source_mac
            mac = there[to].destination_mac if switched else back[here].destination_mac
            way = replace(
                back[here], receive=to, destination_mac=mac, destination_address=there[to].destination_address
            )
            begins_s = turn / burden.rate
            yield _plain(way, BURDEN, size, burden.rate / others, begins_s, groups.send_s + request.duration_s)


def _plain(way: Addressing, kind: str, size: Size, rate: float, begins_s: float, duration_s: float) -> dict[str, Any]:
    """Frames of one flow to a single station, as many as are due in ``duration_s``."""
    return {
        "name": f"{way.transmit}->{way.receive} {kind}",
        "transmit_port": way.transmit,
        "receive_port": way.receive,
        "rate_frames_per_s": rate,
        "begins_s": begins_s,
        "frames": max(1, math.floor(rate * duration_s)),
        "flows": 1,
        "layers": [
            {"layer": "ethernet", "source": way.source_mac, "destination": way.destination_mac},
            *plain_packet(way),
        ],
        **sizes_of(size),
    }


def _reports(way: Addressing, to: int, groups: Groups, begins_s: float, *, leave: bool) -> Iterator[dict[str, Any]]:
    """The reports that the receiving port of a way sends; what becomes of them is the DUT's affair."""
    every = [group_address(way.ip, number) for number in range(groups.groups)]
    source = way.destination_address if way.ip == 4 else "0.0.0.0"  # noqa: S104 - no address of IPv4 is needed
    frames = reports(way.destination_mac, source, every, leave=leave, older=groups.older)
    for number, frame in enumerate(frames):
        yield {
            "name": f"{way.receive}->{to} {number} {LEAVE if leave else JOIN}",
            "transmit_port": way.receive,
            "receive_port": to,
            "rate_frames_per_s": _REPORTS_PER_S,
            "begins_s": begins_s + number / _REPORTS_PER_S,
            "frames": 1,
            "flows": 1,
            "frame_bytes": max(_SMALLEST_FRAME, len(frame) // 2 + _SIGNATURE_BYTES + _FCS_BYTES),
            "layers": [{"layer": "raw", "hex": frame}],
        }
