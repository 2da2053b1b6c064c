"""Hosts that workloads measure: a router (`router`), and a server (`server`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import Any, Final

from nicbench.core.base import Frozen
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.hosts.base import Host
from nicbench.testbed.duts._process import require_program
from nicbench.testbed.duts.base import EndpointDut, EndpointDutOptions
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.network import DeleteIpObject

# A server whose adapter is measured by streams, transfers and requests of its clients (`server`).


class ServerOptions(EndpointDutOptions):
    """``dut: {kind: server, host: NAME}``."""


class Server(EndpointDut):
    """The measured host; workloads start their own server processes, so only the section `tuning` changes it."""

    kind = "server"
    Options = ServerOptions
    is_set_up = False

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        return

    def disclosure(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.options.name or "server", "host": self.options.host}


# A host that forwards IP between its ports, measured by workloads between clients of different ports (`router`).
#
# Forwarding is switched on, and each client gets a route to the network of every other port through the address of its
# own port, never a default route. Added routes are removed afterwards, and settings get their old values back.
# Verified: the kernel of each client uses the route, and clients answer a ping through the router.


Interface = IPv4Interface | IPv6Interface
_PING_S: Final = 2
_INSTALL_PING: Final = "apt-get install iputils-ping, or write `dut: {kind: router, ping: false}`"


@frozen
class Route:
    """A route on the host of ``client``: to ``network`` by ``gateway``, the router's address on the client's port."""

    client: Endpoint
    network: str
    gateway: str

    @property
    def family(self) -> str:
        """The option of ip(8) for the IP version: ``-4`` or ``-6``."""
        return "-6" if ":" in self.gateway else "-4"

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of ``ip route add``; the source address is the one that workloads use."""
        facts = self.client.facts
        return (self.network, "via", self.gateway, "dev", str(facts.device), "src", facts.address)


async def port_networks(testbed: EndpointTestbed) -> dict[str, Interface]:
    """The address, with its network, of each port of the router; NotReadyError where two are in one network."""
    found = {}
    for end in testbed.servers:
        shown = await _run_json(end.host.network, "ip", "-j", "address", "show", "dev", str(end.facts.device))
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
                    f"the ports {name} and {other} are in one network ({near}, {far}): nothing is routed between them",
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
    """A route for each client to each other port's network; NotReadyError where a host is a client of two ports."""
    ports_of: dict[str, set[str]] = {}
    for client in testbed.clients:
        ports_of.setdefault(client.host.name, set()).add(str(client.facts.port))
    for host, ports in ports_of.items():
        if len(ports) > 1:
            raise NotReadyError(
                f"it is a client of several ports ({', '.join(sorted(ports))}): traffic from one to the other would "
                "not pass the router",
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
    """Adds the route with its undo and gives the command; a route that exists already is left alone, also by the undo.

    NotReadyError where another route leads to that network.
    """
    host = route.client.host.network
    known = await _run_json(host, "ip", route.family, "-j", "route", "show", "exact", route.network)
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


async def check_route(route: Route, target: Endpoint) -> None:
    """Raises NotReadyError where the client's kernel does not send to ``target`` by this route, for other rules."""
    facts = route.client.facts
    command = ("ip", route.family, "-j", "route", "get", target.facts.address, "from", facts.address)
    found = (await _run_json(route.client.host.network, *command) or [{}])[0]
    if found.get("gateway") != route.gateway or found.get("dev") != facts.device:
        raise NotReadyError(
            f"packets from {facts.name} to {target.name} do not go through the router: they go by "
            f"{found.get('gateway', 'its own link')}, dev {found.get('dev')}",
            place=route.client.host.name,
            next_step="see `ip rule` and `ip route` on that host",
        )


async def check_passage(source: Endpoint, target: Endpoint) -> None:
    """Raises NotReadyError where ``target`` does not answer a ping through the router."""
    await require_program(source.host, "ping", _INSTALL_PING)
    family = "-6" if ":" in target.facts.address else "-4"
    command = ("ping", family, "-n", "-c", "3", "-i", "0.2", "-W", str(_PING_S), "-I", source.facts.address)
    done = await source.host.network.run((*command, target.facts.address), check=False, timeout_s=20.0)
    if done.status != 0:
        output = (done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"])[-1]
        raise NotReadyError(
            f"{target.name} does not answer {source.name} through the router: {output}",
            place=source.host.name,
            next_step="see `nft list ruleset` on the router for rules that drop; where hosts never answer a ping, "
            "write `dut: {kind: router, ping: false}`",
        )


async def _run_json(host: Host, *command: str) -> list[dict[str, Any]]:
    """The list that a command prints as JSON; HostError where it prints something else."""
    text = (await host.run(command)).stdout
    try:
        found: list[dict[str, Any]] = json.loads(text or "[]")
    except ValueError as error:
        raise HostError(f"{' '.join(command)} does not print JSON", place=host.name) from error
    return found


_FORWARDING: Final = {4: "/proc/sys/net/ipv4/ip_forward", 6: "/proc/sys/net/ipv6/conf/all/forwarding"}


class RouterOptions(EndpointDutOptions):
    """``dut: {kind: router, host: NAME}``.

    With ``ping`` a client of each port pings one of each other port before the first test; switch it off where hosts
    do not answer pings.
    """

    ping: bool = True
    """A client of each port is pinged through the router before the first test."""


class Router(EndpointDut):
    """The measured host is a router: workloads run between its clients, and its own processes take no part."""

    kind = "router"
    Options = RouterOptions
    fewest_ports = 2
    forwards = True
    options: RouterOptions

    def __init__(self, options: Frozen) -> None:
        super().__init__(options)
        self._settings: dict[str, str] = {}
        self._commands: dict[str, list[str]] = {}

    def programs(self) -> Mapping[str, str]:
        return {"ping": _INSTALL_PING} if self.options.ping else {}

    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        if len(testbed.servers) < 2:
            raise NotReadyError(
                "a router needs two ports, and there is one",
                place=testbed.server.name,
                next_step="add a port under `ports`, or write `lab: {kind: clients, ports: 2}`",
            )
        networks = await port_networks(testbed)
        routes = routes_of(testbed, networks)
        path = _FORWARDING[next(iter(networks.values())).version]
        await changes.set_file(testbed.server.network, path, "1")
        self._settings = {path.removeprefix("/proc/sys/"): "1"}
        for route in routes:
            command = await add_route(changes, route)
            self._commands.setdefault(route.client.host.name, []).append(
                " ".join(command) or f"(there already: {' '.join(route.words)})"
            )
        for route, target in _ways(testbed, routes, {name: str(each.network) for name, each in networks.items()}):
            await check_route(route, target)
        if self.options.ping:
            await self._ping(testbed)

    async def _ping(self, testbed: EndpointTestbed) -> None:
        """Pings from one client of each port one of each other port; the answer checks the way back."""
        by_port = {str(client.facts.port): client for client in reversed(testbed.clients)}
        firsts = [by_port[end.name] for end in testbed.servers if end.name in by_port]
        for number, source in enumerate(firsts):
            for target in firsts[number + 1 :]:
                await check_passage(source, target)

    def disclosure(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.options.name or "router",
            "host": self.options.host,
            "settings": dict(self._settings),
            "commands": {host: list(commands) for host, commands in self._commands.items()},
        }


def _ways(
    testbed: EndpointTestbed, routes: tuple[Route, ...], networks: dict[str, str]
) -> list[tuple[Route, Endpoint]]:
    """Each route with each client that it leads to."""
    return [
        (route, target)
        for route in routes
        for target in testbed.clients
        if networks[str(target.facts.port)] == route.network
    ]
