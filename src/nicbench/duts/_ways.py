"""The ways that frames can take through a DUT of several ports, and the IP addresses that they carry on each."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from nicbench.duts._networks import swept_address, swept_addresses
from nicbench.duts.base import Addressing
from nicbench.errors import UsageError
from nicbench.model.pattern import Way


def ways_between(ports: int) -> tuple[Way, ...]:
    """Every ordered pair of different ports: (0, 1) and (1, 0) of two."""
    return tuple((here, there) for here in range(ports) for there in range(ports) if here != there)


def ways_back(ports: int) -> tuple[Way, ...]:
    """Each port with itself."""
    return tuple((port, port) for port in range(ports))


def routed(ip: int, ports: int, way: Way, *, source_mac: str, destination_mac: str) -> Addressing:
    """Frames of this way, from the network behind the one port to that behind the other.

    Where both are one port, the first half of its addresses sends to the second.
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
                f"a DUT of kind {kind} does not bring frames from port {transmit} to port {receive}",
                place="traffic, pattern",
                next_step="choose another pattern or another DUT",
            )
    return tuple(by_way[way] for way in wanted)
