"""Bonds during a round: the connections of each job read once in its midst, and the counters of every port around it.

Where no interface of the test is a bond, or lies on one, hosts are asked that once and never again. Else each host with
a bond is read three times a round: before the clients begin, in the midst, and after the last has ended.

What follows is pure: ``stats/bonds.py`` predicts which port a connection uses, as the Linux driver does, and holds
that against the counters; ``stats/bonds.py`` says who shared a port.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nicbench.core.bond import Bond, BondObservation, Connection, PortBytes
from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.round import Job, RoundRequest
from nicbench.hosts.base import Host
from nicbench.measure.host_readings import (
    BONDS_SCRIPT,
    MOUNT_SCRIPT,
    Moment,
    Mount,
    Socket,
    moment_script,
    mount_of,
    parse_bonds,
    parse_moment,
    plain_address,
)
from nicbench.stats.bonds import judge_bond, needs_peer_mac
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.workloads.base import Watch
from nicbench.workloads.play import kinds

_TIMEOUT_S: Final = 10.0
_BEFORE_FAILURE: Final = 0.8
"""Of the time until a link fails on purpose: what is predicted holds until then."""
_UNREADABLE: Final = (NicbenchError, AttributeError, LookupError, TypeError, ValueError)
"""What a host that is gone, or text that is not what was asked for, ends in: no reason to end a round."""
_HEADERS_BYTES: Final = 28
"""Of IPv4 and UDP; of IPv6 there are 20 more, which few datagrams fall between."""


@frozen
class WantedConnections:
    """The connections of a job: from ``client`` (any of its ports where ``client_ports`` is ``None``) to ``server``."""

    job: int
    client: str
    server: str
    server_ports: range
    client_ports: frozenset[int] | None = None
    udp: bool = False
    datagram_bytes: int | None = None

    def includes(self, socket: Socket) -> bool:
        """Whether a connection is one of them, seen from either end."""
        return self._matches(socket.local, socket.local_port, socket.peer, socket.peer_port) or self._matches(
            socket.peer, socket.peer_port, socket.local, socket.local_port
        )

    def _matches(self, client: str, client_port: int, server: str, server_port: int) -> bool:
        return (
            (client, server) == (self.client, self.server)
            and server_port in self.server_ports
            and (self.client_ports is None or client_port in self.client_ports)
        )


@dataclass(slots=True)
class _HostBond:
    """A bond of a host, with the endpoints that are or lie on it, and what was read of it in this round.

    ``near`` is set of a bond at the other end of another one's links, on a host that has no connections of its own (a
    switch): the connections are those of the near one, seen from the other side.
    """

    host: Host
    endpoints: tuple[str, ...]
    device: str
    bond: Bond
    before: Moment | None = None
    midst: Moment | None = None
    after: Moment | None = None
    missing: str | None = None
    near: _HostBond | None = None
    far: _HostBond | None = None

    @property
    def ports(self) -> tuple[str, ...]:
        return tuple(port.name for port in self.bond.ports)

    async def read(self, wanted: Sequence[WantedConnections], *, connections: bool) -> Moment | None:
        """Reads the bond now; None where the host does not answer."""
        connections = connections and self.near is None
        macs = needs_peer_mac(self.bond) or (self.far is not None and needs_peer_mac(self.far.bond))
        peers = {one.server for one in wanted} | {one.client for one in wanted} if macs else set()
        script = moment_script(
            self.ports,
            sorted(peers) if connections else (),
            connections=connections,
            udp=any(one.udp for one in wanted),
        )
        try:
            done = await self.host.network.run(("sh", "-c", script), check=False, timeout_s=_TIMEOUT_S)
            return parse_moment(done.stdout)
        except _UNREADABLE as error:
            why = error.message if isinstance(error, NicbenchError) else "what it said is not understood"
            self.missing = f"its host could not be read: {why}"
            return None


class Bonds:
    """Those of a testbed: found once, at the first round."""

    def __init__(self, testbed: EndpointTestbed) -> None:
        self._testbed = testbed
        self._hosts: list[Host] | None = None
        """Those with a bond under an interface of the test; None before they were asked."""
        self._around: BondWatch | None = None

    @contextlib.asynccontextmanager
    async def watch_round(self, watch: Watch, request: RoundRequest) -> AsyncIterator[Watch]:
        """While entered, the watch to play this round with; it also reads the bonds, for ``observations``."""
        self._around = None
        if self._hosts is None:
            self._hosts = [one.host for one in self._testbed.test_hosts if await self._read(one.host)]
        if not self._hosts:
            yield watch
            return
        bonded = [one for host in self._hosts for one in await self._read(host)]
        self._around = BondWatch(watch, request, self._testbed, bonded)
        try:
            yield self._around
        finally:
            await self._around.close()

    def observations(self) -> tuple[BondObservation, ...]:
        """What was read of the bonds in the round that was played last."""
        return () if self._around is None else self._around.observations()

    async def _read(self, host: Host) -> list[_HostBond]:
        """Reads the bonds of a host as they are now."""
        ends = [end for end in self._testbed.endpoints.values() if end.host is host and end.facts.device]
        try:
            done = await host.network.run(("sh", "-c", BONDS_SCRIPT), check=False, timeout_s=_TIMEOUT_S)
            found = parse_bonds(done.stdout, {str(end.facts.device) for end in ends})
        except _UNREADABLE:
            return []
        by_bond = grouped((found[str(end.facts.device)].name, end) for end in ends if str(end.facts.device) in found)
        bonded = []
        for over in by_bond.values():
            device = str(over[0].facts.device)
            own = _HostBond(host, tuple(end.name for end in over), device, _add_speeds(found[device], over[0]))
            own.far = await self._read_far(own, over[0])
            bonded += [own, own.far] if own.far is not None else [own]
        return bonded

    async def _read_far(self, near: _HostBond, end: Endpoint) -> _HostBond | None:
        """The bond at the other end, where its host has no endpoint."""
        if end.far_bond is None:
            return None
        host, device = end.far_bond
        try:
            done = await host.network.run(("sh", "-c", BONDS_SCRIPT), check=False, timeout_s=_TIMEOUT_S)
            bond = parse_bonds(done.stdout, {device}).get(device)
        except _UNREADABLE:
            return None
        if bond is None:
            return None
        # A switch passes frames on with the addresses that they have: those of the ends, whose order a hash by both
        # does not mind. The source alone is a client's, and not known here.
        mac = None if bond.policy == "vlan+srcmac" else near.bond.mac
        return _HostBond(host, (host.name,), device, _add_speeds(bond, end).replace(mac=mac), near=near)


@dataclass
class BondWatch:
    """Reads bonds around what another watch reads: ``begin``, ``end``, ``observations``, and ``close`` in any case."""

    watch: Watch
    request: RoundRequest
    testbed: EndpointTestbed
    bonded: list[_HostBond]
    _wanted: list[WantedConnections] = field(default_factory=list)
    _looking: asyncio.Task[None] | None = None
    _began_look: bool = False

    async def begin(self) -> None:
        """The clients come next: mounts and counters first, which takes none of the round's time."""
        jobs = enumerate(self.request.jobs, 1)
        found = await asyncio.gather(*(self._connections_of(number, job) for number, job in jobs))
        self._wanted = [one for of_job in found for one in of_job]
        befores = await self._look()
        for one, before in zip(self.bonded, befores, strict=True):
            one.before = before
        await self.watch.begin()
        self._looking = asyncio.create_task(self._look_in_the_midst())

    async def end(self) -> None:
        """Reads the bonds once more, now that every client has ended."""
        await self.watch.end()
        if self._looking is not None and self._began_look:
            # It was asked in time, and a slow host answers late.
            await asyncio.wait((self._looking,), timeout=_TIMEOUT_S)
        await self.close()
        afters = await self._look(connections=False)
        for one, after in zip(self.bonded, afters, strict=True):
            one.after = after

    async def close(self) -> None:
        """Ends the reading of bonds, whatever happened."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def observations(self) -> tuple[BondObservation, ...]:
        """What came of it; nothing of a bond whose counters were not read."""
        return tuple(found for one in self.bonded for found in self._observe(one))

    def _observe(self, one: _HostBond) -> Iterable[BondObservation]:
        if one.before is None or one.after is None:
            return
        missing = one.missing
        if one.midst is None and missing is None:
            missing = "the round was over before its connections were looked at"
        flows = self._flows_of(one)
        yield judge_bond(", ".join(one.endpoints), one.bond, flows, _port_bytes(one), missing)

    def _flows_of(self, one: _HostBond) -> list[tuple[tuple[int, ...], Connection]]:
        ends = one.near or one
        if one.midst is None or ends.before is None or ends.midst is None:
            return []
        flows = list(_flows(one.bond, ends.before, ends.midst, self._wanted))
        return flows if one.near is None else [(jobs, _swap_ends(each)) for jobs, each in flows]

    async def _look_in_the_midst(self) -> None:
        expected = [
            job.ask.duration_s + (job.ask.frames.warm_up_s if job.ask.frames else 0.0)
            for job in self.request.jobs
            if job.ask.duration_s is not None
        ]
        midst_s = min(expected, default=self.request.duration_s) / 2
        if self.request.failure is not None:
            midst_s = min(midst_s, _BEFORE_FAILURE * self.request.failure.after)
        await asyncio.sleep(midst_s)
        self._began_look = True
        for one, midst in zip(self.bonded, await self._look(), strict=True):
            one.midst = midst

    async def _look(self, *, connections: bool = True) -> list[Moment | None]:
        """Reads the present state of every bond."""
        wanted = self._wanted if connections else ()
        return await asyncio.gather(*(one.read(wanted, connections=connections) for one in self.bonded))

    async def _connections_of(self, number: int, job: Job) -> list[WantedConnections]:
        """Of its processes, or of the mount where it has its files."""
        client = self.testbed.endpoints.get(job.client)
        if client is None or job.ask.transport == "rdma":
            return []
        if job.server is not None:
            server = self.testbed.endpoints.get(job.server)
            kind = kinds().get(job.workload)
            if server is None or kind is None:
                return []
            udp = job.ask.transport == "udp"
            ports = range(job.port, job.port + kind.ports_per_job)
            try:
                ends = plain_address(client.facts.address), plain_address(server.facts.address)
            except ValueError:
                return []
            return [
                WantedConnections(number, *ends, ports, udp=udp, datagram_bytes=job.ask.write_bytes if udp else None)
            ]
        frames = job.ask.frames
        return [] if frames is None else await connections_of_mount(number, client.host, frames.directory)


async def connections_of_mount(number: int, host: Host, directory: str) -> list[WantedConnections]:
    """The connections of the mount that a directory lies in; none where it is local, or its host does not tell.

    A container may lack the programs that tell: then the host that it has its network from is asked.
    """
    mount: Mount | None = None
    for place in dict.fromkeys((host, host.network)):
        try:
            done = await place.run(("sh", "-c", MOUNT_SCRIPT, "sh", directory), check=False, timeout_s=_TIMEOUT_S)
            mount = mount_of(done.stdout)
        except _UNREADABLE:
            continue
        if mount is not None and mount.connections:
            break
    return [
        WantedConnections(
            number,
            one.local,
            one.peer,
            range(one.peer_port, one.peer_port + 1),
            client_ports=frozenset({one.local_port}),
        )
        for one in (() if mount is None else mount.connections)
    ]


def _flows(
    bond: Bond, before: Moment, midst: Moment, wanted: Sequence[WantedConnections]
) -> Iterable[tuple[tuple[int, ...], Connection]]:
    """The connections of the round, each once, with the jobs that it may belong to."""
    for sockets, earlier, udp in ((midst.tcp, before.tcp, False), (midst.udp, before.udp, True)):
        known: Mapping[tuple[str, int, str, int], Socket] = {one.key: one for one in earlier}
        for socket in sockets:
            fitting = [one for one in wanted if one.udp == udp and one.includes(socket)]
            # Not the connection of TCP by which iperf3 and others agree on what they send by UDP.
            if fitting:
                yield (
                    tuple(dict.fromkeys(one.job for one in fitting)),
                    _connection(bond, midst, _subtract(socket, known.get(socket.key)), fitting[0]),
                )


def _add_speeds(bond: Bond, end: Endpoint) -> Bond:
    """The ports of a lab's bond have the rate that their links are held to; what a veth says of itself is made up."""
    if not any(member.far_host for member in end.members):
        return bond
    whole = end.facts.link_bits_per_s
    speed = None if whole is None else whole / len(end.members)
    return bond.replace(ports=tuple(port.replace(speed_bits_per_s=speed) for port in bond.ports))


def _swap_ends(one: Connection) -> Connection:
    return one.replace(
        source=one.destination,
        source_port=one.destination_port,
        destination=one.source,
        destination_port=one.source_port,
        sent_bytes=one.received_bytes,
        received_bytes=one.sent_bytes,
    )


def _subtract(socket: Socket, earlier: Socket | None) -> Socket:
    """What it moved since the round began: a mount's connection is older."""
    if earlier is None or socket.sent_bytes is None or socket.received_bytes is None:
        return socket
    sent, received = (
        socket.sent_bytes - (earlier.sent_bytes or 0),
        socket.received_bytes - (earlier.received_bytes or 0),
    )
    return replace(socket, sent_bytes=max(sent, 0), received_bytes=max(received, 0))


def _connection(bond: Bond, moment: Moment, socket: Socket, wanted: WantedConnections) -> Connection:
    longest = bond.mtu_bytes
    return Connection(
        transport="udp" if wanted.udp else "tcp",
        source=socket.local,
        source_port=socket.local_port,
        destination=socket.peer,
        destination_port=socket.peer_port,
        peer_mac=moment.mac_towards(socket.peer),
        fragmented=bool(longest and wanted.datagram_bytes and wanted.datagram_bytes + _HEADERS_BYTES > longest),
        sent_bytes=socket.sent_bytes,
        received_bytes=socket.received_bytes,
    )


def _port_bytes(one: _HostBond) -> dict[str, PortBytes]:
    """Of ports that were read before and after; a counter that was reset meanwhile says nothing."""
    before, midst, after = (moment.ports if moment else {} for moment in (one.before, one.midst, one.after))
    found = {}
    for port in one.ports:
        if port in before and port in after:
            sent, received = (after[port][way] - before[port][way] for way in (0, 1))
            until = midst.get(port)
            if sent >= 0 and received >= 0:
                found[port] = PortBytes(
                    sent=sent,
                    received=received,
                    sent_until_midst=None if until is None else until[0] - before[port][0],
                    received_until_midst=None if until is None else until[1] - before[port][1],
                )
    return found
