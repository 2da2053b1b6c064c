"""A server with ports and the clients of each port (`clients`), in network namespaces of one machine.

Clients of one port are joined by a switch (a bridge in a namespace of its own), as in a real rack. No namespace has a
default route, so that no frame can leave. This measures the machine, not a card.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen, optional
from nicbench.core.bond import HASHED_MODES
from nicbench.core.described import Unit
from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.frozen import frozen
from nicbench.core.quantity import BitsPerSecond
from nicbench.core.round import EndpointFacts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.options import ContainerOptions, SshOptions
from nicbench.testbed.interfaces import namespaces as network
from nicbench.testbed.interfaces.active_queue import ActiveQueue
from nicbench.testbed.interfaces.base import BondSettings, HashPolicy, require_links
from nicbench.testbed.interfaces.bond import create_bond, wait_for_bond
from nicbench.testbed.labs.base import BondMember, Endpoint, EndpointLab, EndpointTestbed, Objection, machine_words
from nicbench.testbed.labs.veth import mac, namespace_name
from nicbench.tuning.bpf import deploy_program, with_program
from nicbench.tuning.changes import Changes
from nicbench.tuning.undo.files import RemovePath

# The lab of clients: the bond of each port of the server, links that do not hold senders back, and the kind of host
# that each namespace is reached as.
#
# With ssh and containers a bench file for real machines can be tried on one, with the same tools and connections.


class LabBond(BondSettings):
    """``bond: {links: 4, mode: 802.3ad, policy: layer3+4, switch_policy: layer2+3}``.

    ``policy`` chooses the ports by which the server sends, ``switch_policy`` those of the other end (by default the
    server's).
    """

    links: int = Field(default=4, ge=2, le=16)
    """Links of each bond. The other end is a bond of the switch, or of the client where a port has only one."""
    mode: Literal["balance-rr", "active-backup", "balance-xor", "802.3ad"] = "802.3ad"
    """The mode, in the driver's words."""
    switch_policy: HashPolicy | None = None
    """The hash policy of the other end, for what comes to the server; without it as `policy`."""

    @model_validator(mode="after")
    def _check_switch_policy(self) -> Self:
        if self.switch_policy is not None and self.mode not in HASHED_MODES:
            raise ValueError(f"`{self.mode}` does not hash, so `switch_policy` has no effect: remove it")
        require_links(self, self.links)
        return self

    @property
    def partner(self) -> BondSettings:
        """The settings of the bond at the other end."""
        return BondSettings(
            mode=self.mode,
            policy=self.switch_policy or self.policy,
            miimon=self.miimon,
            lacp_rate=self.lacp_rate,
            min_links=self.min_links,
        )

    @property
    def switch_knows_it(self) -> bool:
        """Whether the switch must have a bond as well; with ``active-backup`` it uses ordinary ports."""
        return self.mode != "active-backup"

    @property
    def words(self) -> str:
        """The bond in words, as in "802.3ad, layer3+4, at the other end layer2"."""
        own, other = self.hashes_by, self.partner.hashes_by
        policies = "" if own is None else f", {own}" if own == other else f", {own}, at the other end {other}"
        return f"{self.mode}{policies}"


def members_of(device: str, links: int) -> tuple[str, ...]:
    """The names of a bond's member interfaces, in the order in which they join it: s0p1, s0p2, ..."""
    return tuple(f"{device}p{number}" for number in range(1, links + 1))


async def free_senders(host: Host, device: str) -> str | None:
    """Lets packets that arrive at a veth count against their sender no longer (wire.bpf.c); returns why it cannot.

    NotReadyError where the program is not compiled, or cannot be put on the host.
    """
    program = await deploy_program(host, "wire")
    add = "tc qdisc replace dev $1 clsact; tc filter replace dev $1 ingress bpf da pinned $NAMED"
    try:
        await host.run(with_program(program, add, device))
    except HostError as error:
        return error.message
    return None


ReachedBy = Literal["namespace", "ssh", "container"]

# The sshd serves only this lab: only its own key may log in, and no configuration of the machine applies.
_CONFIG: Final = """HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
LogLevel ERROR
SetEnv HOME={folder}
"""
_SET_UP: Final = (
    "umask 077; mkdir -p /run/sshd {folder} && chmod 755 /run/sshd && cd {folder} && "
    "for name in user host; do ssh-keygen -q -t ed25519 -N '' -C nicbench-lab -f $name || exit 1; done && "
    "printf '* %s\\n' \"$(cat host.pub)\" > known_hosts"
)


class Reach:
    """Gives each namespace as a host of the chosen kind; ``prepare`` must be called first."""

    def __init__(self, by: ReachedBy, changes: Changes, local: Host) -> None:
        self._by = by
        self._changes = changes
        self._local = local
        self._sshd = ""
        self._folder = f"/run/nicbench-sshd-{hashlib.sha256(changes.run_id.encode()).hexdigest()[:12]}"

    async def prepare(self) -> None:
        """Makes keys and a configuration for the sshds of this lab; NotReadyError without an sshd."""
        if self._by != "ssh":
            return
        found = await self._local.run(("sh", "-c", "PATH=$PATH:/usr/sbin:/usr/local/sbin command -v sshd"), check=False)
        self._sshd = found.stdout.strip()
        if not self._sshd:
            raise NotReadyError(
                "sshd is not installed", place=self._local.name, next_step="apt-get install openssh-server"
            )

        async def apply() -> None:
            await self._local.run(("sh", "-c", _SET_UP.format(folder=self._folder)))

        try:
            await self._changes.make(self._local, RemovePath(path=self._folder), apply)
        except HostError as error:
            raise NotReadyError(
                f"no keys can be made for the lab's sshds: {error.message}",
                place=self._local.name,
                next_step="apt-get install openssh-client",
            ) from error
        await self._local.write_file(f"{self._folder}/config", _CONFIG.format(folder=self._folder))

    def host(self, namespace: NetnsHost) -> Host:
        """The namespace as a host, with the same name."""
        if self._by == "namespace":
            return namespace
        if self._by == "container":
            # The container sees the file system of this machine, and its writes are discarded.
            return ContainerHost(namespace, ContainerOptions(root="/"), namespace.name)
        inside = ("ip", "netns", "exec", namespace.namespace, self._sshd, "-i", "-f", f"{self._folder}/config")
        options = SshOptions(
            address=namespace.name,
            user="root",
            key=f"{self._folder}/user",
            known_hosts=f"{self._folder}/known_hosts",
            proxy_command=inside,
        )
        return SshHost(options, namespace.name)


# The largest GSO segment on a link with a rate. It must fit into the bucket, which must be small: otherwise a short
# transfer would seem faster than its link.
_SEGMENT_BYTES = 16 * 1024
_BUCKET_S = 1e-3
_QUEUE_BYTES = 1024 * 1024
_QUEUE_SEGMENTS = 1000
_SERVER, _FIRST_CLIENT = 1, 10


class ClientsOptions(Frozen):
    """``lab: {kind: clients, ports: 4, clients_per_port: 2, rate: 100 Mb/s}``.

    ``rate`` limits each link, in both directions, by the bits of Ethernet frames without FCS (tbf); without it a
    link is as fast as the machine. With ``bond`` each port of the server is a bond of several such links, and behind a
    switch the link of a client carries as much as they do together. ``reached_by`` says how commands get into the
    namespaces: directly, by an sshd in each of them, or by containers that join them.
    """

    ports: int = Field(default=1, ge=1, le=16)
    """Ports of the server."""
    clients_per_port: int = Field(default=1, ge=1, le=16)
    """Clients behind each port, joined by a switch where there are several."""
    rate: BitsPerSecond | None = Field(default=None, ge=1e6, le=100e9)
    """Rate of each link in bits of Ethernet frames without FCS, held by a token bucket (tbf) at both ends. Without it
    the links are as fast as the machine.
    """
    queue: ActiveQueue | None = optional(None)
    """The queue at both ends of each link, which needs a `rate`: it marks or drops before it is full (CoDel, RED).
    Without it up to 1 MiB waits, and what comes on top is dropped.
    """
    mtu: Annotated[int, Unit.BYTES] = Field(default=1500, ge=576, le=9000)
    """MTU of each link, in bytes."""
    bond: LabBond | None = optional(None)
    """Each port of the server is a bond of several links. `rate` is the rate of each of these links."""
    reached_by: ReachedBy = "namespace"
    """How commands get into the namespaces: directly (`namespace`), by an sshd in each (`ssh`), or by podman
    containers that join them (`container`).
    """

    @model_validator(mode="after")
    def _has_something_to_wait_for(self) -> Self:
        if self.queue is not None and self.rate is None:
            raise ValueError("`queue` needs a `rate` of the links: without one nothing waits")
        return self

    @property
    def port_bits_per_s(self) -> float | None:
        """The rate of a whole port of the server, over all of its links; None where it is not limited."""
        return None if self.rate is None else self.rate * (1 if self.bond is None else self.bond.links)

    @property
    def bucket_bytes(self) -> int | None:
        """What the buckets of all links of a port of the server let pass at once; None without buckets."""
        links = 1 if self.bond is None else self.bond.links
        return None if self.rate is None else max(links * _bucket_bytes(self.rate), _bucket_bytes(self.rate * links))


def _bucket_bytes(rate_bits_per_s: float) -> int:
    """A bucket must hold the largest segment, and should hold no more than a millisecond."""
    return max(2 * _SEGMENT_BYTES, round(rate_bits_per_s / 8 * _BUCKET_S))


@frozen
class _End:
    """One end of a link, or of the links of a bond.

    With ``settings`` None the links of a bond end in ordinary ports (of a switch). ``bond`` is the bond of this end.
    """

    host: NetnsHost
    device: str
    mac: str | None = None
    settings: BondSettings | None = None
    bond: str | None = None


class ClientsLab(EndpointLab):
    """The lab; links are ``c0 <-> s0``, ``c1 <-> s1``, with several clients a port ``c0a <-> s0``, ``c0b <-> s0``."""

    kind = "clients"
    Options = ClientsOptions
    options: ClientsOptions
    measured_host = "server"
    _holds_senders_back: str | None = None
    """Why packets in queues of the lab count against their sender; None where they do not, and without queues."""

    def objection_elsewhere(self) -> Objection | None:
        if self.options.reached_by != "ssh":
            return None
        message = "an sshd in a namespace of another machine cannot be reached from here"
        return Objection("reached_by", message, "write `reached_by: namespace`")

    def clients_of_ports(self) -> dict[str, tuple[str, ...]]:
        return {f"s{port}": tuple(self._client_names(port)) for port in range(self.options.ports)}

    @property
    def bond_links(self) -> int | None:
        return None if self.options.bond is None else self.options.bond.links

    async def up(self, changes: Changes, local: Host) -> EndpointTestbed:
        if (await local.run(("id", "-u"))).stdout.strip() != "0":
            raise NotReadyError(
                "a lab of clients needs root, because it makes network namespaces",
                place=local.name,
                next_step="run it with sudo",
            )
        reach = Reach(self.options.reached_by, changes, local)
        await reach.prepare()
        server = await self._namespace(changes, local, self.measured_host)
        namespaces = [server]
        measured = reach.host(server)
        switch = await self._namespace(changes, local, "switch") if self.options.clients_per_port > 1 else None
        servers = []
        clients = []
        for port in range(self.options.ports):
            names = self._client_names(port)
            near = _End(server, f"s{port}", mac(port, _SERVER), self.options.bond)
            if switch is not None:
                far = _End(switch, f"p-s{port}", None, self._partner(switched=True))
                await self._make_bridge(switch, near, far, port)
            for number, name in enumerate(names):
                client = await self._namespace(changes, local, name)
                end = _End(
                    client, name, mac(port, _FIRST_CLIENT + number), None if switch else self._partner(switched=False)
                )
                if switch is None:
                    far = end
                    await self._join(near, far)
                else:
                    await self._pair(_End(switch, f"p-{name}"), end, self.options.port_bits_per_s)
                    await switch.run(("ip", "link", "set", "dev", f"p-{name}", "master", f"br{port}"))
                namespaces.append(client)
                members = () if switch else self._members(far, near)
                clients.append(
                    self._endpoint(reach.host(client), name, port, _FIRST_CLIENT + number, f"s{port}", members)
                )
            own = self._endpoint(measured, near.device, port, _SERVER, None, self._members(near, far))
            partner = (far.host, far.device) if switch is not None and far.settings is not None else None
            servers.append(replace(own, far_bond=partner))
        inside = {namespace.name: namespace for namespace in namespaces}
        for endpoint in (*servers, *clients):
            address = ("ip", "address", "add", f"{endpoint.facts.address}/24", "dev", str(endpoint.facts.device))
            await inside[endpoint.facts.host].run(address)
        for namespace in namespaces:
            await network.wait_for_links(namespace)
        for endpoint in (*servers, *clients):
            await self._wait_for_bond(inside[endpoint.facts.host], endpoint)
        for namespace in namespaces:
            await network.require_no_way_out(namespace)
        return EndpointTestbed(
            servers=tuple(servers),
            clients=tuple(clients),
            link_is_nominal=True,
            statements=_statements(self.options, machine_words(local), self._holds_senders_back),
            facts={
                "lab": self.kind,
                **self.options.model_dump(),
                **({"gro": "on"} if self.takes_redirected else {}),
                "links": [f"{client.name} <-> {client.facts.port}" for client in clients],
                "namespaces": {name: namespace.namespace for name, namespace in inside.items()},
            },
        )

    def _client_names(self, port: int) -> list[str]:
        count = self.options.clients_per_port
        return [f"c{port}"] if count == 1 else [f"c{port}{chr(ord('a') + number)}" for number in range(count)]

    def _endpoint(
        self, host: Host, name: str, port: int, node: int, leads_to: str | None, members: tuple[BondMember, ...]
    ) -> Endpoint:
        facts = EndpointFacts(
            name=name,
            host=host.name,
            machine=host.machine.name,
            address=f"198.18.{port}.{node}",
            device=name,
            port=leads_to,
            link_bits_per_s=self.options.port_bits_per_s,
            bucket_bytes=self.options.bucket_bytes,
            bond_links=len(members) or None,
        )
        return Endpoint(host, facts, members=members)

    def _partner(self, *, switched: bool) -> BondSettings | None:
        """The settings of the other end of a bond; None where that is not a bond."""
        bond = self.options.bond
        return bond.partner if bond is not None and (bond.switch_knows_it or not switched) else None

    def _members(self, own: _End, other: _End) -> tuple[BondMember, ...]:
        """The members of a bond, each with the interface at the other end of its link; none without a bond."""
        if self.options.bond is None:
            return ()
        pairs = zip(
            members_of(own.device, self.options.bond.links),
            members_of(other.device, self.options.bond.links),
            strict=True,
        )
        return tuple(BondMember(device=mine, far_host=other.host, far_device=theirs) for mine, theirs in pairs)

    async def _wait_for_bond(self, host: NetnsHost, end: Endpoint) -> None:
        """Waits until the bond of an endpoint works, where it has one."""
        if self.options.bond is not None and end.members:
            ports = tuple(member.device for member in end.members)
            await wait_for_bond(host, end.name, self.options.bond, ports)

    async def _namespace(self, changes: Changes, local: Host, role: str) -> NetnsHost:
        host = NetnsHost(local, namespace_name(changes.run_id, role), role)
        await network.make_namespace(changes, host)
        return host

    async def _make_bridge(self, switch: NetnsHost, near: _End, far: _End, port: int) -> None:
        """Makes a bridge with the server's port on it; traffic to the server is limited where it leaves the switch."""
        await switch.run(("ip", "link", "add", f"br{port}", "mtu", str(self.options.mtu), "type", "bridge"))
        await self._join(near, far)
        bond = self.options.bond
        plain = bond is not None and far.settings is None
        for device in members_of(far.device, bond.links) if bond and plain else (far.device,):
            await switch.run(("ip", "link", "set", "dev", device, "master", f"br{port}"))
        await switch.run(("ip", "link", "set", "dev", f"br{port}", "up"))

    async def _join(self, near: _End, far: _End) -> None:
        """Joins a port of the server with its other end, by a link or the links of a bond."""
        bond = self.options.bond
        if bond is None:
            await self._pair(near, far, self.options.rate)
            return
        ends = (near, far)
        for end in ends:
            if end.settings is not None:
                await create_bond(end.host, end.device, end.settings)
        # A bond takes the MAC address of the port that joins first.
        macs = [(near.mac, far.mac), *[(None, None)] * (bond.links - 1)]
        for links, addresses in zip(
            zip(*(members_of(end.device, bond.links) for end in ends), strict=True), macs, strict=True
        ):
            members = [
                _End(end.host, link, address, bond=end.device if end.settings else None)
                for end, link, address in zip(ends, links, addresses, strict=True)
            ]
            await self._pair(members[0], members[1], self.options.rate)
        for end in ends:
            if end.settings is not None:
                await self._bring_up(end, self.options.rate)

    async def _pair(self, near: _End, far: _End, rate: float | None) -> None:
        """Makes a veth pair with its ends in their namespaces; unlike a tester's it keeps its offloads, as cards do."""
        mtu = ("mtu", str(self.options.mtu))
        own, there = (
            (end.device, *network.index_arguments(), *(("address", end.mac) if end.mac else ()), *mtu, *more)
            for end, more in ((near, ("type", "veth")), (far, ("netns", far.host.namespace)))
        )
        try:
            await near.host.inner.run(("ip", "-n", near.host.namespace, "link", "add", *own, "peer", "name", *there))
        except HostError as error:
            raise network.explain_no_pair(error, near.host.inner) from error
        for end in (near, far):
            if rate is not None:
                limit = ("rate", f"{round(rate)}bit", "burst", str(_bucket_bytes(rate)), "limit", str(_QUEUE_BYTES))
                await end.host.run(("tc", "qdisc", "add", "dev", end.device, "root", "handle", "1:", "tbf", *limit))
                if self.options.queue is not None:
                    await self.options.queue.attach(end.host, end.device, "1:1", _QUEUE_SEGMENTS, rate)
                reason = await free_senders(end.host, end.device)
                self._holds_senders_back = self._holds_senders_back or reason
            await self._bring_up(end, rate)
            if self.takes_redirected:
                await network.receive_redirected(end.host, end.device)

    async def _bring_up(self, end: _End, rate: float | None) -> None:
        """Brings an end up so that it sends nothing by itself, with segments that fit into the bucket of a rate."""
        segments = () if rate is None else ("gso_max_size", str(_SEGMENT_BYTES))
        # A bond takes only interfaces that are down, and brings them up.
        last = ("up",) if end.bond is None else ("master", end.bond)
        await end.host.run(("ip", "link", "set", "dev", end.device, "addrgenmode", "none", *segments, *last))


_NO_HALF_DUPLEX = (
    "A token bucket holds each direction by itself, as a link in full duplex does: it cannot be half duplex, where "
    "both directions share the medium and collide. That takes adapters (tuning: link)."
)

_HELD_BACK = (
    "A sender of TCP may be held back before a queue of the lab is full: its kernel counts what waits there as not yet "
    "sent (TCP small queues), and the program that prevents this cannot be attached ({why})."
)


def _statements(options: ClientsOptions, where: str, holds_senders_back: str | None) -> tuple[str, ...]:
    one, it = ("one machine", "the machine") if where == "this machine" else (where, "it")
    shared = f"Server and clients are namespaces of {one} and share its CPUs: this measures {it}, not a network card."
    if options.reached_by == "ssh":
        shared += " Each is reached by an sshd of its own, and watched as if it were a machine."
    bond = options.bond
    ports = () if bond is None else (f"Each port of the server is a bond of {bond.links} links ({bond.words}).",)
    if options.rate is None:
        return (shared, *ports, "The links are veth pairs without a speed of their own.")
    held = f"Each link is held to {options.rate / 1e6:g} Mb/s by a token bucket filter (tbf) at both ends"
    if bond is not None and options.clients_per_port > 1:
        held += f", that of a client to {(options.port_bits_per_s or 0) / 1e6:g} Mb/s"
    if options.queue is not None:
        held += f"; {options.queue.summary}"
    return (
        shared,
        *ports,
        f"{held}.",
        *(() if holds_senders_back is None else (_HELD_BACK.format(why=holds_senders_back),)),
        _NO_HALF_DUPLEX,
    )
