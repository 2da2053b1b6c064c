"""The end of a tunnel in the Linux kernel (`tunnel-end`): what arrives in it at the first port is routed to the others.

Addresses, neighbours, routes and settings of the ports are those of `kernel-forward`. The tunnel is an interface of the
kernel (vxlan, geneve, gre, ipip, sit, ip6tnl) with the addresses that the frames of the first port have on the outside;
the network behind the first port is routed into it, so that the way back is encapsulated. Where the tunnel carries
Ethernet, the interface has the MAC address that the frames are sent to inside, and the tester's is a static neighbour.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Any, Final

from pydantic import Field, field_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.headers.fields import Sweep
from nicbench.core.headers.tunnels import CarriesEthernet, GeneveTunnel, GreTunnel, IpTunnel, OverIp, VxlanTunnel
from nicbench.hosts.base import Host
from nicbench.testbed.duts._forwarding import ForwardingDut, neighbour_of
from nicbench.testbed.duts._ports import require_host
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject, DeleteLink

DEVICE: Final = "nicbench-tun"
# The neighbour behind a tunnel that carries Ethernet: link-local addresses, which nobody else routes to.
_INSIDE: Final = {4: "169.254.90.2", 6: "fe80::5a:2"}

KernelTunnel = Annotated[VxlanTunnel | GeneveTunnel | GreTunnel | IpTunnel, Field(discriminator="kind")]


class TunnelEndOptions(Frozen):
    """``dut: {kind: tunnel-end, tunnel: {kind: vxlan, vni: 7, source: 192.0.2.1, destination: 192.0.2.2}}``."""

    tunnel: KernelTunnel
    """The tunnel as it is in `traffic`: `source` is the tester's end, `destination` the DUT's."""

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

    async def drops(self) -> dict[str, int]:
        """No counters of its own: those of the kernel are read on every host (``nicbench.measure.ledger``)."""
        return {}

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
