"""The headers of tunnels as bytes, for a DUT that takes them off and puts them on. Pure.

It is written from the standards a second time, apart from the engine that sends: where the two disagree,
no frame passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, Literal

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

Inside = Literal["ipv4", "ipv6", "ethernet", "mpls", "pppoe"]
# IANA, "IEEE 802 Numbers", "Protocol Numbers" and "PPP DLL Protocol Numbers".
_ETHERTYPES: Final[dict[Inside, int]] = {
    "ipv4": 0x0800, "ipv6": 0x86DD, "ethernet": 0x6558, "mpls": 0x8847, "pppoe": 0x8864,
}  # fmt: skip
_PROTOCOLS: Final[dict[Inside, int]] = {"ipv4": 4, "ipv6": 41, "ethernet": 143}
_PPP: Final[dict[Inside, int]] = {"ipv4": 0x0021, "ipv6": 0x0057}
_UDP, _GRE, _ROUTING = 17, 47, 43
_FIRST_ENTROPY: Final = 49_152
_CHANGING = {4: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11), 6: (1, 2, 3, 4, 5, 7)}
"""Bytes of an IP header that differ between frames or change on the way: class, lengths, label, hop limit, checksum."""


@dataclass(slots=True)
class TunnelBytes:
    """Headers behind Ethernet's, and which of their bits are the same in every frame."""

    ethertype: int
    """The type of Ethernet's header before them."""
    carried: int
    """The type of what they carry, as Ethernet calls it."""
    header: bytearray = field(default_factory=bytearray)
    mask: bytearray = field(default_factory=bytearray)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    """Fields that hold the length of what is behind Ethernet's header, less so many bytes: place and bytes."""
    checksums: list[int] = field(default_factory=list)
    """Where IPv4 headers begin."""

    def add(self, text: bytes, changing: Sequence[int] = ()) -> int:
        """Appends a header, of which these bytes may differ; returns where it begins."""
        at = len(self.header)
        self.header += text
        self.mask += bytes(0 if index in changing else 0xFF for index in range(len(text)))
        return at


def tunnel_headers(tunnels: Sequence[Tunnel], version: int, *, back: bool = False) -> TunnelBytes:
    """The headers of these tunnels around packets of this IP version, with their ends exchanged on the way ``back``.

    ValueError where a tunnel has no addresses.
    """
    carried: Inside = "ipv4" if version == 4 else "ipv6"
    insides = [*(_begins(tunnel) for tunnel in tunnels[1:]), carried][: len(tunnels)]
    made = TunnelBytes(_ETHERTYPES[_begins(tunnels[0]) if tunnels else carried], _ETHERTYPES[carried])
    for tunnel, inside in zip(tunnels, insides, strict=True):
        _add(made, tunnel, "ethernet" if tunnel.has_ethernet else inside, back=back)
        if isinstance(tunnel, CarriesEthernet) and tunnel.has_ethernet:
            macs = _exchanged((tunnel.destination_mac, tunnel.source_mac), back=back)
            made.add(bytes.fromhex("".join(macs).replace(":", "")) + _ETHERTYPES[inside].to_bytes(2, "big"), range(12))
    return made


def _exchanged(ends: tuple[str, str], *, back: bool) -> tuple[str, str]:
    return (ends[1], ends[0]) if back else ends


def _begins(tunnel: Tunnel) -> Inside:
    """What the outermost header of a tunnel is to the header before it."""
    if isinstance(tunnel, MplsTunnel):
        return "mpls"
    if isinstance(tunnel, PppoeTunnel):
        return "pppoe"
    return "ipv4" if isinstance(tunnel, OverIp) and tunnel.ip_version(4) == 4 else "ipv6"


def _add(made: TunnelBytes, tunnel: Tunnel, inside: Inside, *, back: bool) -> None:
    if isinstance(tunnel, OverIp):
        if tunnel.source is None or tunnel.destination is None:
            raise ValueError(f"the {tunnel.words} header needs `source` and `destination`")
        protocol = (
            _UDP if isinstance(tunnel, OverUdp) else _GRE if isinstance(tunnel, GreTunnel) else _PROTOCOLS[inside]
        )
        ends = _exchanged((tunnel.source, tunnel.destination), back=back)
        _add_ip(made, ends, protocol, tunnel.hop_limit, tunnel.traffic_class)
    if isinstance(tunnel, OverUdp):
        _add_udp(made, tunnel)
        _add_behind_udp(made, tunnel, inside)
    elif isinstance(tunnel, GreTunnel):
        flags = 0 if tunnel.key is None else 0x2000
        made.add(flags.to_bytes(2, "big") + _ETHERTYPES[inside].to_bytes(2, "big"))
        if tunnel.key is not None:
            made.add(*_number(tunnel.key, 4))
    elif isinstance(tunnel, Srv6Tunnel):
        _add_segments(made, tunnel, inside)
    elif isinstance(tunnel, MplsTunnel):
        bottom = int(inside != "mpls")
        entry = _first(tunnel.label) << 12 | _first(tunnel.traffic_class) << 9 | bottom << 8 | _first(tunnel.hop_limit)
        made.add(entry.to_bytes(4, "big"), range(4) if isinstance(tunnel.label, Sweep) else (3,))
    elif isinstance(tunnel, PppoeTunnel):
        at = made.add(bytes((0x11, 0)))
        made.add(*_number(tunnel.session, 2))
        made.add(bytes(2), (0, 1))
        made.lengths.append((at + 4, at + 6))
        made.add(_PPP[inside].to_bytes(2, "big"))


def _add_ip(
    made: TunnelBytes, ends: tuple[str, str], protocol: int, hop_limit: FieldValue, traffic_class: FieldValue
) -> None:
    source, destination = (ip_address(end) for end in ends)
    tos, hops = _first(traffic_class), _first(hop_limit)
    if source.version == 4:
        head = bytes((0x45, tos, 0, 0, 0, 0, 0x40, 0, hops, protocol, 0, 0))
        at = made.add(head + source.packed + destination.packed, _CHANGING[4])
        made.lengths.append((at + 2, at))
        made.checksums.append(at)
        return
    head = (6 << 28 | tos << 20).to_bytes(4, "big") + bytes((0, 0, protocol, hops))
    at = made.add(head + source.packed + destination.packed, _CHANGING[6])
    made.lengths.append((at + 4, at + 40))


def _add_udp(made: TunnelBytes, tunnel: VxlanTunnel | GeneveTunnel | GtpTunnel) -> None:
    source = _first(tunnel.source_port) if tunnel.source_port is not None else _FIRST_ENTROPY
    at = made.add(source.to_bytes(2, "big") + tunnel.port.to_bytes(2, "big") + bytes(4), (0, 1, 4, 5, 6, 7))
    made.lengths.append((at + 4, at))


def _add_behind_udp(made: TunnelBytes, tunnel: OverUdp, inside: Inside) -> None:
    if isinstance(tunnel, GtpTunnel):
        at = made.add(bytes((0x30 if tunnel.qos_flow is None else 0x34, 0xFF)))
        made.add(bytes(2), (0, 1))
        made.lengths.append((at + 2, at + 8))
        made.add(*_number(tunnel.teid, 4))
        if tunnel.qos_flow is not None:
            made.add(bytes((0, 0, 0, 0x85, 1, 0x10)))
            made.add(*_number(tunnel.qos_flow, 1))
            made.add(bytes(1))
    elif isinstance(tunnel, GeneveTunnel | VxlanTunnel):
        is_geneve = isinstance(tunnel, GeneveTunnel)
        made.add(bytes(2) + _ETHERTYPES[inside].to_bytes(2, "big") if is_geneve else bytes((8, 0, 0, 0)))
        made.add(*_number(tunnel.vni, 3))
        made.add(bytes(1))


def _add_segments(made: TunnelBytes, tunnel: Srv6Tunnel, inside: Inside) -> None:
    path = tunnel.segments
    current = path[len(path) - 1 - tunnel.left]
    _add_ip(made, (tunnel.source, current), _ROUTING, tunnel.hop_limit, tunnel.traffic_class)
    last = len(path) - 1
    made.add(bytes((_PROTOCOLS[inside], 2 * len(path), 4, tunnel.left, last, 0, 0, 0)))
    made.add(b"".join(ip_address(segment).packed for segment in reversed(path)))


def _first(value: FieldValue) -> int:
    return value.first if isinstance(value, Sweep) else value


def _number(value: FieldValue, length: int) -> tuple[bytes, Sequence[int]]:
    """A field of whole bytes, and which of them differ between flows."""
    return _first(value).to_bytes(length, "big"), range(length) if isinstance(value, Sweep) else ()
