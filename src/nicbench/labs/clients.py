"""A server with several ports and the clients of each port (`clients`), in network namespaces of this machine.

Clients of one port are joined by a switch (a bridge in a namespace of its own), as on a real rack. No namespace has a
default route, so that nothing can leave. What is measured is this machine, and no card.
"""

from __future__ import annotations

from pydantic import Field

from nicbench.errors import HostError, NotReadyError
from nicbench.hosts.base import Host
from nicbench.hosts.netns import NetnsHost
from nicbench.labs import _veth_network as network
from nicbench.labs._reached import Reach, ReachedBy
from nicbench.labs._veth_names import mac, namespace_name
from nicbench.labs.base import Endpoint, EndpointLab, EndpointTestbed
from nicbench.model.base import Frozen
from nicbench.model.endpoint import EndpointFacts
from nicbench.model.quantity import BitsPerSecond
from nicbench.tuning.changes import Changes

# What the kernel hands down whole (GSO) on a link that is held to a rate. It must fit into the bucket, and a small one
# lets little through at once: a short transfer would else seem faster than its link.
_SEGMENT_BYTES = 16 * 1024
_BUCKET_S = 1e-3
_QUEUE_BYTES = 1024 * 1024
_SERVER, _FIRST_CLIENT = 1, 10


class ClientsOptions(Frozen):
    """``lab: {kind: clients, ports: 4, clients_per_port: 2, rate: 100 Mb/s}``.

    ``rate`` limits each link, in both directions, to so many bits of Ethernet frames without FCS (tbf); without it a
    link is as fast as the machine. ``reached_by`` says how commands get into the namespaces: directly, by an sshd in
    each of them, or by containers that join them.
    """

    ports: int = Field(default=1, ge=1, le=16)
    clients_per_port: int = Field(default=1, ge=1, le=16)
    rate: BitsPerSecond | None = Field(default=None, ge=1e6, le=100e9)
    mtu: int = Field(default=1500, ge=576, le=9000)
    reached_by: ReachedBy = "namespace"


class ClientsLab(EndpointLab):
    """``c0 <-> s0``, ``c1 <-> s1``; with several clients a port ``c0a <-> s0``, ``c0b <-> s0``, ..."""

    kind = "clients"
    Options = ClientsOptions
    options: ClientsOptions
    measured_host = "server"

    def clients_of_ports(self) -> dict[str, tuple[str, ...]]:
        return {f"s{port}": tuple(self._client_names(port)) for port in range(self.options.ports)}

    async def up(self, changes: Changes, local: Host) -> EndpointTestbed:
        if (await local.run(("id", "-u"))).stdout.strip() != "0":
            raise NotReadyError(
                "a lab of clients needs root: it makes network namespaces",
                place=local.name,
                next_step="run it with sudo",
            )
        reach = Reach(self.options.reached_by, changes, local)
        await reach.prepare()
        server = await self._namespace(changes, local, self.measured_host)
        namespaces = [server]
        measured = reach.host(server)
        switch = await self._namespace(changes, local, "switch") if self.options.clients_per_port > 1 else None
        servers: list[Endpoint] = []
        clients: list[Endpoint] = []
        for port in range(self.options.ports):
            servers.append(self._endpoint(measured, f"s{port}", port, _SERVER, None))
            names = self._client_names(port)
            if switch is not None:
                await self._switched(switch, server, port)
            for number, name in enumerate(names):
                client = await self._namespace(changes, local, name)
                if switch is None:
                    await self._join((server, f"s{port}", mac(0, port)), (client, name, mac(1 + number, port)))
                else:
                    await self._join((switch, f"p-{name}", None), (client, name, mac(1 + number, port)))
                    await switch.run(("ip", "link", "set", "dev", f"p-{name}", "master", f"br{port}"))
                namespaces.append(client)
                clients.append(self._endpoint(reach.host(client), name, port, _FIRST_CLIENT + number, f"s{port}"))
        inside = {namespace.name: namespace for namespace in namespaces}
        for end in (*servers, *clients):
            address = ("ip", "address", "add", f"{end.facts.address}/24", "dev", str(end.facts.device))
            await inside[end.facts.host].run(address)
        for namespace in namespaces:
            await network.wait_for_links(namespace)
            await network.require_no_way_out(namespace)
        return EndpointTestbed(
            servers=tuple(servers),
            clients=tuple(clients),
            link_is_nominal=True,
            statements=_statements(self.options),
            facts={
                "lab": self.kind,
                **self.options.model_dump(),
                "links": [f"{client.name} <-> {client.facts.port}" for client in clients],
                "namespaces": {name: namespace.namespace for name, namespace in inside.items()},
            },
        )

    def _client_names(self, port: int) -> list[str]:
        count = self.options.clients_per_port
        return [f"c{port}"] if count == 1 else [f"c{port}{chr(ord('a') + number)}" for number in range(count)]

    def _endpoint(self, host: Host, name: str, port: int, node: int, leads_to: str | None) -> Endpoint:
        facts = EndpointFacts(
            name=name,
            host=host.name,
            machine=host.machine.name,
            address=f"198.18.{port}.{node}",
            device=name,
            port=leads_to,
            link_bits_per_s=self.options.rate,
        )
        return Endpoint(host, facts)

    async def _namespace(self, changes: Changes, local: Host, role: str) -> NetnsHost:
        host = NetnsHost(local, namespace_name(changes.run_id, role), role)
        await network.make_namespace(changes, host)
        return host

    async def _switched(self, switch: NetnsHost, server: NetnsHost, port: int) -> None:
        """A bridge with the server's port on it; what goes to the server is limited where it leaves the switch."""
        await switch.run(("ip", "link", "add", f"br{port}", "mtu", str(self.options.mtu), "type", "bridge"))
        await self._join((server, f"s{port}", mac(0, port)), (switch, f"p-s{port}", None))
        await switch.run(("ip", "link", "set", "dev", f"p-s{port}", "master", f"br{port}"))
        await switch.run(("ip", "link", "set", "dev", f"br{port}", "up"))

    async def _join(self, near: tuple[NetnsHost, str, str | None], far: tuple[NetnsHost, str, str | None]) -> None:
        """A veth pair whose ends are made where they belong; unlike a tester's it keeps its offloads, as cards do."""
        (host, device, address), (peer, peer_device, peer_address) = near, far
        mtu = ("mtu", str(self.options.mtu))
        own = ("link", "add", device, *(("address", address) if address else ()), *mtu)
        there = ("peer", "name", peer_device, *(("address", peer_address) if peer_address else ()))
        try:
            await host.inner.run(
                (*("ip", "-n", host.namespace), *own, "type", "veth", *there, *mtu, "netns", peer.namespace)
            )
        except HostError as error:
            raise NotReadyError(
                f"no veth pair can be made: {error.message}",
                place=host.inner.name,
                next_step="the kernel needs the veth driver: modprobe veth",
            ) from error
        for end, name in ((host, device), (peer, peer_device)):
            await end.run(("ip", "link", "set", "dev", name, "addrgenmode", "none"))
            if self.options.rate is not None:
                bucket = max(2 * _SEGMENT_BYTES, round(self.options.rate / 8 * _BUCKET_S))
                limit = ("rate", f"{round(self.options.rate)}bit", "burst", str(bucket))
                await end.run(("ip", "link", "set", "dev", name, "gso_max_size", str(_SEGMENT_BYTES)))
                await end.run(("tc", "qdisc", "add", "dev", name, "root", "tbf", *limit, "limit", str(_QUEUE_BYTES)))
            await end.run(("ip", "link", "set", "dev", name, "up"))


def _statements(options: ClientsOptions) -> tuple[str, ...]:
    shared = (
        "Server and clients are namespaces of one machine and share its CPUs: this measures the machine, and no card."
    )
    if options.reached_by == "ssh":
        shared += " Each is reached by an sshd of its own, and watched as if it were a machine."
    if options.rate is None:
        return (shared, "The links are veth pairs without a speed of their own.")
    return (shared, f"Each link is held to {options.rate / 1e6:g} Mb/s by a token bucket filter (tbf) at both ends.")
