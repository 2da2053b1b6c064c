"""Reads the hardware of a testbed's hosts: one command a host, before and after each trial, not while it sends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find
from nicbench.hosts.asking import in_sections, sections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.measure.health.base import HealthView, Probe, Value
from nicbench.measure.health.gate import Snapshot
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.system.kernel_driver import driver_of
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort

_PACKAGE = "nicbench.measure.health.probes"
_TIMEOUT_S = 20.0
SLOW_EVERY_S = 30.0


class HealthReader:
    """The probes that find something on the hosts of one testbed; what a host lacks is asked for once."""

    def __init__(
        self, hosts: tuple[tuple[Host, HealthView], ...] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hosts = hosts
        self._clock = clock
        probes = {kind: probe() for kind, probe in find(_PACKAGE, Probe).items()}
        asked: list[str] = []
        self._probes: list[dict[str, Probe]] = []
        for host, _ in hosts:
            machine = str(outermost(host).spec())
            self._probes.append(
                {kind: one for kind, one in probes.items() if machine not in asked or not one.of_machine}
            )
            asked.append(machine)
        self._found: set[tuple[int, str]] = set()
        self._slow: dict[tuple[int, str], tuple[float, tuple[Value, ...]]] = {}

    @classmethod
    async def of(cls, testbed: Testbed) -> HealthReader:
        """Both sides; a simulated testbed has no hardware."""
        if testbed.simulated:
            return cls()
        tester = await _view("tester", testbed.tester, testbed.tester_ports)
        hosts = [(testbed.tester, tester)]
        if testbed.dut is not None:
            hosts.append((testbed.dut, await _view("DUT", testbed.dut, testbed.dut_ports)))
        return cls(tuple(hosts))

    async def read(self) -> Snapshot:
        """Reads every value of every host now."""
        began = self._clock()
        values: dict[str, tuple[Value, ...]] = {}
        unread: list[str] = []

        async def one(number: int, host: Host, view: HealthView) -> None:
            try:
                values[view.host] = await self._of_host(number, host, view, unread)
            except NicbenchError as error:
                unread.append(f"{view.host}: {error.message}")

        await asyncio.gather(*(one(number, host, view) for number, (host, view) in enumerate(self._hosts)))
        ended = self._clock()
        return Snapshot(ended, values, tuple(unread), 1000.0 * (ended - began))

    async def _of_host(self, number: int, host: Host, view: HealthView, unread: list[str]) -> tuple[Value, ...]:
        probes, now = self._probes[number], self._clock()
        kept = {
            kind: seen
            for kind in probes
            for at_s, seen in (self._slow.get((number, kind), (-SLOW_EVERY_S, ())),)
            if seen and now - at_s < SLOW_EVERY_S
        }
        scripts = {kind: probe.script(view) for kind, probe in probes.items() if kind not in kept}
        scripts = {kind: script for kind, script in scripts.items() if script}
        printed = {}
        if scripts:
            done = await host.run(("sh", "-c", in_sections(scripts)), check=False, timeout_s=_TIMEOUT_S)
            printed = sections(done.stdout)
        found: list[Value] = []
        for kind, probe in list(probes.items()):
            if kind in kept:
                found.extend(kept[kind])
                continue
            try:
                seen = probe.read(printed.get(kind, ""), view)
            except NOT_UNDERSTOOD as error:
                unread.append(f"{view.host}, {kind}: not understood: {type(error).__name__}: {error}")
                seen = ()
            else:
                if not seen and (number, kind) in self._found:
                    # A card that fell off the bus, a tool that hung: not to know is not to see nothing.
                    unread.append(f"{view.host}, {kind}: says nothing any more")
            if seen:
                self._found.add((number, kind))
            elif (number, kind) not in self._found:
                del probes[kind]
            if probe.slow:
                self._slow[number, kind] = (now, seen)
            found.extend(seen)
        return tuple(found)


async def _view(name: str, host: Host, ports: tuple[TesterPort, ...] | tuple[DutPort, ...]) -> HealthView:
    devices = tuple(dict.fromkeys(port.device for port in ports if port.device))
    addresses = (port.engine.get("address") for port in ports if isinstance(port, TesterPort) and not port.device)
    drivers = {device: await driver_of(host, device) for device in devices}
    return HealthView(name, devices, drivers, tuple(str(one) for one in addresses if one))
