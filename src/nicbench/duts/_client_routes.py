"""Routes of clients through the router that is measured: to the network of each other port, and to nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import Any, Final

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo import DeleteIpObject

Interface = IPv4Interface | IPv6Interface
_PING_S: Final = 2


@dataclass(frozen=True, slots=True)
class Route:
    """On the host of ``client``: ``network`` lies behind ``gateway``, the router's address on the client's port."""

    client: Endpoint
    network: str
    gateway: str

    @property
    def family(self) -> str:
        """As ip(8) is told it."""
        return "-6" if ":" in self.gateway else "-4"

    @property
    def words(self) -> tuple[str, ...]:
        """As ip(8) is told it; the source address is the one that workloads use."""
        facts = self.client.facts
        return (self.network, "via", self.gateway, "dev", str(facts.device), "src", facts.address)


async def port_networks(testbed: EndpointTestbed) -> dict[str, Interface]:
    """The address, with its network, of each port of the router; NotReadyError where two are in one network."""
    found: dict[str, Interface] = {}
    for end in testbed.servers:
        shown = await _shown(end.host.network, "ip", "-j", "address", "show", "dev", str(end.facts.device))
        own = ip_address(end.facts.address)
        found[end.name] = next(
            ip_interface(f"{entry['local']}/{entry['prefixlen']}")
            for each in shown
            for entry in each.get("addr_info", ())
            if ip_address(entry["local"]) == own
        )
    names = list(found)
    for number, name in enumerate(names):
        for other in names[number + 1 :]:
            near, far = found[name].network, found[other].network
            if near.version == far.version and near.overlaps(far):
                raise NotReadyError(
                    f"the ports {name} and {other} are in one network ({near}, {far}): nothing between them is routed",
                    place=testbed.server.name,
                    next_step="give each port of the router a network of its own",
                )
            if near.version != far.version:
                raise NotReadyError(
                    f"the port {name} has an IPv{near.version} address and {other} an IPv{far.version} one",
                    place=testbed.server.name,
                    next_step="name addresses of one version with `ip` under `ports`",
                )
    return found


def routes_of(testbed: EndpointTestbed, networks: Mapping[str, Interface]) -> tuple[Route, ...]:
    """One for each client and each port that it does not lead to; NotReadyError where a host is a client of two."""
    ports_of: dict[str, set[str]] = {}
    for client in testbed.clients:
        ports_of.setdefault(client.host.name, set()).add(str(client.facts.port))
    for host, ports in ports_of.items():
        if len(ports) > 1:
            raise NotReadyError(
                f"it is a client of several ports ({', '.join(sorted(ports))}): what it sends from one to the other "
                "would not pass the router",
                place=host,
                next_step="give each port clients on hosts, or in network namespaces, of their own",
            )
    return tuple(
        Route(client, str(networks[port].network), str(networks[str(client.facts.port)].ip))
        for client in testbed.clients
        for port in networks
        if port != client.facts.port
    )


async def add_route(changes: Changes, route: Route) -> tuple[str, ...]:
    """Adds it, with its undo; one that is there already as wanted stays, now and when undoing. Gives the command."""
    host = route.client.host.network
    known = await _shown(host, "ip", route.family, "-j", "route", "show", "exact", route.network)
    if known:
        there = (known[0].get("gateway"), known[0].get("dev"))
        if there != (route.gateway, route.client.facts.device):
            raise NotReadyError(
                f"there is another route to {route.network}, by {there[0] or 'its own link'}, dev {there[1]}",
                place=host.name,
                next_step=f"ip route del {route.network}, or give the ports other networks",
            )
        return ()
    command = ("ip", route.family, "route", "add", *route.words)
    undo = DeleteIpObject(arguments=(route.family, "route", "del", *route.words))

    async def apply() -> None:
        await host.run(command)

    await changes.make(host, undo, apply)
    return command


async def check_way(route: Route, target: Endpoint) -> None:
    """That the client's kernel sends to ``target`` by this route, whatever other rules it has; NotReadyError."""
    facts = route.client.facts
    asked = ("ip", route.family, "-j", "route", "get", target.facts.address, "from", facts.address)
    found = (await _shown(route.client.host.network, *asked) or [{}])[0]
    if found.get("gateway") != route.gateway or found.get("dev") != facts.device:
        raise NotReadyError(
            f"what {facts.name} sends to {target.name} does not go through the router: it goes by "
            f"{found.get('gateway', 'its own link')}, dev {found.get('dev')}",
            place=route.client.host.name,
            next_step="`ip rule` and `ip route` there show why",
        )


async def check_passage(source: Endpoint, target: Endpoint) -> None:
    """That something comes back of what is sent through the router; NotReadyError."""
    family = "-6" if ":" in target.facts.address else "-4"
    command = ("ping", family, "-n", "-c", "3", "-i", "0.2", "-W", str(_PING_S), "-I", source.facts.address)
    done = await source.host.network.run((*command, target.facts.address), check=False, timeout_s=20.0)
    if done.status != 0:
        said = (done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotReadyError(
            f"{target.name} does not answer {source.name} through the router: {said}",
            place=source.host.name,
            next_step="`nft list ruleset` on the router shows whether it drops what it should forward; where hosts "
            "answer no ping at all, write `dut: {kind: router, ping: false}`",
        )


async def _shown(host: Host, *command: str) -> list[dict[str, Any]]:
    text = (await host.run(command)).stdout
    try:
        found: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError as error:
        raise HostError(f"{' '.join(command)} does not print JSON", place=host.name) from error
    return found
