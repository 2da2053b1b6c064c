"""The addresses and ports of each flow of a stream, as the engine makes them of its number. Pure.

Fields that vary in turn are the digits of the flow's number, the first field of the frame the fastest; drawn ones come
from a seed (protocol/README.md; engine/packets/src/traffic/encode.rs and varied_field.rs).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nicbench.core.headers import FieldValue, Sweep
from nicbench.core.traffic import StreamSpec
from nicbench.testbed.duts.base import Addressing

_MASK: Final = 2**64 - 1
_BEFORE_PORTS: Final = {
    4: ("traffic_class", "identification", "hop_limit"),
    6: ("traffic_class", "flow_label", "hop_limit"),
}


class UnknownHeadersError(Exception):
    """The headers of a stream are not known here; the message completes a sentence after "because"."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
