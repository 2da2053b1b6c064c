"""Headers of frames as a bench file gives them: fields, flow rules, tunnels, multicast groups, and pause frames."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from nicbench.core.base import Frozen, optional
from nicbench.core.lists import without_none
from nicbench.core.quantity import FramesPerSecond

# Fields of headers in a bench file: a fixed value, or a different one in each flow.


LARGEST_PORT: Final = 65_535


class Sweep(Frozen):
    """``count`` values from ``first`` in steps of ``step``: in turn over the flows, or drawn for each with a seed."""

    first: int = Field(ge=0)
    """The first value."""
    count: int = Field(ge=1, le=2**32)
    """How many values."""
    step: int = Field(default=1, ge=1)
    """The distance of two values."""
    seed: int | None = Field(default=None, ge=0, le=2**63 - 1)
    """Draws the value of each flow at random with this seed; without it the flows take the values in turn."""

    @property
    def last(self) -> int:
        """The largest value of the field."""
        return self.first + (self.count - 1) * self.step


FieldValue = int | Sweep


def fits(value: FieldValue | None, bits: int) -> FieldValue | None:
    """The value of a field of this width. ValueError where the value needs more bits."""
    last = value.last if isinstance(value, Sweep) else value
    if last is not None and not 0 <= last < 2**bits:
        raise ValueError(f"it reaches {last}, and the field has {bits} bits: stay at or below {2**bits - 1}")
    return value


def _of_bits(bits: int) -> AfterValidator:
    return AfterValidator(partial(fits, bits=bits))


Bits3 = Annotated[FieldValue, _of_bits(3)]
Bits6 = Annotated[FieldValue, _of_bits(6)]
Bits8 = Annotated[FieldValue, _of_bits(8)]
Bits16 = Annotated[FieldValue, _of_bits(16)]
Bits20 = Annotated[FieldValue, _of_bits(20)]
Bits24 = Annotated[FieldValue, _of_bits(24)]
Bits32 = Annotated[FieldValue, _of_bits(32)]

_BITS: Final = {
    "source_port": 16,
    "destination_port": 16,
    "vlan": 12,
    "vlan_priority": 3,
    "traffic_class": 8,
    "identification": 16,
    "flow_label": 20,
    "hop_limit": 8,
    "vni": 24,
    "tcp_sequence": 32,
    "tcp_acknowledgement": 32,
    "tcp_flags": 8,
}


class Fields(Frozen):
    """Header fields with a fixed value, or a different one in each flow. ``vlan`` is that of the innermost tag."""

    source_port: FieldValue | None = None
    """Source port of UDP or TCP, 16 bits."""
    destination_port: FieldValue | None = None
    """Destination port of UDP or TCP, 16 bits."""
    vlan: FieldValue | None = None
    """Identifier of the innermost VLAN tag, 12 bits."""
    vlan_priority: FieldValue | None = None
    """Priority of the VLAN tag, 3 bits."""
    traffic_class: FieldValue | None = None
    """Traffic class of IPv6, or the field of IPv4 with DSCP and ECN, 8 bits."""
    identification: FieldValue | None = None
    """Identification of IPv4, 16 bits."""
    flow_label: FieldValue | None = None
    """Flow label of IPv6, 20 bits."""
    hop_limit: FieldValue | None = None
    """Hop limit or time to live, 8 bits."""
    vni: FieldValue | None = None
    """Network identifier of VXLAN, 24 bits."""
    tcp_sequence: FieldValue | None = None
    """Sequence number of TCP, 32 bits."""
    tcp_acknowledgement: FieldValue | None = None
    """Acknowledgement number of TCP, 32 bits."""
    tcp_flags: int | None = None
    """Flags of TCP, 8 bits; the same in every frame."""

    @field_validator("*")
    @classmethod
    def _fits(cls, value: FieldValue | None, info: Any) -> FieldValue | None:
        return fits(value, _BITS[info.field_name])

    def given_fields(self) -> dict[str, FieldValue]:
        """Returns the fields that are set, by name."""
        return {name: value for name in _BITS if (value := getattr(self, name)) is not None}


# A rule by which an adapter sends chosen flows to a receive queue (flow director, ntuple filters; ethtool(8), -N).


FlowType = Literal["tcp4", "udp4", "sctp4", "tcp6", "udp6", "sctp6"]


def _masked_address(text: str) -> str:
    return str(ipaddress.ip_address(text))


MaskedAddress = Annotated[str, AfterValidator(_masked_address)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class FlowRule(Frozen):
    """Frames of ``flow`` in which every given field is as it stands here go to ``queue``; None: they are dropped."""

    flow: FlowType
    source_address: MaskedAddress | None = None
    destination_address: MaskedAddress | None = None
    source_port: Port | None = None
    destination_port: Port | None = None
    queue: int | None = Field(ge=0, le=2**16)

    @model_validator(mode="after")
    def _chooses(self) -> FlowRule:
        addresses = without_none((self.source_address, self.destination_address))
        version = int(self.flow[-1])
        if any(ipaddress.ip_address(address).version != version for address in addresses):
            raise ValueError(f"an address of a rule for {self.flow} is none of IPv{version}")
        if not addresses and self.source_port is None and self.destination_port is None:
            raise ValueError(f"a rule for {self.flow} names no address and no port: name one at least")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The rule in ethtool's words, as they stand behind ``ethtool -N DEVICE``."""
        fields = (
            ("src-ip", self.source_address),
            ("dst-ip", self.destination_address),
            ("src-port", self.source_port),
            ("dst-port", self.destination_port),
        )
        given = [word for name, value in fields if value is not None for word in (name, str(value))]
        return ("flow-type", self.flow, *given, "action", "-1" if self.queue is None else str(self.queue))

    @classmethod
    def of_words(cls, words: str) -> FlowRule:
        """Returns the rule of ``words`` in one line; ValueError where they do not form a rule."""
        pairs = words.split()
        given = dict(zip(pairs[::2], pairs[1::2], strict=True))
        queue = int(given["action"])
        return cls.model_validate(
            {
                "flow": given["flow-type"],
                "source_address": given.get("src-ip"),
                "destination_address": given.get("dst-ip"),
                "source_port": None if "src-port" not in given else int(given["src-port"]),
                "destination_port": None if "dst-port" not in given else int(given["dst-port"]),
                "queue": None if queue < 0 else queue,
            }
        )


# Tunnels around the frames of a bench file: their headers, and in which order they can stand.


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
WrittenMac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", to_lower=True)]
"""A MAC address as people write it; it becomes lower case."""


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

    words = "VXLAN"
    carries_ethernet = True
    fixed_bytes = 8
    kind: Literal["vxlan"]
    """Which tunnel this is."""
    vni: Bits24
    """Network identifier, 24 bits."""
    port: int = Field(default=VXLAN_PORT, ge=1, le=LARGEST_PORT)
    """UDP destination port."""


class GeneveTunnel(CarriesEthernet, OverUdp):
    """GENEVE (RFC 8926) without options."""

    words = "GENEVE"
    fixed_bytes = 8
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

    words = "GTP-U"
    fixed_bytes = 8
    kind: Literal["gtp-u"]
    """Which tunnel this is."""
    teid: Bits32
    """Tunnel endpoint identifier, 32 bits."""
    qos_flow: Bits6 | None = None
    """QoS flow of 5G, 6 bits, in a PDU session container of the uplink; without it frames have no such container."""
    port: int = Field(default=_GTP_PORT, ge=1, le=LARGEST_PORT)
    """UDP destination port."""

    @property
    def own_bytes(self) -> int:
        return self.fixed_bytes if self.qos_flow is None else 2 * self.fixed_bytes


class GreTunnel(CarriesEthernet, OverIp):
    """GRE (RFC 2784)."""

    words = "GRE"
    fixed_bytes = 4
    kind: Literal["gre"]
    """Which tunnel this is."""
    key: Bits32 | None = None
    """Key (RFC 2890), 32 bits; without it frames have no key."""
    ethernet: bool = False
    """It carries Ethernet frames, not IP packets."""

    @property
    def own_bytes(self) -> int:
        return self.fixed_bytes if self.key is None else 2 * self.fixed_bytes


class IpTunnel(OverIp):
    """IP in IP (RFC 2003, RFC 2473, RFC 4213)."""

    words = "IP"
    fixed_bytes = 0
    kind: Literal["ip"]
    """Which tunnel this is."""


class Srv6Tunnel(CarriesEthernet):
    """SRv6 (RFC 8754): an IPv6 header with a list of segments."""

    words = "SRv6"
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

    words = "MPLS"
    fixed_bytes = 4
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

    words = "PPPoE"
    fixed_bytes = 8
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
    words = []
    for tunnel in tunnels:
        words += [tunnel.words, *(["Ethernet"] if tunnel.has_ethernet else [])]
    return tuple(words)


# Frames that one port sends and several receive: to multicast groups, which ports join and leave, or to all stations.
#
# Groups have consecutive addresses, so that a DUT that still holds those of the trial before holds the same ones.


JOIN, LEAVE, WATCHED = "join", "leave", "watched"
"""How names of streams end that are not load: membership reports, and copies at ports that should get none."""
UNICAST: Final = "unicast"
"""How names of streams to single stations end, which are part of the load."""
BURDEN: Final = "burden"
"""How names of streams between burdening ports end, which are not load."""
TO_ALL: Final = "to all"
"""How names of streams of broadcasts end, which are counted apart from the load."""
BROADCASTS: Final = "broadcasts"
"""The name of the value that says what became of them."""
MOST_GROUPS: Final = 2**16
RECORDS_OF_A_REPORT: Final = {4: 180, 6: 70}
"""The number of groups that one report joins, so that it fits any frame that a port takes (RFC 3376 section 4.2.16)."""

# RFC 2365 section 6.2: the IPv4 organisation's local scope; RFC 4291 section 2.7: transient, of the organisation.
_FIRST: Final[dict[int, IPv4Address | IPv6Address]] = {4: IPv4Address("239.192.0.1"), 6: IPv6Address("ff18::1:1")}


class Burden(Frozen):
    """Frames to single stations between ports that take no other part; each sends to all the others.

    RFC 3918 section 8: "burdening ports", fully meshed (RFC 2285 section 3.3.3).
    """

    rate: FramesPerSecond = Field(gt=0.0)
    """The rate at which each of them sends, and receives."""
    ports: int = Field(default=2, ge=2)
    """How many ports: the last ones, which join no group."""


class Groups(Frozen):
    """Frames from the first port of a trial to multicast groups (RFC 3918), or to all stations (RFC 2889 5.10).

    Ports that should receive them count them; the others watch for them, and what they see stays out of the counts.
    Times are from the beginning of the transmission.
    """

    groups: int = Field(ge=0, le=MOST_GROUPS)
    """0: to all stations."""
    members: int = Field(ge=1)
    """The number of other ports, from the first on, that join the groups."""
    older: bool = False
    """IGMPv2 or MLDv1 in place of IGMPv3 or MLDv2."""
    send_s: float = 0.0
    """When the first frame is due."""
    join_s: float = 0.0
    leave_s: float | None = None
    """When the ports leave; without it behind the last frame."""
    unicast: float = Field(default=0.0, ge=0.0, lt=1.0, exclude_if=lambda share: not share)
    """The share of the load that goes to single stations, one at the port of each member in turn."""
    burden: Burden | None = optional(None)
    """Frames of the last ports to each other, from the beginning to the end."""

    def reports(self, ip: int) -> int:
        """Returns how many frames join all groups at one port; as many leave them."""
        each = 1 if self.older else RECORDS_OF_A_REPORT[ip]
        return -(-self.groups // each)


def group_address(ip: int, number: int = 0) -> IPv4Address | IPv6Address:
    """Returns the address of a group by its number, from 0."""
    return _FIRST[ip] + number


def group_mac(group: str) -> str:
    """Returns the MAC address of a group (RFC 1112 section 6.4, RFC 2464 section 7)."""
    address = ip_address(group)
    low = address.packed[-4:] if address.version == 6 else bytes((address.packed[1] & 0x7F, *address.packed[2:]))
    first = b"\x33\x33" if address.version == 6 else b"\x01\x00\x5e"
    return ":".join(f"{byte:02x}" for byte in first + low)


# Pause frames (IEEE 802.3 annex 31B), PFC frames (IEEE 802.1Q clause 36) and ECN codepoints (RFC 3168 section 5).


PRIORITIES: Final = 8
QUANTUM_BITS: Final = 512
"""The bit times of the link in a pause quantum."""
MOST_QUANTA: Final = 65_535
MAC_CONTROL: Final = 0x8808
PAUSE_OPCODE, PFC_OPCODE = 0x0001, 0x0101
_TO: Final = "0180c2000001"
# What a port's MAC address takes the place of: a MAC control frame has the smallest size, without FCS.
_FRAME_BYTES: Final = 60


class Codepoint(IntEnum):
    """The two bits of ECN."""

    NOT_ECT = 0
    ECT_1 = 1
    ECT_0 = 2
    CE = 3

    @property
    def words(self) -> str:
        """Its name in RFC 3168."""
        return {0: "Not-ECT", 1: "ECT(1)", 2: "ECT(0)", 3: "CE"}[self]


class PauseTrain(Frozen):
    """Equal pause frames at a rate."""

    priority: int | None = Field(default=None, ge=0, lt=PRIORITIES)
    """The priority that PFC frames pause; without it PAUSE frames, which pause the whole link."""
    quanta: int = Field(ge=0, le=MOST_QUANTA)
    """For how long they pause; 0 ends a pause."""
    frames: int = Field(ge=1)
    frames_per_s: float = Field(gt=0.0)
    begins_s: float = Field(ge=0.0)
    """When the first one is due, from the beginning of the transmission."""

    @property
    def ends_s(self) -> float:
        """When the last one is due."""
        return self.begins_s + (self.frames - 1) / self.frames_per_s


class Pausing(Frozen):
    """Pause frames that the receiving port of the first way sends, in addition to the load in the other direction."""

    trains: tuple[PauseTrain, ...]
    load_begins_s: float = 0.0
    """When the first frame of the load is due."""
    priority: int | None = Field(default=None, ge=0, lt=PRIORITIES)
    """The priority whose PFC frames from the DUT are counted at the sending port; without it PAUSE frames are."""


def pause_seconds(quanta: int, bits_per_s: float) -> float:
    """Returns how long a pause lasts on a link of this speed."""
    return quanta * QUANTUM_BITS / bits_per_s


def pause_frame(source_mac: str, priority: int | None, quanta: int) -> bytes:
    """Returns the frame without FCS: of 802.1Qbb for a priority, else of 802.3x."""
    head = bytes.fromhex(_TO + source_mac.replace(":", "")) + MAC_CONTROL.to_bytes(2)
    if priority is None:
        body = PAUSE_OPCODE.to_bytes(2) + quanta.to_bytes(2)
    else:
        times = b"".join((quanta if one == priority else 0).to_bytes(2) for one in range(PRIORITIES))
        body = PFC_OPCODE.to_bytes(2) + (1 << priority).to_bytes(2) + times
    return (head + body).ljust(_FRAME_BYTES, b"\0")
