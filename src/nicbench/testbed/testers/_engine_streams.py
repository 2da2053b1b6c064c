"""Turns a bench file's traffic into the streams of the protocol's ``start``. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, TypeVar

from nicbench.core.errors import UsageError
from nicbench.core.frame_size import Size, size_label
from nicbench.core.headers import (
    MAC_CONTROL,
    PAUSE_OPCODE,
    PFC_OPCODE,
    CarriesEthernet,
    Codepoint,
    Fields,
    FieldValue,
    GeneveTunnel,
    GreTunnel,
    GtpTunnel,
    MplsTunnel,
    OverIp,
    OverUdp,
    Pausing,
    PppoeTunnel,
    Srv6Tunnel,
    Sweep,
    Tunnel,
    VxlanTunnel,
    pause_frame,
)
from nicbench.core.lists import without_none
from nicbench.core.traffic import Frames, MacTable, Replay, StreamLoad, StreamSpec, Traffic
from nicbench.core.trial import Phase, Reading, TrialRequest
from nicbench.testbed.duts.base import Addressing

# The headers of tunnels as layers of the protocol, and which header has the addresses of the way. Pure.


CARRIED_ADDRESSES: Final = ("192.0.2.1", "192.0.2.2")  # RFC 5737: documentation
# RFC 7348 section 5, RFC 8926 section 3.3: the outer source port is a dynamic port that differs between inner flows.
# It is drawn, so that the fields inside take their values in turn over the flows.
_ENTROPY: Final = Sweep(first=49_152, count=16_384, seed=1)
_ANY_PORT: Final = Sweep(first=0, count=65_536)


def value_of(value: FieldValue) -> int | dict[str, Any]:
    """A field's value as in the protocol."""
    return value.model_dump() if isinstance(value, Sweep) else value


def stacks(frames: Frames, way: Addressing) -> tuple[Sequence[Tunnel], Sequence[Tunnel] | None]:
    """The tunnels of the frames sent, and of those that come back where they differ.

    A tunnel lies on the side of the port with the lower number: what is sent there is what comes back the other way.
    """
    if frames.arrives is None or frames.arrives == frames.tunnels:
        return frames.tunnels, None
    there = (frames.tunnels, frames.arrives)
    sent, received = there if way.transmit <= way.receive else there[::-1]
    return sent, None if way.is_direct else received


def tunnel_layers(
    tunnels: Sequence[Tunnel], way: Addressing, addresses: tuple[Any, Any], *, sent: bool
) -> tuple[list[dict[str, Any]], int, tuple[Any, Any]]:
    """The layers of these tunnels, and the IP version and the addresses of the header that they carry.

    The first IP header that has no addresses of its own has those of the way; those behind it have ones of
    documentation.
    """
    layers = []
    version, left = way.ip, addresses
    back = way.transmit > way.receive
    for tunnel in tunnels:
        if isinstance(tunnel, OverIp):
            own_version, ends = version, left
            if tunnel.source is not None and tunnel.destination is not None:
                own_version, given = tunnel.ip_version(4), (tunnel.source, tunnel.destination)
                ends = given[::-1] if back else given
            else:
                version, left = 4, CARRIED_ADDRESSES
            layers.append(_ip_layer(own_version, ends, tunnel.hop_limit, tunnel.traffic_class))
        layers += _own_layers(tunnel, sent=sent)
        if isinstance(tunnel, CarriesEthernet) and tunnel.has_ethernet:
            macs = (tunnel.source_mac, tunnel.destination_mac)
            source, destination = macs[::-1] if back else macs
            layers.append({"layer": "ethernet", "source": source, "destination": destination})
    return layers, version, left


def _ip_layer(version: int, ends: tuple[Any, Any], hop_limit: FieldValue, traffic_class: FieldValue) -> dict[str, Any]:
    return {
        "layer": f"ipv{version}",
        "source": ends[0],
        "destination": ends[1],
        "hop_limit": value_of(hop_limit),
        "traffic_class": value_of(traffic_class),
    }


def _own_layers(tunnel: Tunnel, *, sent: bool) -> list[dict[str, Any]]:
    """The layers of one tunnel, without its IP header and the Ethernet header that it carries."""
    if isinstance(tunnel, OverUdp):
        entropy = _ENTROPY if sent else _ANY_PORT
        source = tunnel.source_port if tunnel.source_port is not None else entropy
        udp = {"layer": "udp", "source": value_of(source), "destination": tunnel.port}
        return [udp, _behind_udp(tunnel)]
    if isinstance(tunnel, GreTunnel):
        return [{"layer": "gre", **({} if tunnel.key is None else {"key": value_of(tunnel.key)})}]
    if isinstance(tunnel, Srv6Tunnel):
        current = tunnel.segments[len(tunnel.segments) - 1 - tunnel.left]
        header = _ip_layer(6, (tunnel.source, current), tunnel.hop_limit, tunnel.traffic_class)
        return [header, {"layer": "segment_routing", "segments": list(tunnel.segments), "segments_left": tunnel.left}]
    if isinstance(tunnel, MplsTunnel):
        fields = {"label": tunnel.label, "traffic_class": tunnel.traffic_class, "hop_limit": tunnel.hop_limit}
        return [{"layer": "mpls", **{name: value_of(value) for name, value in fields.items()}}]
    if isinstance(tunnel, PppoeTunnel):
        return [{"layer": "pppoe", "session": value_of(tunnel.session)}]
    return []


def _behind_udp(tunnel: OverUdp) -> dict[str, Any]:
    if isinstance(tunnel, GtpTunnel):
        qos_flow = {} if tunnel.qos_flow is None else {"qos_flow": value_of(tunnel.qos_flow)}
        return {"layer": "gtp", "teid": value_of(tunnel.teid), **qos_flow}
    if isinstance(tunnel, GeneveTunnel):
        return {"layer": "geneve", "vni": value_of(tunnel.vni)}
    if isinstance(tunnel, VxlanTunnel):
        return {"layer": "vxlan", "vni": value_of(tunnel.vni)}
    raise TypeError(f"{type(tunnel).__name__} has no layer behind UDP")


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
    streams = []
    numbers = []
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
    """Streams of a number of frames of every flow, or of the least number; each sending port has the rate for it."""
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
    most = min(without_none((stream.frames, part)), default=None)
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


# The streams of pause frames that a trial sends, and of those that it listens for. Pure.
#
# They have no signature, and are counted by filters at the port that sends the load: first our own, which no bridge
# may forward (IEEE 802.1Q 8.6.3), then the DUT's.


SENT, HEARD, ENDED = "pauses", "hears pause", "hears end"
_BESIDE: Final = (SENT, HEARD, ENDED)
_SOURCE_AT, _TYPE_AT, _VECTOR_AT, _PAUSE_TIME_AT, _TIMES_AT = 6, 12, 16, 16, 18
_SMALLEST_FRAME: Final = 64
# So low that no frame is due in any trial.
_NEVER: Final = 1e-6


def is_beside(name: str) -> bool:
    """Returns whether a stream is of pause frames, and no load."""
    return name.rpartition(": ")[2].rstrip("0123456789 ") in _BESIDE


def pause_requests(way: Addressing, pausing: Pausing) -> list[dict[str, Any]]:
    """Returns the streams that the receiving port of a way sends, and those that its sending port listens for."""
    back = f"{way.receive}->{way.transmit}: "
    trains = []
    for number, train in enumerate(pausing.trains, start=1):
        frame = pause_frame(way.destination_mac, train.priority, train.quanta)
        ours = [{"at": _SOURCE_AT, "hex": frame[_SOURCE_AT:].hex()}]
        trains.append(
            {
                "name": f"{back}{SENT} {number}",
                "rate_frames_per_s": train.frames_per_s,
                "begins_s": train.begins_s,
                "frames": train.frames,
                **_raw(way, frame, ours),
            }
        )
    anything = pause_frame(way.destination_mac, pausing.priority, 0)
    listening = [
        {"name": back + name, "rate_frames_per_s": _NEVER, **_raw(way, anything, filters)}
        for name, filters in ((ENDED, _filters(pausing.priority, ended=True)), (HEARD, _filters(pausing.priority)))
    ]
    return [*trains, *listening]


def delayed(streams: Sequence[dict[str, Any]], begins_s: float) -> list[dict[str, Any]]:
    """Returns the load, which begins later."""
    return [{**one, "begins_s": begins_s} for one in streams]


def _raw(way: Addressing, frame: bytes, filters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "transmit_port": way.receive,
        "receive_port": way.transmit,
        "flows": 1,
        "frame_bytes": _SMALLEST_FRAME,
        "layers": [{"layer": "raw", "hex": frame.hex()}],
        "unsigned": True,
        "filter": list(filters),
    }


def _filters(priority: int | None, *, ended: bool = False) -> list[dict[str, Any]]:
    """Returns what a frame must hold that pauses; with ``ended`` one of no quanta."""
    opcode = PAUSE_OPCODE if priority is None else PFC_OPCODE
    kind = [{"at": _TYPE_AT, "hex": f"{MAC_CONTROL:04x}{opcode:04x}"}]
    if priority is None:
        return [*kind, *([{"at": _PAUSE_TIME_AT, "hex": "0000"}] if ended else [])]
    bit = f"{1 << priority:04x}"
    vector = [{"at": _VECTOR_AT, "hex": bit, "mask": bit}]
    return [*kind, *vector, *([{"at": _TIMES_AT + 2 * priority, "hex": "0000"}] if ended else [])]


def with_codepoint(traffic: Traffic, codepoint: Codepoint | None) -> Traffic:
    """Returns the traffic with this codepoint in every frame, and the DSCP that it has; unchanged without one.

    UsageError where frames have no traffic class of their own that could be given.
    """
    if codepoint is None:
        return traffic
    streams = tuple(
        _marked(stream, codepoint) if "fields" in stream.model_fields_set else stream for stream in traffic.streams
    )
    return _marked(traffic, codepoint).replace(streams=streams)


def with_sent_classes(reading: Reading, streams: Sequence[dict[str, Any]]) -> Reading:
    """Returns the reading with the traffic class that each stream was sent with."""
    sent = {one["name"]: layer.get("traffic_class", 0) for one in streams for layer in one.get("layers", ())
            if layer["layer"] in ("ipv4", "ipv6")}  # fmt: skip
    read = tuple(
        one
        if one.traffic_classes is None
        else one.replace(traffic_classes=one.traffic_classes.replace(sent=sent.get(one.name)))
        for one in reading.streams
    )
    return reading.replace(streams=read)


_F = TypeVar("_F", bound=Frames)


def _marked(frames: _F, codepoint: Codepoint) -> _F:
    now = frames.fields.traffic_class or 0
    is_whole = frames.raw_frame is not None or frames.pcap is not None
    if not isinstance(now, int) or is_whole or frames.vxlan is not None or frames.tunnels:
        raise UsageError(
            "the test sets the ECN bits of every frame, and the traffic gives whole frames, tunnels or varying classes",
            place="traffic",
            next_step="give `traffic_class` one value for each stream, and leave `raw_frame`, `pcap` and tunnels out",
        )
    fields = frames.fields.replace(traffic_class=now & ~int(Codepoint.CE) | codepoint)
    return frames.replace(fields=fields)
