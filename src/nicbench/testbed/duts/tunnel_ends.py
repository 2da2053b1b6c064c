"""The ends of tunnels: as devices of the Linux kernel (`tunnel-end`), and as XDP programs (`xdp-tunnel`)."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.headers import (
    CarriesEthernet,
    FieldValue,
    GeneveTunnel,
    GreTunnel,
    GtpTunnel,
    IpTunnel,
    MplsTunnel,
    OverIp,
    OverUdp,
    PppoeTunnel,
    Srv6Tunnel,
    Sweep,
    Tunnel,
    Tunnels,
    VxlanTunnel,
)
from nicbench.core.pattern import Pattern, ways_of
from nicbench.hosts.base import Host
from nicbench.testbed.addressing import MOST_PORTS, transparent_addressing
from nicbench.testbed.duts._kernel import ForwardingDut, dut_devices, neighbour_of, require_host
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.duts.xdp import XdpDut, XdpOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning import bpf
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink

# The headers of tunnels as bytes, for a DUT that takes them off and puts them on. Pure.
#
# It is written from the standards a second time, apart from the engine that sends: where the two disagree,
# no frame passes.


Inside = Literal["ipv4", "ipv6", "ethernet", "mpls", "pppoe"]
# IANA, "IEEE 802 Numbers", "Protocol Numbers" and "PPP DLL Protocol Numbers".
_ETHERTYPES: Final[dict[Inside, int]] = {
    "ipv4": 0x0800, "ipv6": 0x86DD, "ethernet": 0x6558, "mpls": 0x8847, "pppoe": 0x8864,
}  # fmt: skip
_PROTOCOLS: Final = {"ipv4": 4, "ipv6": 41, "ethernet": 143}
_PPP: Final = {"ipv4": 0x0021, "ipv6": 0x0057}
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
    """Fields that hold the length of what is behind Ethernet's header, less some bytes: place and those bytes."""
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


# The end of a tunnel in the Linux kernel (`tunnel-end`): what arrives in it at the first port is routed to the others.
#
# Addresses, neighbours, routes and settings of the ports are those of `kernel-forward`. The tunnel is an interface of
# the kernel (vxlan, geneve, gre, ipip, sit, ip6tnl) with the addresses that the frames of the first port have on the
# outside; the network behind the first port is routed into it, so that the way back is encapsulated. Where the tunnel
# carries Ethernet, the interface has the MAC address that the frames are sent to inside, and the tester's is a static
# neighbour.


DEVICE: Final = "nicbench-tun"
# The neighbour behind a tunnel that carries Ethernet: link-local addresses, which nobody else routes to.
_INSIDE: Final = {4: "169.254.90.2", 6: "fe80::5a:2"}

KernelTunnel = Annotated[VxlanTunnel | GeneveTunnel | GreTunnel | IpTunnel, Field(discriminator="kind")]


class TunnelEndOptions(Frozen):
    """``dut: {kind: tunnel-end, tunnel: {kind: vxlan, vni: 7, source: 192.0.2.1, destination: 192.0.2.2}}``."""

    tunnel: KernelTunnel
    """The tunnel of `traffic`: `source` is the tester's end, `destination` the DUT's."""

    @field_validator("tunnel")
    @classmethod
    def _is_one_tunnel(cls, tunnel: OverIp) -> OverIp:
        if tunnel.source is None:
            raise ValueError("the ends of the tunnel are not known: write `source` and `destination`, as in `traffic`")
        if any(isinstance(getattr(tunnel, name, None), Sweep) for name in ("vni", "key")):
            raise ValueError("an interface of the kernel is one tunnel: write one number, not several")
        return tunnel


class TunnelEnd(ForwardingDut):
    """The DUT's host ends a tunnel behind its first port, and routes."""

    kind = "tunnel-end"
    Options = TunnelEndOptions
    fewest_ports = 2
    options: TunnelEndOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._made: list[tuple[str, ...]] = []

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        await self._set_up_routes(testbed, changes)
        tunnel, first = self.options.tunnel, self._ports[0]
        assert tunnel.source is not None  # noqa: S101 - the options refuse it
        assert tunnel.destination is not None  # noqa: S101 - as above
        version = ip_address(tunnel.source).version
        own = next(address for address in first.addresses if ip_address(address.split("/")[0]).version == version)
        await self._add(host, changes, version, "address", (tunnel.destination, "dev", first.device))
        beyond = (tunnel.source, "via", neighbour_of(own), "dev", first.device)
        await self._add(host, changes, version, "route", beyond)
        await self._make_device(host, changes)
        for network in first.networks:
            inner = 6 if ":" in network else 4
            if inner == 4 or self._has_ipv6:
                await self._route_into(host, changes, inner, network)

    async def _make_device(self, host: Host, changes: Changes) -> None:
        tunnel = self.options.tunnel
        command = ("ip", "link", "add", "name", DEVICE, *link_words(tunnel))
        try:
            await changes.make(host, DeleteLink(device=DEVICE), lambda: self._run(host, command))
        except HostError as error:
            raise NotReadyError(
                f"the kernel makes no interface of the type {link_type(tunnel)}: {error.message}",
                place=host.name,
                next_step="load its module (modprobe vxlan, geneve, ip_gre, ipip), or choose `dut: {kind: xdp-tunnel}`",
            ) from error
        for path, value in ((f"ipv4/conf/{DEVICE}/rp_filter", "0"), (f"ipv6/conf/{DEVICE}/disable_ipv6", "0")):
            if await host.read_file(f"/proc/sys/net/{path}") is not None:
                await host.write_file(f"/proc/sys/net/{path}", value)  # the setting goes with the interface
        await self._run(host, ("ip", "link", "set", "dev", DEVICE, "up"))

    async def _route_into(self, host: Host, changes: Changes, version: int, network: str) -> None:
        """Routes the network behind the first port into the tunnel, in place of the port itself."""
        tunnel, inside = self.options.tunnel, _INSIDE[version]
        via: tuple[str, ...] = ()
        if isinstance(tunnel, CarriesEthernet) and tunnel.has_ethernet:
            neighbour = (inside, "lladdr", tunnel.source_mac, "dev", DEVICE, "nud", "permanent")
            await self._add(host, changes, version, "neigh", neighbour, key=(inside, "dev", DEVICE))
            via = ("via", inside)
        words = (network, *via, "dev", DEVICE)
        await self._add(host, changes, version, "route", (*words, *(("onlink",) if via else ())), key=words)

    async def _add(
        self,
        host: Host,
        changes: Changes,
        version: int,
        what: str,
        words: tuple[str, ...],
        *,
        key: tuple[str, ...] = (),
    ) -> None:
        # A route takes the place of the one that leads to the port.
        verb = "add" if what == "address" else "replace"
        command = ("ip", f"-{version}", what, verb, *words)
        undo = DeleteIpObject(arguments=(f"-{version}", what, "del", *(key or words)))
        await changes.make(host, undo, lambda: self._run(host, command))

    async def _run(self, host: Host, command: tuple[str, ...]) -> None:
        await host.run(command)
        self._made.append(command)

    def disclosure(self) -> dict[str, Any]:
        routes = self._disclose_routes()
        return {
            "kind": self.kind,
            "tunnel": self.options.tunnel.model_dump(mode="json", exclude_none=True),
            **routes,
            "commands": [*routes["commands"], *(" ".join(command) for command in self._made)],
        }


def link_type(tunnel: OverIp) -> str:
    """The type of the kernel's interface for a tunnel."""
    is_v6 = tunnel.ip_version(4) == 6
    if isinstance(tunnel, GreTunnel):
        return f"{'ip6' if is_v6 else ''}{'gretap' if tunnel.has_ethernet else 'gre'}"
    if isinstance(tunnel, IpTunnel):
        return "ip6tnl" if is_v6 else "ipip"
    return "geneve" if isinstance(tunnel, GeneveTunnel) else "vxlan"


def link_words(tunnel: OverIp) -> tuple[str, ...]:
    """The words of `ip link add` behind the name; ends are exchanged, for the DUT sends from its own."""
    is_v6 = tunnel.ip_version(4) == 6
    remote, local = str(tunnel.source), str(tunnel.destination)
    kind = link_type(tunnel)
    if isinstance(tunnel, VxlanTunnel | GeneveTunnel):
        number, port = ("id", str(tunnel.vni)), ("dstport", str(tunnel.port))
        ends = ("remote", remote) if kind == "geneve" else ("local", local, "remote", remote)
        inner = ("innerprotoinherit",) if kind == "geneve" and not tunnel.has_ethernet else ()
        # Around a tunnel UDP has no checksum (RFC 6935), which the kernel must be told over IPv6.
        sums = ("udp6zerocsumtx", "udp6zerocsumrx") if is_v6 else ()
        own = ("address", tunnel.destination_mac) if tunnel.has_ethernet else ()
        return (*own, "type", kind, *number, *ends, *port, *inner, *sums)
    ends = ("local", local, "remote", remote)
    if isinstance(tunnel, GreTunnel):
        own = ("address", tunnel.destination_mac) if tunnel.has_ethernet else ()
        return (*own, "type", kind, *ends, *(() if tunnel.key is None else ("key", str(tunnel.key))))
    mode = ("mode", "any")
    return ("type", kind, *mode, *ends)


# The ends of tunnels as XDP programs (`xdp-tunnel`): between the ports of a pair, headers are taken off and put on.
#
# On the side of the first port frames are in `tunnels`, on that of the second in `beyond` (in none by default). What
# comes in at the first port loses the headers of `tunnels` and gets those of `beyond`, at the second the other way
# round. The packet inside and the MAC addresses stay as they are. It is a golden DUT: every frame in the tunnel is
# sent on, but for those that it is told to drop or to damage.


_PROGRAM: Final = "xdp_tunnel"
_MOST_BYTES: Final = 192
_MOST_FIELDS: Final = 8
_NOWHERE: Final = 0xFFFF
_SETTINGS: Final = struct.Struct(f"=III2s2sII{2 * _MOST_FIELDS}H{_MOST_FIELDS}H{3 * _MOST_BYTES}s")


class XdpTunnelOptions(XdpOptions):
    """``dut: {kind: xdp-tunnel, tunnels: [...]}``."""

    tunnels: Tunnels = Field(default=(), max_length=8)
    """The tunnels on the side of the first port, as in `traffic`, each with its addresses."""
    beyond: Tunnels = Field(default=(), max_length=8)
    """The tunnels on the side of the second port; without it none."""
    carries: Literal[4, 6] = 4
    """The IP version of the packets inside."""
    drop_every: int = Field(default=0, ge=0, le=2**31)
    """The number of incoming frames of a port of which one is dropped: a broken DUT. 0: none is dropped."""
    damage_every: int = Field(default=0, ge=0, le=2**31)
    """The number of incoming frames of a port of which one has its last byte altered: a broken DUT. 0: none is altered.

    """

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.tunnels and not self.beyond and not self.drop_every and not self.damage_every:
            raise ValueError("it needs `tunnels` or `beyond`: without them it would change nothing")
        for tunnel in (*self.tunnels, *self.beyond):
            if isinstance(tunnel, OverIp) and tunnel.source is None:
                raise ValueError(f"the {tunnel.words} header needs `source` and `destination`, as it has in `traffic`")
        for tunnels in (self.tunnels, self.beyond):
            made = tunnel_headers(tunnels, self.carries)
            if len(made.header) > _MOST_BYTES or len(made.lengths) > _MOST_FIELDS:
                raise ValueError(f"the headers have {len(made.header)} bytes, and it takes at most {_MOST_BYTES}")
        return self


class XdpTunnel(XdpDut):
    """The DUT's host ends and begins tunnels between the ports of a pair."""

    kind = "xdp-tunnel"
    Options = XdpTunnelOptions
    fewest_ports = 2
    most_ports = MOST_PORTS
    fates = ("sent on", "not in the tunnel", "dropped on purpose", "damaged on purpose")
    """In the order of `enum fate` of the program."""
    options: XdpTunnelOptions

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        if pattern is Pattern.ONE_TO_ONE:
            return None
        return Refusal("a tunnel only joins pairs of ports", "write `pattern: one-to-one`, or choose another DUT")

    async def up(self, testbed: Testbed, changes: Changes) -> None:
        host = require_host(testbed, self.kind)
        devices = await dut_devices(testbed, self.kind, fewest=self.fewest_ports, most=self.most_ports)
        await self._attach(testbed, changes, devices, _PROGRAM)
        for start, end in ways_of(Pattern.ONE_TO_ONE, len(devices.names), bidirectional=True).loaded:
            back = start > end
            sides = (self.options.tunnels, self.options.beyond)
            made = [tunnel_headers(side, self.options.carries, back=back) for side in sides]
            removed, added = made[::-1] if back else made
            packed = pack_settings(self.options, devices.indexes[end], removed, added)
            settings = await bpf.map_id(host, self._attached[start].program, "tunnel_settings")
            wanted = int.from_bytes(packed, sys.byteorder)
            await bpf.write_map(host, settings, 0, wanted, value_bytes=len(packed))
            if await bpf.read_map(host, settings, 0) != wanted:
                raise HostError("the program did not accept its settings", place=f"{host.name}, {devices.names[start]}")

    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        pairs = ways_of(Pattern.ONE_TO_ONE, len(testbed.dut_ports), bidirectional=True).loaded
        return tuple(way for way in transparent_addressing(testbed, ip) if (way.transmit, way.receive) in pairs)

    async def drops(self) -> dict[str, int]:
        return await self._counts_of("dropped on purpose")

    async def left_to_kernel(self) -> dict[str, int]:
        return await self._counts_of("not in the tunnel")

    async def _counts_of(self, fate: str) -> dict[str, int]:
        return {f"{port.device} {fate}": (await self._read_counts(port))[fate] for port in self._attached}

    def disclosure(self) -> dict[str, Any]:
        options = self.options
        return {
            "kind": self.kind,
            **self._disclose_programs(_PROGRAM),
            "tunnels": [tunnel.model_dump(mode="json", exclude_none=True) for tunnel in options.tunnels],
            "beyond": [tunnel.model_dump(mode="json", exclude_none=True) for tunnel in options.beyond],
            "drop_every": options.drop_every or None,
            "damage_every": options.damage_every or None,
        }


def pack_settings(options: XdpTunnelOptions, interface: int, removed: TunnelBytes, added: TunnelBytes) -> bytes:
    """``struct settings`` of xdp_tunnel.bpf.c."""
    types = (removed.ethertype, added.ethertype)
    lengths = [number for field in added.lengths for number in field]
    lengths += [_NOWHERE, 0] * (_MOST_FIELDS - len(added.lengths))
    checksums = added.checksums + [_NOWHERE] * (_MOST_FIELDS - len(added.checksums))
    images = (removed.header, removed.mask, added.header)
    return _SETTINGS.pack(
        interface,
        len(removed.header),
        len(added.header),
        *(number.to_bytes(2, "big") for number in types),
        options.drop_every,
        options.damage_every,
        *lengths,
        *checksums,
        b"".join(bytes(image).ljust(_MOST_BYTES, b"\0") for image in images),
    )
