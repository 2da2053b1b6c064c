"""A host that forwards IP between its ports, measured by workloads between the clients of one and another (`router`).

Forwarding is switched on, and each client is given a route to the network of every other port by way of its own port's
address; never a default route. Every route that is added is removed afterwards, and every setting gets its old value
back. Verified: what the kernel of each client says of its way, and that something comes back through the router.
"""

from __future__ import annotations

from typing import Any, Final

from nicbench.duts._client_routes import Route, add_route, check_passage, check_way, port_networks, routes_of
from nicbench.duts.base import EndpointDut, EndpointDutOptions
from nicbench.errors import NotReadyError
from nicbench.labs.base import Endpoint, EndpointTestbed
from nicbench.model.base import Frozen
from nicbench.tuning.changes import Changes

_FORWARDING: Final = {4: "/proc/sys/net/ipv4/ip_forward", 6: "/proc/sys/net/ipv6/conf/all/forwarding"}


class RouterOptions(EndpointDutOptions):
    """``dut: {kind: router, host: NAME}``.

    ``ping``: a client of each port is reached once from one of each other port before the first test; switched off
    where hosts answer no ping.
    """

    ping: bool = True


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
            await check_way(route, target)
        if self.options.ping:
            await self._ping(testbed)

    async def _ping(self, testbed: EndpointTestbed) -> None:
        """One client of each port to one of each other: the answer passes as well, so one way of each pair is both."""
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
    """Each route with each client that lies behind it."""
    return [
        (route, target)
        for route in routes
        for target in testbed.clients
        if networks[str(target.facts.port)] == route.network
    ]
