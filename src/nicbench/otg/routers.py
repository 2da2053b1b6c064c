"""The emulated routers of a session: each is a network namespace with the interfaces of its hosts, whose frames the
engine passes to its port, and the daemon BIRD.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host as Machine
from nicbench.hosts.base import Process
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.otg import bird
from nicbench.otg.bgp import Peer, Router
from nicbench.otg.devices import Host
from nicbench.otg.model import NOT_IMPLEMENTED, OtgError
from nicbench.stages.served import Bed
from nicbench.testbed.interfaces.namespaces import make_namespace
from nicbench.testbed.labs.veth import namespace_name
from nicbench.testbed.share_servers import find_programs, make_private
from nicbench.testbed.shares.base import Program

_PROGRAMS: Final = tuple(
    Program(name=name, package=bird.PACKAGE, paths=(f"/usr/sbin/{name}",)) for name in ("bird", "birdc")
)
_HAND_OVER: Final = 'chmod 711 "${2%/*}" && chown "$1:" "$2" && chmod 400 "$2"'
_READY_S: Final = 30.0
"""A million routes are read in seconds."""
_END_S: Final = 2.0
_LOOK_S: Final = 0.05
_MOST_LINES_PER_S: Final = 5_000
"""Of a daemon's log: one that a peer makes talk faster has to wait."""
_SETTINGS: Final = (
    ("ipv6/conf/all/disable_ipv6", "0"),
    ("ipv6/conf/default/disable_ipv6", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
)
"""Of a router's namespace: the engine has asked whether addresses are free, and who the gateways are."""


class _Daemon:
    """One router that runs."""

    def __init__(self, router: Router, place: NetnsHost, folder: str, programs: Mapping[str, str]) -> None:
        self.router = router
        self.place = place
        self.protocols = bird.protocols_of(router)
        self.log = bird.Log()
        self._paths = (f"{folder}/{place.name}.conf", f"{folder}/{place.name}.socket")
        self._programs = programs
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, taps: Mapping[str, str], tester: Machine) -> None:
        """Takes the interfaces of the router's hosts, and starts the daemon."""
        lines = [line for host in self.router.hosts for line in _interface(host, taps[host.name], self.router)]
        for host in self.router.hosts:
            await tester.run(("ip", "link", "set", "dev", taps[host.name], "netns", self.place.namespace))
        await self.place.run(("ip", "-batch", "-"), input_text="\n".join(lines) + "\n")
        configuration = await asyncio.to_thread("\n".join, bird.configuration_of(self.router))
        await self.place.write_file(self._paths[0], configuration + "\n")
        # A hostile peer speaks to it: it keeps the rights over its network, and those of its own user.
        await self.place.run(("sh", "-c", _HAND_OVER, "hand over", bird.USER, *self._paths[:1]))
        own = ("-u", bird.USER, "-g", bird.USER)
        command = ("sh", "-c", 'exec "$@" 2>&1', "bird", self._programs["bird"], "-f", *own, "-c", self._paths[0])
        self._process = await self.place.start((*command, "-s", self._paths[1]))
        self._reading = asyncio.ensure_future(self._read(self._process))
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _READY_S
        while (await self._ask("show status", check=False)) is None:
            if self._reading.done() or loop.time() > end_s:
                raise HostError(f"BIRD does not start: {self.log.last_words or 'no word of it'}", place=self.place.name)
            await asyncio.sleep(_LOOK_S)

    async def stop(self) -> None:
        """Ends the daemon, which takes leave of its peers."""
        if self._process is None:
            return
        await self._process.signal(signal.SIGTERM)
        with contextlib.suppress(HostError):
            await self._process.wait(_END_S)
        await self._process.signal(signal.SIGKILL)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._process = None

    async def set_protocols(self, names: Iterable[str], *, enabled: bool) -> None:
        """Has peers or ranges of these names go up or down."""
        action = "enable" if enabled else "disable"
        commands = [f"{action} {self.protocols[name]}" for name in names if name in self.protocols]
        if commands:
            await self._ask("\n".join(commands))

    async def sessions(self) -> dict[str, bird.Session]:
        """Returns what the daemon tells of its sessions, by its own names; none where it does not run any more."""
        return bird.parse_protocols(await self._ask("show protocols all", check=False) or "")

    async def prefixes(self, peer: Peer, version: int) -> list[dict[str, Any]]:
        """Returns the routes that a peer announced."""
        name = self.protocols[peer.name]
        what = f"show route table t{name[1:]}v{version} protocol {name} all"
        command = (self._programs["birdc"], "-r", "-s", self._paths[1], *what.split())
        process = await self.place.inner.start(command)
        lines: list[str] = []
        while (line := await process.read_line(_READY_S)) is not None:
            lines.append(line)
        await process.wait(_END_S)
        return await asyncio.to_thread(lambda: list(bird.parse_routes(lines)))

    async def _ask(self, commands: str, *, check: bool = True) -> str | None:
        """Returns the daemon's answer to these commands, one a line; None where it does not run."""
        done = await self.place.inner.run(
            (self._programs["birdc"], "-s", self._paths[1]), input_text=f"{commands}\n", timeout_s=_READY_S, check=False
        )
        if done.status and check:
            raise HostError(f"BIRD does not answer: {self.log.last_words or done.reason}", place=self.place.name)
        return None if done.status else done.stdout

    async def _read(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        began_s, lines = loop.time(), 0
        with contextlib.suppress(HostError):
            while (line := await process.read_line()) is not None:
                self.log.note(line)
                lines += 1
                if lines >= _MOST_LINES_PER_S:
                    await asyncio.sleep(max(0.0, began_s + 1.0 - loop.time()))
                    began_s, lines = loop.time(), 0


def _interface(host: Host, tap: str, router: Router) -> Iterator[str]:
    """Yields commands of iproute2 for the interface of a host. Routes lead to peers alone."""
    yield f"link set dev {tap} address {host.mac}"
    for address in host.addresses:
        yield f"address add {address.ip}/{address.prefix} dev {tap}" + (" nodad" if address.ip.version == 6 else "")
    yield f"link set dev {tap} up"
    for address in host.addresses:
        if address.gateway is not None and address.gateway_mac is not None:
            yield f"neighbour replace {address.gateway} lladdr {address.gateway_mac} nud permanent dev {tap}"
        for remote in {peer.remote for peer in router.peers if peer.local == address}:
            # Also on the link: the kernel makes no route of a subnet that begins with 0.0.0.0.
            is_far = not address.reaches(remote) and address.gateway is not None
            yield f"route replace {remote} {f'via {address.gateway} ' if is_far else ''}dev {tap}"


class Routers:
    """All of them. OtgError where one cannot be, or a name is unknown."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._routers: tuple[Router, ...] = ()
        self._daemons: dict[str, _Daemon] = {}
        self._places: list[NetnsHost] = []
        self._folder: str | None = None
        self._programs: Mapping[str, str] = {}
        self._starts = 0
        self._off: set[str] = set()
        """Names of ranges that are withdrawn, and of peers that are down."""

    def configure(self, routers: tuple[Router, ...]) -> None:
        """Takes the routers of a new configuration; those of the last one were stopped."""
        self._routers, self._off = routers, set()

    async def require(self) -> None:
        """Makes sure that there may be routers. OtgError that says what is missing."""
        if self._bed.testbed.simulated:
            raise OtgError(
                ["config.devices: simulated ports reach no daemon of BGP: use another lab"], code=NOT_IMPLEMENTED
            )
        try:
            self._programs = await find_programs(self._machine, _PROGRAMS)
        except NotReadyError as error:
            told = f"config.devices: BGP is emulated by BIRD: {error.message}: {error.next_step}"
            raise OtgError([told], code=NOT_IMPLEMENTED) from error

    @property
    def _machine(self) -> Machine:
        return self._bed.testbed.tester.machine

    @property
    def wanted(self) -> tuple[Router, ...]:
        """Those of the configuration."""
        return self._routers

    def name_taps(self) -> dict[str, str]:
        """Returns a new interface for each of their hosts, by its name."""
        self._starts += 1
        hosts = [host for router in self._routers for host in router.hosts]
        return {host.name: f"nb{self._starts % 100_000}r{index}" for index, host in enumerate(hosts)}

    async def start(self, taps: Mapping[str, str]) -> None:
        """Starts them with the interfaces that the engine has made."""
        if not self._routers:
            return
        changes = self._bed.changes
        if self._folder is None:
            self._folder = f"/run/nicbench-{changes.run_id}-routers"
            await make_private(changes, self._machine, self._folder)
        while len(self._places) < len(self._routers):
            number = len(self._places) + 1
            place = NetnsHost(self._machine, namespace_name(changes.run_id, f"router-{number}"), f"router-{number}")
            await make_namespace(changes, place)
            for path, value in _SETTINGS:
                await place.write_file(f"/proc/sys/net/{path}", value)
            self._places.append(place)
        for router, place in zip(self._routers, self._places, strict=False):
            daemon = _Daemon(router, place, self._folder, self._programs)
            self._daemons[router.device] = daemon
            await daemon.start(taps, self._bed.testbed.tester.network)
            await daemon.set_protocols(self._off, enabled=False)

    async def stop(self) -> None:
        """Stops all; a daemon that is gone already is stopped."""
        daemons, self._daemons = list(self._daemons.values()), {}
        with contextlib.suppress(HostError):
            await asyncio.gather(*(daemon.stop() for daemon in daemons))

    async def set_routes(self, names: Sequence[str], state: str) -> None:
        """Has ranges of these names, or all, announced or withdrawn."""
        known = [each.name for router in self._routers for peer in router.peers for each in peer.ranges]
        path = "control_state.protocol.route.names"
        await self._set(names, known, path, "range of routes", enabled=state == "advertise")

    async def set_peers(self, names: Sequence[str], state: str) -> None:
        """Has sessions of these names, or all, go up or down."""
        known = [peer.name for router in self._routers for peer in router.peers]
        await self._set(names, known, "control_state.protocol.bgp.peers.peer_names", "peer", enabled=state == "up")

    async def _set(self, names: Sequence[str], known: Sequence[str], path: str, what: str, *, enabled: bool) -> None:
        _require_known(names, known, path, what)
        wanted = set(names or known)
        await asyncio.gather(*(each.set_protocols(wanted, enabled=enabled) for each in self._daemons.values()))
        self._off = self._off - wanted if enabled else self._off | wanted

    async def metrics(
        self, version: int | None, names: Sequence[str], columns: Sequence[str], path: str
    ) -> list[dict[str, Any]]:
        """Returns OTG's metrics of the peers of these names, or of all of this version of IP."""
        peers = [(router, peer) for router in self._routers for peer in router.peers]
        known = [(router, peer) for router, peer in peers if version in (None, peer.version)]
        _require_known(names, [peer.name for _, peer in known], path, "peer of this version")
        asked = {router.device for router, peer in known if not names or peer.name in names}
        running = {device: daemon for device, daemon in self._daemons.items() if device in asked}
        told = dict(zip(running, await asyncio.gather(*(each.sessions() for each in running.values())), strict=True))
        found = []
        for router, peer in known:
            if names and peer.name not in names:
                continue
            daemon = running.get(router.device)
            name = "" if daemon is None else daemon.protocols[peer.name]
            messages = bird.Messages() if daemon is None else daemon.log.sessions.get(name, bird.Messages())
            metric = bird.metric_of(peer.name, told.get(router.device, {}).get(name), messages)
            found.append({key: value for key, value in metric.items() if not columns or key in ("name", *columns)})
        return found

    async def prefixes(self, wanted: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
        """Returns OTG's states of the routes that peers announced, as a request for ``bgp_prefixes`` asks."""
        names = wanted.get("bgp_peer_names") or ()
        peers = [(router, peer) for router in self._routers for peer in router.peers]
        _require_known(names, [peer.name for _, peer in peers], f"{path}.bgp_peer_names", "peer")
        kinds = wanted.get("prefix_filters") or ("ipv4_unicast", "ipv6_unicast")
        found = []
        for router, peer in peers:
            daemon = self._daemons.get(router.device)
            if (names and peer.name not in names) or daemon is None:
                continue
            state: dict[str, Any] = {"bgp_peer_name": peer.name}
            for version in sorted(peer.learned.intersection(peer.versions)):
                if f"ipv{version}_unicast" in kinds:
                    filters = wanted.get(f"ipv{version}_unicast_filters") or ()
                    routes = await daemon.prefixes(peer, version)
                    state[f"ipv{version}_unicast_prefixes"] = [each for each in routes if _passes(each, filters)]
            found.append(state)
        return found


def _passes(prefix: Mapping[str, Any], filters: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a prefix matches one of the filters; without any, every one does."""
    address = prefix.get("ipv4_address", prefix.get("ipv6_address"))
    return not filters or any(
        (not each.get("addresses") or address in each["addresses"])
        and all(each[key] == prefix.get(key) for key in ("prefix_length", "origin") if key in each)
        for each in filters
    )


def _require_known(names: Collection[str], known: Collection[str], path: str, what: str) -> None:
    for index, name in enumerate(names):
        if name not in known:
            raise OtgError([f"{path}[{index}]: no {what} of the configuration is called {name[:80]!r}"])
