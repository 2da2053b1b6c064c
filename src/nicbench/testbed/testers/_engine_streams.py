"""Turns a bench file's traffic into the streams of the protocol's ``start``. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from nicbench.core.errors import UsageError
from nicbench.core.frame_size import Size, size_label
from nicbench.core.headers.fields import Fields, Sweep
from nicbench.core.headers.tunnels import Tunnel
from nicbench.core.traffic import Frames, MacTable, Replay, StreamLoad, StreamSpec, Traffic
from nicbench.core.trial import Phase, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_tunnels import CARRIED_ADDRESSES, stacks, tunnel_layers, value_of

ETHERTYPE_8021AD: Final = 0x88A8
ETHERTYPE_8021Q: Final = 0x8100
# RFC 7348 section 5: the outer source port is a dynamic port that differs between inner flows.
VXLAN_SOURCE_PORTS: Final = Sweep(first=49_152, count=16_384)
FIRST_MAC: Final = "02:6e:66:00:00:00"
"""The first of the addresses that a switch is to learn: locally administered (IEEE 802c)."""
CARRIED: Final = {"source_mac": "02:00:5e:00:00:01", "destination_mac": "02:00:5e:00:00:02"}


def stream_requests(
    traffic: Traffic,
    way: Addressing,
    size: Size,
    rates_frames_per_s: Sequence[float | None],
    duration_s: float,
    frames: int | None = None,
) -> list[dict[str, Any]]:
    """The streams of one direction, each with its rate; rate 0 sends as fast as the port takes frames, None nothing.

    ``frames`` is the most that all streams together send this way; None: no limit.
    """
    streams = traffic.port_streams()
    parts = _parts(frames, rates_frames_per_s)
    return [
        {
            "name": f"{way.transmit}->{way.receive}" + (f" {stream.name}" if len(streams) > 1 else ""),
            "transmit_port": way.transmit,
            "receive_port": way.receive,
            "rate_frames_per_s": rate_frames_per_s,
            **_bounds(stream, rate_frames_per_s, duration_s, part),
            **_frames(stream, way.with_addresses(stream.addresses)),
            **({} if stream.pcap is not None else sizes_of(traffic.size_of(stream) or size)),
        }
        for stream, rate_frames_per_s, part in zip(streams, rates_frames_per_s, parts, strict=True)
        if part != 0 and rate_frames_per_s is not None  # a burst may be too short for all of the streams
    ]


def with_own_loads(traffic: Traffic, loads: Sequence[StreamLoad]) -> tuple[Traffic, tuple[float | None, ...]]:
    """The traffic whose streams have the sizes of these loads, and the rate of each stream; None where it has none."""
    sizes = {load.stream: load.size if isinstance(load.size, int) else size_label(load.size) for load in loads}
    rates = {load.stream: load.load_frames_per_s for load in loads}
    streams = tuple(
        stream.replace(frame_bytes=sizes.get(stream.name, stream.frame_bytes)) for stream in traffic.streams
    )
    sized = traffic.replace(streams=streams)
    return sized, tuple(rates.get(stream.name) for stream in sized.port_streams())


def requests_of_its_own(ways: Sequence[Addressing], request: TrialRequest) -> list[dict[str, Any]] | None:
    """The streams of a trial that replace those of the traffic; None where it has none."""
    if request.replay is not None:
        return replay_requests(ways, request.replay)
    if request.macs is not None:
        return mac_requests(ways, request.size, request.macs, request.load_frames_per_s or 0.0)
    return None


def replay_requests(ways: Sequence[Addressing], replay: Replay) -> list[dict[str, Any]]:
    """A stream for each capture. UsageError where no way of the traffic joins its ports."""
    by_ports = {(way.transmit, way.receive): way for way in ways}
    requests = []
    for number, capture in enumerate(replay.captures, start=1):
        way = by_ports.get((capture.from_port, capture.to_port))
        if way is None:
            known = ", ".join(f"{start} to {end}" for start, end in sorted(by_ports))
            raise UsageError(
                f"no frames go from port {capture.from_port} to port {capture.to_port}",
                place=f"the capture {capture.file}",
                next_step=f"the traffic's ways are {known}: choose one of them, or another `pattern` under `traffic`",
            )
        macs = {} if replay.keeps_macs else {"source_mac": way.source_mac, "destination_mac": way.destination_mac}
        requests.append(
            {
                "name": f"{way.transmit}->{way.receive} capture {number}",
                "transmit_port": way.transmit,
                "receive_port": way.receive,
                "rate_frames_per_s": 0.0,
                "pcap": capture.file,
                "timing": {"speed": replay.speed, "together": replay.together},
                "unsigned": not replay.signed,
                **macs,
            }
        )
    return requests


def mac_requests(
    ways: Sequence[Addressing], size: Size, macs: MacTable, load_frames_per_s: float
) -> list[dict[str, Any]]:
    """Frames on the first way, one from each address, and after a pause one to each on its reverse."""
    there = ways[0]
    back = next(way for way in ways if (way.transmit, way.receive) == (there.receive, there.transmit))
    every = {"first": FIRST_MAC, "count": macs.addresses}
    learning_s = macs.addresses / macs.learning_frames_per_s
    return [
        {
            "name": f"{way.transmit}->{way.receive} {name}",
            "transmit_port": way.transmit,
            "receive_port": way.receive,
            "rate_frames_per_s": rate,
            "frames": macs.addresses,
            "begins_s": begins_s,
            "flows": macs.addresses,
            "layers": [{"layer": "ethernet", **addresses}, *plain_packet(way)],
            **sizes_of(size),
        }
        for name, way, rate, begins_s, addresses in (
            ("learning", there, macs.learning_frames_per_s, 0.0,
             {"source": every, "destination": there.destination_mac}),
            ("test", back, load_frames_per_s, learning_s + macs.pause_s,
             {"source": back.source_mac, "destination": every}),
        )
    ]  # fmt: skip


def plain_packet(way: Addressing) -> list[dict[str, Any]]:
    """Returns the layers of IP and UDP between the first addresses of a way."""
    plain = StreamSpec(name="all", share=1.0)
    source, destination = ({"first": first, "count": 1} for first in (way.source_address, way.destination_address))
    return [ip_layer(way.ip, source, destination, plain), transport_layer(plain)]


def phase_requests(
    phases: Sequence[Phase], streams_at: Callable[[float, int], list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], list[int]]:
    """Streams that follow one another, and for each the number of its phase.

    ``streams_at`` gives the streams for a load in frames per second and a number of frames.
    """
    streams: list[dict[str, Any]] = []
    numbers: list[int] = []
    begins_s = 0.0
    for number, phase in enumerate(phases, start=1):
        own = streams_at(phase.load_frames_per_s, math.floor(phase.load_frames_per_s * phase.duration_s))
        streams += [{**one, "name": f"{one['name']} phase {number}", "begins_s": begins_s} for one in own]
        numbers += [number] * len(own)
        begins_s += phase.duration_s
    return streams, numbers


def learning_requests(
    traffic: Traffic, ways: Sequence[Addressing], size: Size, frames_per_flow: int, fewest: int
) -> list[dict[str, Any]]:
    """Streams of so many frames of every flow, and of the fewest at least; each port that sends has the rate for it."""
    none = [0.0] * len(traffic.port_streams())
    requests = [one for way in ways for one in stream_requests(traffic, way, size, none, 0.0)]
    of_port: Counter[int] = Counter()
    for one in requests:
        of_port[one["transmit_port"]] += one.get("flows", 1)
    return [
        {
            **one,
            "rate_frames_per_s": traffic.learning.rate * one.get("flows", 1) / of_port[one["transmit_port"]],
            "frames": max(fewest, frames_per_flow * one.get("flows", 1)),
        }
        for one in requests
    ]


def _parts(frames: int | None, rates_frames_per_s: Sequence[float | None]) -> list[int | None]:
    """Divides ``frames`` into whole frames for each stream, in proportion to the rates; None without a limit."""
    rates = [rate or 0.0 for rate in rates_frames_per_s]
    whole = sum(rates)
    if frames is None or not whole:
        return [None for _ in rates]
    ends = [round(frames * rate / whole) for rate in accumulate(rates)]
    return [end - begin for begin, end in pairwise([0, *ends])]


def _bounds(stream: StreamSpec, rate_frames_per_s: float, duration_s: float, part: int | None = None) -> dict[str, Any]:
    """The fields for bursts and the number of frames; without a rate a stream has neither, and ends with the time."""
    if not rate_frames_per_s:
        return {}
    most = min((frames for frames in (stream.frames, part) if frames is not None), default=None)
    ends_early = most is not None and most < rate_frames_per_s * duration_s
    return {
        **({"burst_frames": stream.burst_frames} if stream.burst_frames else {}),
        **({"frames": most} if ends_early else {}),
    }


def sizes_of(size: Size) -> dict[str, Any]:
    """Returns the fields for a frame size, or for those of a mix."""
    if isinstance(size, int):
        return {"frame_bytes": size}
    if size.sweep is not None:
        sweep = size.sweep
        return {"size_sweep": {"from": sweep.smallest, "to": sweep.largest, "step": sweep.step}}
    return {"sizes": [one.model_dump() for one in size.sizes]}


def _frames(stream: StreamSpec, way: Addressing) -> dict[str, Any]:
    """The fields for the headers: flat ones where they suffice, for the engine is faster with them, else layers."""
    unsigned = {} if stream.signature else {"unsigned": True}
    if stream.pcap is not None:
        macs = {"source_mac": way.source_mac, "destination_mac": way.destination_mac}
        return {**macs, "pcap": stream.pcap, "signature_offset": stream.signature_offset, **unsigned}
    if stream.raw_frame is not None:  # all frames have the same headers, so that a DUT sees one flow
        filters = [one.model_dump(exclude_none=True) for one in stream.filter]
        raw = {"layer": "raw", "hex": stream.raw_frame}
        return {"flows": 1, "layers": [raw], **unsigned, **({"filter": filters} if filters else {})}
    if not stream.is_plain():
        sent, received = stacks(stream, way)
        back = {} if received is None else {"received_layers": layers(stream, way, received, sent=False)}
        return {"flows": stream.flows, "layers": layers(stream, way, sent), **back}
    return {
        "flows": stream.flows,
        "source_mac": way.source_mac,
        "destination_mac": way.destination_mac,
        "ip": way.ip,
        "source_address": way.source_address,
        "destination_address": way.destination_address,
        "source_address_count": way.source_address_count,
        "destination_address_count": way.destination_address_count,
        "source_port": stream.source_port,
        "destination_port": stream.destination_port,
        "source_port_count": 1,
        "destination_port_count": 1,
        "hop_limit": stream.hop_limit,
    }


def layers(
    frames: Frames, way: Addressing, tunnels: Sequence[Tunnel] = (), *, sent: bool = True
) -> list[dict[str, Any]]:
    """The headers, outermost first; those of the frames that come back where they are not ``sent``."""
    fields = frames.fields
    source = {"first": way.source_address, "count": way.source_address_count}
    destination = {"first": way.destination_address, "count": way.destination_address_count}
    link = {"layer": "ethernet", "source": way.source_mac, "destination": way.destination_mac}
    around, version, (source, destination) = tunnel_layers(tunnels, way, (source, destination), sent=sent)
    outer = [link, *_tags(frames), *around, ip_layer(version, source, destination, frames)]
    raw = [{"layer": "raw", "hex": frames.raw}] if frames.raw else []
    if frames.vxlan is None:
        return [*outer, transport_layer(frames), *raw]
    carried_link = {"layer": "ethernet", "source": CARRIED["source_mac"], "destination": CARRIED["destination_mac"]}
    carried_ip = {"layer": "ipv4", "source": CARRIED_ADDRESSES[0], "destination": CARRIED_ADDRESSES[1]}
    carrier = {"layer": "udp", "source": value_of(VXLAN_SOURCE_PORTS), "destination": frames.vxlan.port}
    vxlan = {"layer": "vxlan", "vni": value_of(fields.vni if fields.vni is not None else frames.vxlan.vni)}
    return [*outer, carrier, vxlan, carried_link, carried_ip, transport_layer(frames), *raw]


def _tags(frames: Frames) -> list[dict[str, Any]]:
    """The VLAN layers: swept fields belong to the innermost tag; of two tags the outer is one of 802.1ad."""
    if frames.vlan is None:
        return []
    priority = {} if frames.fields.vlan_priority is None else {"priority": value_of(frames.fields.vlan_priority)}
    innermost = frames.fields.vlan if frames.fields.vlan is not None else frames.vlan[-1]
    inner = {"layer": "vlan", "tpid": ETHERTYPE_8021Q, "id": value_of(innermost), **priority}
    outer = [{"layer": "vlan", "tpid": ETHERTYPE_8021AD, "id": tag} for tag in frames.vlan[:-1]]
    return [*outer, inner]


def ip_layer(version: int, source: dict[str, Any], destination: dict[str, Any], frames: Frames) -> dict[str, Any]:
    """Returns the layer of IP, with the fields that are given."""
    names = ("traffic_class", "identification") if version == 4 else ("traffic_class", "flow_label")
    hop_limit = frames.fields.hop_limit if frames.fields.hop_limit is not None else frames.hop_limit
    return {
        "layer": f"ipv{version}",
        "source": source,
        "destination": destination,
        "hop_limit": value_of(hop_limit),
        **_given_fields(frames.fields, {name: name for name in names}),
    }


def transport_layer(frames: Frames) -> dict[str, Any]:
    """Returns the layer of UDP or TCP."""
    source = frames.fields.source_port if frames.fields.source_port is not None else frames.source_port
    destination = (
        frames.fields.destination_port if frames.fields.destination_port is not None else frames.destination_port
    )
    ports = {"layer": frames.protocol, "source": value_of(source), "destination": value_of(destination)}
    if frames.protocol == "udp":
        return {**ports, "checksum": frames.udp_checksum}
    names = {"sequence": "tcp_sequence", "acknowledgement": "tcp_acknowledgement", "flags": "tcp_flags"}
    return {**ports, **_given_fields(frames.fields, names)}


def _given_fields(fields: Fields, names: dict[str, str]) -> dict[str, Any]:
    """The protocol's fields whose field in the bench file (by ``names``) is given."""
    values = {name: getattr(fields, field) for name, field in names.items()}
    return {name: value_of(value) for name, value in values.items() if value is not None}
