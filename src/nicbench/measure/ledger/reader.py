"""Reads every counter of a testbed: one command a host, before and after each trial, never while frames are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.registry import find
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.measure.ledger.base import Count, Side, Source, View
from nicbench.system.identity import driver_of
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.labs.base import Testbed, TesterPort

_PACKAGE = "nicbench.measure.ledger.sources"
_TIMEOUT_S = 20.0


_OF_THE_TESTER = (Side.TESTER, Side.PEER)


def _side(port: TesterPort) -> Side:
    return Side.PEER if port.on_peer else Side.TESTER


@frozen
class Counters:
    """All counts at one time, and why some could not be had."""

    counts: tuple[Count, ...] = ()
    faults: tuple[str, ...] = ()


class LedgerReader:
    """The sources that apply to the hosts of one testbed. Make it by ``of`` when the DUT is up."""

    def __init__(self, hosts: tuple[tuple[Host, View], ...] = ()) -> None:
        self._hosts = hosts
        self._sources = {kind: source() for kind, source in find(_PACKAGE, Source).items()}
        machines = [(outermost(host).spec(), view.side) for host, view in hosts]
        # Of sides on one machine the last, the DUT's if it is one of them, is asked for what it counts as a whole.
        last = {str(machine): side for machine, side in machines}
        self._asked_as_a_whole = set(last.values())

    @classmethod
    async def of(cls, testbed: Testbed) -> LedgerReader:
        """Looks at the interfaces of both sides; a testbed without any has nothing to read."""
        ports = zip(testbed.tester_ports, testbed.dut_ports, strict=False)
        links = [(_side(near), near.device, far.device) for near, far in ports if near.device and far.device]
        sides = [
            (
                side,
                host,
                {port.name: port.device for port in testbed.tester_ports if port.device and _side(port) is side},
            )
            for side, host in ((Side.TESTER, testbed.tester), (Side.PEER, testbed.peer))
            if host is not None
        ]
        if testbed.dut is not None:
            names = {port.name: port.device for port in testbed.dut_ports if port.device}
            sides.append((Side.DUT, testbed.dut, names))
        peers = {
            **{own: {near: (Side.DUT, far) for side, near, far in links if side is own} for own in _OF_THE_TESTER},
            Side.DUT: {far: (side, near) for side, near, far in links},
        }
        views = [
            (host, await _view_of(host, side, ports, peers[side]))
            for side, host, ports in sides
            if ports and not testbed.simulated
        ]
        return cls(tuple(views))

    async def read(self) -> Counters:
        """Reads every counter of every host now."""
        # Of all hosts at once: it takes as long as the slowest.
        each = await asyncio.gather(*(self._read_host(host, view) for host, view in self._hosts))
        return Counters(
            tuple(count for one in each for count in one.counts), tuple(fault for one in each for fault in one.faults)
        )

    async def _read_host(self, host: Host, view: View) -> Counters:
        wanted = {kind: source.script(view) for kind, source in self._sources.items() if self._applies(source, view)}
        wanted = {kind: script for kind, script in wanted.items() if script}
        try:
            done = await host.run(("sh", "-c", join_scripts(wanted)), check=False, timeout_s=_TIMEOUT_S)
        except NicbenchError as error:
            return Counters(faults=(f"the counters of {host.name} could not be read: {error.message}",))
        counts: list[Count] = []
        faults = []
        for kind, text in split_sections(done.stdout).items():
            try:
                counts.extend(self._sources[kind].read(text, view))
            except NOT_UNDERSTOOD as error:
                faults.append(f"{kind} on {host.name} was not understood: {type(error).__name__}: {error}")
        return Counters(tuple(counts), tuple(faults))

    def view_of_port(self, port: str) -> View | None:
        """What is known of the interfaces on the side of a port of the tester."""
        return next((view for _, view in self._hosts if view.side is not Side.DUT and port in view.ports), None)

    def _applies(self, source: Source, view: View) -> bool:
        if source.once_per_machine and view.side not in self._asked_as_a_whole:
            return False
        return view.side in source.sides


async def _view_of(host: Host, side: Side, ports: Mapping[str, str], peers: Mapping[str, tuple[Side, str]]) -> View:
    """The interfaces and the bridges over them (a bond's statistics are the sum of its ports': it is left out)."""
    try:
        shown = await host.run(("ip", "-d", "-j", "link", "show"), check=False)
        links = {str(link["ifname"]): link for link in json.loads(shown.stdout or "[]")}
    except (NicbenchError, ValueError, KeyError, TypeError):
        links = {}
    devices = tuple(dict.fromkeys(ports.values()))
    kinds = {name: str(link.get("linkinfo", {}).get("info_kind", "")) for name, link in links.items()}
    masters = dict.fromkeys(str(links[name].get("master", "")) for name in devices if name in links)
    bridges = tuple(name for name in masters if kinds.get(name) == "bridge")
    # A veth has the name of its kind: that costs no command.
    drivers = {device: "veth" if kinds.get(device) == "veth" else await driver_of(host, device) for device in devices}
    return View(side, (*devices, *bridges), peers, kinds, drivers, ports)
