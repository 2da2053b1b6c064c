"""The headers of tunnels as layers of the protocol, and which header has the addresses of the way. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nicbench.core.headers import (
    CarriesEthernet,
    FieldValue,
    GeneveTunnel,
    GreTunnel,
    GtpTunnel,
    MplsTunnel,
    OverIp,
    OverUdp,
    PppoeTunnel,
    Srv6Tunnel,
    Sweep,
    Tunnel,
    VxlanTunnel,
)
from nicbench.core.traffic import Frames
from nicbench.testbed.duts.base import Addressing

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
    layers: list[dict[str, Any]] = []
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
