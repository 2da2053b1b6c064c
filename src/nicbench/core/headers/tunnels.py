"""Tunnels around the frames of a bench file: their headers, and in which order they can stand."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.headers.fields import LARGEST_PORT, Bits3, Bits6, Bits8, Bits16, Bits20, Bits24, Bits32

VXLAN_PORT: Final = 4789  # RFC 7348 section 8
_GENEVE_PORT: Final = 6081  # RFC 8926 section 3.3
_GTP_PORT: Final = 2152  # 3GPP TS 29.281 section 4.4.2
_ETHERNET_BYTES: Final = 14
_UDP_BYTES: Final = 8
_IP_BYTES: Final = {4: 20, 6: 40}
_SEGMENT_BYTES: Final = 16
MOST_TUNNELS: Final = 8

_CARRIED_SOURCE: Final = "02:00:5e:00:00:01"
_CARRIED_DESTINATION: Final = "02:00:5e:00:00:02"


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is no IP address: write one like 192.0.2.1 or 2001:db8::1") from None


def _segment(text: str) -> str:
    if not isinstance(ip_address(_address(text)), IPv6Address):
        raise ValueError(f"{text!r} is no IPv6 address: a segment is one like 2001:db8::1")
    return _address(text)


Address = Annotated[str, AfterValidator(_address)]
Segment = Annotated[str, AfterValidator(_segment)]
Mac = Annotated[str, Field(pattern=r"^([0-9a-f]{2}:){5}[0-9a-f]{2}$")]


class Vxlan(Frozen):
    """VXLAN: the frames carry Ethernet, IPv4 and the transport inside, and the DUT forwards by the outer header."""

    vni: int = Field(ge=0, lt=2**24)
    """The VXLAN network identifier."""
    port: int = Field(default=VXLAN_PORT, ge=1, le=LARGEST_PORT)
    """The UDP destination port of the outer header."""


class _Tunnel(Frozen):
    """What all tunnels have: the bytes of their headers, and whether Ethernet or IP is in them."""

    words: ClassVar[str]
    carries_ethernet: ClassVar[bool] = False
    fixed_bytes: ClassVar[int] = 0

    @property
    def has_ethernet(self) -> bool:
        """Whether the tunnel carries Ethernet frames, not IP packets."""
        return bool(getattr(self, "ethernet", self.carries_ethernet))

    @property
    def own_bytes(self) -> int:
        """The bytes of its header without an IP header and without the Ethernet header that it carries."""
        return self.fixed_bytes

    def header_bytes(self, ip: int) -> int:
        """The bytes of all its headers; ``ip`` is the version of its IP header where no address says so."""
        return self.own_bytes + _ETHERNET_BYTES * self.has_ethernet


class OverIp(_Tunnel):
    """A tunnel with an IP header of its own."""

    source: Address | None = None
    """The address at which the tunnel begins. Without it the frames are addressed through the DUT by this header."""
    destination: Address | None = None
    """The address at which the tunnel ends."""
    hop_limit: Bits8 = 64
    """Hop limit or time to live of this header, 8 bits."""
    traffic_class: Bits8 = 0
    """DSCP and ECN of this header, 8 bits."""

    @model_validator(mode="after")
    def _has_both_ends(self) -> OverIp:
        ends = [ip_address(end).version for end in (self.source, self.destination) if end is not None]
        if len(ends) == 1 or len(set(ends)) > 1:
            raise ValueError("`source` and `destination` go together, both IPv4 or both IPv6: write both or neither")
        return self

    def ip_version(self, ip: int) -> int:
        """The version of its IP header: that of its addresses, or ``ip`` where it has none."""
        return ip if self.source is None else ip_address(self.source).version

    def header_bytes(self, ip: int) -> int:
        return super().header_bytes(ip) + _IP_BYTES[self.ip_version(ip)]


class OverUdp(OverIp):
    """A tunnel with headers of IP and UDP."""

    source_port: Bits16 | None = None
    """UDP source port, 16 bits. Without it one between 49152 and 65535 is drawn for each flow; in `arrives` any is
    right.
    """

    def header_bytes(self, ip: int) -> int:
        return super().header_bytes(ip) + _UDP_BYTES


class CarriesEthernet(_Tunnel):
    """What all tunnels have that carry Ethernet: the addresses inside."""

    source_mac: Mac = _CARRIED_SOURCE
    """Source address of the Ethernet header that is carried."""
    destination_mac: Mac = _CARRIED_DESTINATION
    """Destination address of the Ethernet header that is carried."""


class VxlanTunnel(CarriesEthernet, OverUdp):
    """VXLAN (RFC 7348); it carries Ethernet."""

    words: ClassVar[str] = "VXLAN"
    carries_ethernet: ClassVar[bool] = True
    fixed_bytes: ClassVar[int] = 8
    kind: Literal["vxlan"]
    """Which tunnel this is."""
    vni: Bits24
    """Network identifier, 24 bits."""
    port: int = Field(default=VXLAN_PORT, ge=1, le=LARGEST_PORT)
    """UDP destination port."""


class GeneveTunnel(CarriesEthernet, OverUdp):
    """GENEVE (RFC 8926) without options."""

    words: ClassVar[str] = "GENEVE"
    fixed_bytes: ClassVar[int] = 8
    kind: Literal["geneve"]
    """Which tunnel this is."""
    vni: Bits24
    """Network identifier, 24 bits."""
    port: int = Field(default=_GENEVE_PORT, ge=1, le=LARGEST_PORT)
    """UDP destination port."""
    ethernet: bool = True
    """It carries Ethernet frames; `false`: IP packets."""


class GtpTunnel(OverUdp):
    """GTP-U (3GPP TS 29.281); it carries IP packets."""

    words: ClassVar[str] = "GTP-U"
    fixed_bytes: ClassVar[int] = 8
    kind: Literal["gtp-u"]
    """Which tunnel this is."""
    teid: Bits32
    """Tunnel endpoint identifier, 32 bits."""
    qos_flow: Bits6 | None = None
    """QoS flow of 5G, 6 bits, in a PDU session container of the uplink; without it there is none."""
    port: int = Field(default=_GTP_PORT, ge=1, le=LARGEST_PORT)
    """UDP destination port."""

    @property
    def own_bytes(self) -> int:
        return self.fixed_bytes if self.qos_flow is None else 2 * self.fixed_bytes


class GreTunnel(CarriesEthernet, OverIp):
    """GRE (RFC 2784)."""

    words: ClassVar[str] = "GRE"
    fixed_bytes: ClassVar[int] = 4
    kind: Literal["gre"]
    """Which tunnel this is."""
    key: Bits32 | None = None
    """Key (RFC 2890), 32 bits; without it there is none."""
    ethernet: bool = False
    """It carries Ethernet frames, not IP packets."""

    @property
    def own_bytes(self) -> int:
        return self.fixed_bytes if self.key is None else 2 * self.fixed_bytes


class IpTunnel(OverIp):
    """IP in IP (RFC 2003, RFC 2473, RFC 4213)."""

    words: ClassVar[str] = "IP"
    fixed_bytes: ClassVar[int] = 0
    kind: Literal["ip"]
    """Which tunnel this is."""


class Srv6Tunnel(CarriesEthernet):
    """SRv6 (RFC 8754): an IPv6 header with a list of segments."""

    words: ClassVar[str] = "SRv6"
    kind: Literal["srv6"]
    """Which tunnel this is."""
    source: Segment = "2001:db8::1"
    """The address at which the tunnel begins."""
    segments: tuple[Segment, ...] = Field(min_length=1, max_length=16)
    """The segments in the order of the path. The destination is the one that is current."""
    segments_left: int | None = Field(default=None, ge=0, le=15)
    """Segments still to come behind the current one; without it all but the first."""
    hop_limit: Bits8 = 64
    """Hop limit, 8 bits."""
    traffic_class: Bits8 = 0
    """Traffic class, 8 bits."""
    ethernet: bool = False
    """It carries Ethernet frames, not IP packets."""

    @model_validator(mode="after")
    def _has_these_segments(self) -> Srv6Tunnel:
        if self.segments_left is not None and self.segments_left >= len(self.segments):
            raise ValueError(f"of {len(self.segments)} segments at most {len(self.segments) - 1} can be left")
        return self

    @property
    def left(self) -> int:
        """Segments still to come behind the current one."""
        return len(self.segments) - 1 if self.segments_left is None else self.segments_left

    @property
    def own_bytes(self) -> int:
        return _IP_BYTES[6] + 8 + _SEGMENT_BYTES * len(self.segments)


class MplsTunnel(CarriesEthernet):
    """One label of MPLS (RFC 3032)."""

    words: ClassVar[str] = "MPLS"
    fixed_bytes: ClassVar[int] = 4
    kind: Literal["mpls"]
    """Which tunnel this is."""
    label: Bits20
    """Label, 20 bits."""
    traffic_class: Bits3 = 0
    """Traffic class, 3 bits."""
    hop_limit: Bits8 = 64
    """Time to live, 8 bits."""
    ethernet: bool = False
    """It carries Ethernet frames, not IP packets."""


class PppoeTunnel(_Tunnel):
    """The session stage of PPPoE (RFC 2516); it carries IP packets."""

    words: ClassVar[str] = "PPPoE"
    fixed_bytes: ClassVar[int] = 8
    kind: Literal["pppoe"]
    """Which tunnel this is."""
    session: Bits16
    """Session, 16 bits."""


Tunnel = Annotated[
    GreTunnel | VxlanTunnel | GeneveTunnel | GtpTunnel | IpTunnel | Srv6Tunnel | MplsTunnel | PppoeTunnel,
    Field(discriminator="kind"),
]


def _stand_in_order(tunnels: tuple[Tunnel, ...]) -> tuple[Tunnel, ...]:
    """ValueError where a tunnel cannot stand behind the one before it."""
    before: Tunnel | None = None
    for tunnel in tunnels:
        behind_link = before is None or before.has_ethernet
        if isinstance(tunnel, PppoeTunnel) and not behind_link:
            raise ValueError("PPPoE stands behind Ethernet: write it first, or behind a tunnel that carries Ethernet")
        if isinstance(tunnel, MplsTunnel) and not behind_link and not isinstance(before, MplsTunnel | GreTunnel):
            raise ValueError(
                "MPLS stands behind Ethernet, GRE or another label: write it first, or behind one of these"
            )
        before = tunnel
    return tunnels


Tunnels = Annotated[tuple[Tunnel, ...], Field(max_length=MOST_TUNNELS), AfterValidator(_stand_in_order)]
"""Tunnels around each other, the outermost first."""


def tunnel_bytes(tunnels: Sequence[Tunnel], ip: int) -> int:
    """The bytes of the headers of all these tunnels, for frames of this IP version."""
    return sum(tunnel.header_bytes(inner_version(tunnels[:index], ip)) for index, tunnel in enumerate(tunnels))


def inner_version(tunnels: Sequence[Tunnel], ip: int) -> int:
    """The IP version behind these tunnels: ``ip``, or 4 where one of them has taken the addresses of the way."""
    return 4 if any(isinstance(tunnel, OverIp) and tunnel.source is None for tunnel in tunnels) else ip


def tunnel_words(tunnels: Sequence[Tunnel]) -> tuple[str, ...]:
    """The tunnels in words, outermost first, as in ("GRE", "Ethernet")."""
    words: list[str] = []
    for tunnel in tunnels:
        words += [tunnel.words, *(["Ethernet"] if tunnel.has_ethernet else [])]
    return tuple(words)
