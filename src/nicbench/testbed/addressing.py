"""The ways of frames through a DUT and their addresses: the benchmark networks of RFC 2544 appendix C.2.2 (IPv4) and
RFC 5180 section 8 (IPv6).

With two ports 198.18.0.0/16 and 2001:2:0:0::/50 lie behind port 0, 198.19.0.0/16 and 2001:2:0:8000::/50 behind port 1.
With more ports the even ones share the networks of port 0 and the odd ones those of port 1, in equal parts. The ports'
own subnets are small parts of these networks, and streams sweep addresses outside them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from nicbench.core.errors import UsageError
from nicbench.core.frozen import frozen
from nicbench.core.headers import FieldValue, Sweep
from nicbench.core.pattern import Way
from nicbench.core.traffic import StreamSpec
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import Testbed

# 64.0 to 191.255 of each /16: four times the 8192 flows that a bench file may ask for.
SWEPT_ADDRESSES = 32_768
MOST_PORTS = 64

_NETWORKS = {4: ("198.18.0.0/16", "198.19.0.0/16"), 6: ("2001:2::/50", "2001:2:0:8000::/50")}
_FIRST_SWEPT_BYTE = 64
# The fourth group of the IPv6 address begins here, above the ports' own subnets.
_FIRST_SWEPT_SUBNET = 0x100


def network_behind(ip: int, port: int, ports: int = 2) -> str:
    """The network that is routed towards the tester's port of this index, out of ``ports``."""
    if _parts(ports) == 1:
        return _NETWORKS[check_version(ip)][port % 2]
    length = 17 + (_parts(ports).bit_length() - 1) if check_version(ip) == 4 else 64
    first = swept_address(ip, port, ports).removesuffix("1" if ip == 6 else "")
    return f"{first}/{length}"


def swept_address(ip: int, port: int, ports: int = 2) -> str:
    """The first of the ``swept_addresses`` addresses behind this port."""
    half, part = port % 2, port // 2
    if check_version(ip) == 4:
        offset = part * swept_addresses(ports)
        return f"198.{18 + half}.{_FIRST_SWEPT_BYTE + offset // 256}.{offset % 256}"
    return f"2001:2:0:{0x8000 * half + _FIRST_SWEPT_SUBNET + part:x}::1"


def swept_addresses(ports: int = 2) -> int:
    """How many addresses the streams to one of ``ports`` ports may sweep."""
    return SWEPT_ADDRESSES // _parts(ports)


def port_address(ip: int, port: int) -> str:
    """The router's own address at a port with its prefix length: node 1 of the network, as in RFC 2544 C.2.2.1."""
    half, part = port % 2, port // 2
    if check_version(ip) == 4:
        return f"198.{18 + half}.{part}.1/24"
    return f"2001:2:0:{0x8000 * half + part:x}::1/64"


def check_version(ip: int) -> int:
    """Gives the IP version back; UsageError where it is not 4 or 6."""
    if ip not in (4, 6):
        raise UsageError(f"there is no IP version {ip}", place="traffic, ip", next_step="use 4 or 6")
    return ip


def _parts(ports: int) -> int:
    """The number of equal parts that each half is divided into: a power of two."""
    if ports > MOST_PORTS:
        raise UsageError(f"{ports} ports are too many", place="lab, ports", next_step=f"use at most {MOST_PORTS}")
    return 1 << max(0, (ports + 1) // 2 - 1).bit_length()


def ways_between(ports: int) -> tuple[Way, ...]:
    """Every ordered pair of different ports; for two ports (0, 1) and (1, 0)."""
    return tuple((here, there) for here in range(ports) for there in range(ports) if here != there)


def ways_back(ports: int) -> tuple[Way, ...]:
    """The ways from each port back to itself."""
    return tuple((port, port) for port in range(ports))


def make_addressing(ip: int, ports: int, way: Way, *, source_mac: str, destination_mac: str) -> Addressing:
    """The addressing of a way: from the network behind its first port to that behind its second.

    Where both are the same port, the first half of its addresses sends to the second half.
    """
    here, there = way
    count = swept_addresses(ports) // (2 if here == there else 1)
    destination = swept_address(ip, there, ports)
    return Addressing(
        transmit=here,
        receive=there,
        source_mac=source_mac,
        destination_mac=destination_mac,
        ip=ip,
        source_address=swept_address(ip, here, ports),
        destination_address=str(ip_address(destination) + count) if here == there else destination,
        source_address_count=count,
        destination_address_count=count,
    )


def choose_ways(known: Sequence[Addressing], wanted: Sequence[Way], kind: str) -> tuple[Addressing, ...]:
    """The addressing of these ways, in their order; UsageError where frames cannot take one through this DUT."""
    by_way = {(one.transmit, one.receive): one for one in known}
    for transmit, receive in wanted:
        if (transmit, receive) not in by_way:
            raise UsageError(
                f"a DUT of kind {kind} does not forward frames from port {transmit} to port {receive}",
                place="traffic, pattern",
                next_step="choose another pattern or another DUT",
            )
    return tuple(by_way[way] for way in wanted)


def tester_macs(testbed: Testbed) -> tuple[str, ...]:
    """MAC addresses of the tester's ports; UsageError where one is unknown."""
    macs = []
    for port in testbed.tester_ports:
        if port.mac is None:
            raise UsageError(
                f"the MAC address of the tester's port {port.name} is not known",
                place=f"ports, {port.name}",
                next_step="name its `mac` in the bench file",
            )
        macs.append(port.mac)
    return tuple(macs)


def transparent_addressing(testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
    """From each tester port to the MAC address of every other, forward first; such a DUT ignores IP addresses."""
    macs = tester_macs(testbed)
    return tuple(
        make_addressing(ip, len(macs), way, source_mac=macs[way[0]], destination_mac=macs[way[1]])
        for way in ways_between(len(macs))
    )


# The addresses and ports of each flow of a stream, as the engine makes them of its number. Pure.
#
# Fields that vary in turn are the digits of the flow's number, the first field of the frame the fastest; drawn ones
# come from a seed (protocol/README.md; engine/packets/src/traffic/encode.rs and varied_field.rs).


_MASK: Final = 2**64 - 1
_BEFORE_PORTS: Final = {
    4: ("traffic_class", "identification", "hop_limit"),
    6: ("traffic_class", "flow_label", "hop_limit"),
}


class UnknownHeadersError(Exception):
    """The headers of a stream are not known here; the message completes a sentence after "because"."""


@frozen
class FlowHeaders:
    """What a hash may be made of."""

    source: bytes
    destination: bytes
    source_port: int
    destination_port: int


def flow_headers(stream: StreamSpec, way: Addressing) -> Iterator[FlowHeaders]:
    """Yields the headers of each flow, in the order of their numbers; UnknownHeadersError where they are not known."""
    if stream.raw_frame is not None or stream.pcap is not None:
        raise UnknownHeadersError(f"the frames of the stream {stream.name} are given as a whole")
    if stream.vxlan is not None or stream.tunnels:
        raise UnknownHeadersError(f"an adapter may hash the outer or the inner headers of {stream.name}")
    source, destination, source_port, destination_port = _in_turn(stream, way.with_addresses(stream.addresses))
    size = 4 if way.ip == 4 else 16
    for flow in range(stream.flows):
        yield FlowHeaders(
            source=source.of(flow).to_bytes(size),
            destination=destination.of(flow).to_bytes(size),
            source_port=source_port.of(flow),
            destination_port=destination_port.of(flow),
        )


@frozen
class _Values:
    """The values of a field over the flows; with a seed they are drawn."""

    sweep: Sweep
    flows_per_value: int
    varied_before: int
    """How many fields before it are varied."""

    def of(self, flow: int) -> int:
        sweep = self.sweep
        if sweep.seed is None:
            index = flow // self.flows_per_value % sweep.count
        else:
            # Fields with the same seed are not to have values that go together.
            seed = _scramble(sweep.seed ^ (self.varied_before + 1))
            index = _scramble(seed ^ _scramble(flow)) * sweep.count >> 64
        return sweep.first + index * sweep.step


def _in_turn(stream: StreamSpec, way: Addressing) -> tuple[_Values, _Values, _Values, _Values]:
    fields = stream.fields
    ports = (fields.source_port, stream.source_port), (fields.destination_port, stream.destination_port)
    ordered: list[FieldValue | None] = [
        *((fields.vlan, fields.vlan_priority) if stream.vlan is not None else ()),
        _addresses(way.source_address, way.source_address_count),
        _addresses(way.destination_address, way.destination_address_count),
        *(getattr(fields, name) for name in _BEFORE_PORTS[way.ip]),
        *(given if given is not None else usual for given, usual in ports),
    ]
    found, flows_per_value, varied = list[_Values](), 1, 0
    for value in ordered:
        sweep = value if isinstance(value, Sweep) else Sweep(first=value or 0, count=1)
        found.append(_Values(sweep, flows_per_value, varied))
        varied += sweep.count > 1
        if sweep.seed is None:
            flows_per_value *= sweep.count
    source, destination = found[-7:-5]
    return source, destination, found[-2], found[-1]


def _addresses(first: str, count: int) -> Sweep:
    return Sweep(first=int(ipaddress.ip_address(first)), count=count)


def _scramble(value: int) -> int:
    """``scramble`` of the engine (engine/packets/src/signature.rs)."""
    mixed = (value + 0x9E37_79B9_7F4A_7C15) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58_476D_1CE4_E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D0_49BB_1331_11EB) & _MASK
    return mixed ^ mixed >> 31
