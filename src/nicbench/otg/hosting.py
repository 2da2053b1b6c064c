"""The emulated hosts of a session: clients start and stop them, and ask what they know of their neighbours."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from nicbench.core.errors import EngineError, NicbenchError
from nicbench.engine.generator import Generator, Neighbours, NeighbourState, PingState
from nicbench.otg.bgp import Router
from nicbench.otg.devices import Address, Devices, Gateway, Source
from nicbench.otg.flows import ServedPort
from nicbench.otg.model import OtgError
from nicbench.otg.routers import Routers

_LOOK_S: Final = 0.05
_LOOKS: Final = 4
_MOST_NAMED: Final = 5
_WAITS: Final = frozenset({NeighbourState.INCOMPLETE, NeighbourState.PROBE})


class Hosting:
    """The hosts in the engine."""

    def __init__(self, generator: Generator, routers: Routers) -> None:
        self._generator = generator
        self._routers = routers
        self._devices = Devices()
        self._ports: Mapping[str, ServedPort] = {}
        self._was_started = False
        self.is_started = False
        """Whether they answer."""

    async def configure(
        self, devices: Devices, routers: tuple[Router, ...], ports: Mapping[str, ServedPort], *, keeps: bool
    ) -> None:
        """Takes the devices of a new configuration, which answer at once, as other generators' do; routers wait for
        their start. Those that are the same stay as they are, if ``keeps``.
        """
        is_same = keeps and (devices.hosts, routers) == (self._devices.hosts, self._routers.wanted)
        if not is_same:
            await self.stop()
            self._routers.configure(routers)
        self._devices, self._ports = devices, ports
        if not is_same and not routers:
            with contextlib.suppress(OtgError):  # clients receive it with what they start
                await self.start()

    async def start(self) -> None:
        """Has the hosts answer, and ask for their gateways; those that do so already go on."""
        if self.is_started or not self._devices.hosts:
            return
        taps = self._routers.name_taps()
        programs = [
            host.program([self._ports[port].number for port in host.ports], taps.get(host.name))
            for host in self._devices.hosts
        ]
        try:
            await self._generator.set_hosts(programs)
        except EngineError as error:
            if error.kind != "bad_request":
                raise
            raise OtgError([f"config.devices: {error.message}: {error.next_step}"]) from error
        self.is_started = self._was_started = True
        try:
            await self._routers.start(taps)
        except NicbenchError:
            await self.stop()
            raise

    async def settle(self) -> None:
        """Waits a moment for the answers of those whom hosts ask first."""
        for _ in range(_LOOKS):
            tables = await self._tables()
            if not tables.tentative and all(each.state not in _WAITS for each in tables.neighbours):
                return
            await asyncio.sleep(_LOOK_S)

    async def stop(self) -> None:
        """Has the hosts fall silent, and forget their neighbours."""
        if self.is_started:
            await self._routers.stop()
            await self._generator.set_hosts([])
            self.is_started = False

    async def told(self) -> dict[str, Any]:
        """Returns what the hosts know and did, by the names of interfaces and of the engine's ports."""
        names = [host.name for host in self._devices.hosts]
        tables = await self._tables()
        return {
            "started": self.is_started,
            "routers": await self._routers.metrics(None, (), (), ""),
            "neighbours": [_named(each.model_dump(mode="json"), names) for each in tables.neighbours],
            "duplicates": [_named(each.model_dump(mode="json"), names) for each in tables.duplicates],
            "ports": [
                {"name": name, **tables.counts[port.number].model_dump()}
                for name, port in self._ports.items()
                if port.number < len(tables.counts)
            ],
        }

    async def summary(self) -> list[str]:
        """Returns sentences on what hosts did at each port where they did anything, since the session began."""
        if not self._ports or not self._was_started:
            return []
        counts = (await self._generator.neighbours()).counts
        sessions = await self._routers.metrics(None, (), (), "") if self.is_started else []
        return [
            f"emulated hosts at {name}: {', '.join(words)}"
            for name, port in self._ports.items()
            if port.number < len(counts)
            and (words := [f"{count} {_DID[key]}" for key, count in counts[port.number].model_dump().items() if count])
        ] + [
            f"emulated BGP peer {each['name']}: {each['session_state']}, lost {each['session_flap_count']} times, "
            f"{each.get('routes_advertised', 'unknown')} routes announced, "
            f"{each.get('routes_received', 'unknown')} received"
            for each in sessions
        ]

    async def states(self, version: int, names: Sequence[str], path: str) -> list[dict[str, Any]]:
        """Returns OTG's states of the neighbours of these interfaces, or of all. OtgError for an unknown name."""
        known = [host.name for host in self._devices.hosts]
        for index, name in enumerate(names):
            if name not in known:
                raise OtgError([f"{path}[{index}]: no ethernet of a device is called {name[:80]!r}"])
        wanted = set(names or known)
        tables = await self._tables()
        return [
            {"ethernet_name": known[each.host], f"ipv{version}_address": str(each.address)}
            | ({"link_layer_address": each.mac} if each.mac else {})
            for each in tables.neighbours
            # Those that asked a host are known to it, and are none that it looks for.
            if each.address.version == version and known[each.host] in wanted and each.state is not NeighbourState.STALE
        ]

    async def ping(self, version: int, requests: Sequence[Mapping[str, Any]], path: str) -> list[dict[str, Any]]:
        """Has hosts ping, by their gateways where the other is in no subnet of theirs, and returns OTG's result of each
        request. Hosts are started if they are not yet. OtgError for what cannot be asked for.
        """
        await self.start()
        pings = [self._ping_of(version, request, f"{path}[{index}]") for index, request in enumerate(requests)]
        try:
            await self._generator.ping(pings)
        except EngineError as error:
            if error.kind != "bad_request":
                raise
            raise OtgError([f"{path}: {error.message}: {error.next_step}"]) from error
        while True:
            states = (await self._tables()).pings
            if PingState.WAITING not in states:
                break
            await asyncio.sleep(_LOOK_S)
        return [
            {**request, "result": "succeeded" if state is PingState.ANSWERED else "failed"}
            for request, state in zip(requests, states, strict=True)
        ]

    def _ping_of(self, version: int, request: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Returns a request for an echo as the engine's protocol has it."""
        name = str(request.get("src_name", ""))
        host, own = self._interface(name, version, f"{path}.src_name")
        if "dst_ip" not in request:
            raise OtgError([f"{path}.dst_ip: is missing"])
        to = ipaddress.ip_address(request["dst_ip"])
        next_hop = to if own.reaches(to) else own.gateway
        if next_hop is None:
            raise OtgError([f"{path}.dst_ip: {name!r} has no gateway to {to}"])
        mac = own.gateway_mac if next_hop == own.gateway else None
        return {"host": host, "from": str(own.ip), "to": str(to), "next_hop": str(next_hop), "mac": mac}

    def _interface(self, name: str, version: int, path: str) -> tuple[int, Address]:
        """Returns the address of this name, and the number of its host. OtgError for an unknown name."""
        for number, host in enumerate(self._devices.hosts):
            for address in host.addresses:
                if address.name == name and address.ip.version == version:
                    return number, address
        raise OtgError([f"{path}: no address of IPv{version} of a device is called {name[:80]!r}"])

    async def resolve(self, needs: Collection[Gateway], sources: Collection[Source]) -> dict[Gateway, str]:
        """Returns the MAC addresses of all gateways that are known, when these ``needs`` are, and no address is
        tentative. Hosts are started if they are not yet. OtgError where a gateway does not answer, or somebody else had
        one of the ``sources`` first.
        """
        await self.start()
        ask_again = True
        while True:
            tables = await self._tables(ask_again=ask_again)
            ask_again = False
            names = [host.name for host in self._devices.hosts]
            taken = [
                f"config.devices: {names[each.host]!r}: {each.address} is that of {each.mac}: give it another"
                for each in tables.duplicates
                if each.is_given_up and (names[each.host], each.address) in sources
            ]
            if taken:
                raise OtgError(_first(taken))
            entries = {(names[each.host], each.address): each for each in tables.neighbours}
            missing = [need for need in needs if need not in entries or entries[need].mac is None]
            if not missing and not tables.tentative:
                return {key: each.mac for key, each in entries.items() if each.mac is not None}
            if not tables.tentative and not any(need in entries and entries[need].state in _WAITS for need in missing):
                told = [
                    f"config.devices: {name!r}: {gateway} does not answer" for name, gateway in sorted(missing, key=str)
                ]
                raise OtgError(_first(told), code=500)
            await asyncio.sleep(_LOOK_S)

    async def _tables(self, *, ask_again: bool = False) -> Neighbours:
        if not self.is_started:
            return Neighbours(neighbours=(), duplicates=(), tentative=0, pings=(), counts=())
        return await self._generator.neighbours(ask_again=ask_again)


_DID: Final = {
    "received": "frames received",
    "sent": "sent",
    "arp_answered": "ARP requests answered",
    "nd_answered": "neighbour solicitations answered",
    "echo_answered": "pings answered",
    "asked": "questions asked",
    "dropped": "dropped beyond the rate that hosts look at",
    "malformed": "malformed",
    "unasked": "answers that nobody had asked for",
    "contradicted": "contradictions",
    "looped": "own frames that came back",
}


def _first(told: Sequence[str]) -> list[str]:
    """The first of many sentences, and the number of the others."""
    more = [f"... and {len(told) - _MOST_NAMED} more"] if len(told) > _MOST_NAMED else []
    return [*told[:_MOST_NAMED], *more]


def _named(told: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {"ethernet": names[told.pop("host")], **told}
