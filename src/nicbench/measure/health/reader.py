"""Reads the hardware of a testbed's hosts, and tells what rose between two readings.

Reading is one command a host, before and after each trial, not while it sends. Comparing is pure; whether what rose
spoils a trial is ``judge``'s to say.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.reading import HealthEvent, HealthLevel, MachineHealth, Measure
from nicbench.core.registry import find
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.measure.health.base import Counter, Energy, HealthView, Level, Probe, Speed, Value
from nicbench.system.identity import driver_of
from nicbench.system.inventory.base import NOT_UNDERSTOOD
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort


@frozen
class Snapshot:
    """Values by host at one time (monotonic seconds), what could not be read, and how long it took."""

    at_s: float
    values: Mapping[str, tuple[Value, ...]]
    unread: tuple[str, ...] = ()
    took_ms: float = 0.0


def compare(before: Snapshot, after: Snapshot) -> MachineHealth:
    """Events and levels of what lies between the two."""
    events: list[HealthEvent] = []
    levels: list[HealthLevel] = []
    for host, values in after.values.items():
        earlier = {_name(value): value for value in before.values.get(host, ())}
        for value in values:
            was = earlier.get(_name(value))
            events.extend(_events(host, value, was))
            levels.extend(_levels(host, value, was, after.at_s - before.at_s))
    return MachineHealth(
        events=tuple(events),
        levels=tuple(levels),
        unread=tuple(dict.fromkeys((*before.unread, *after.unread))),
        reading_ms=round(before.took_ms + after.took_ms, 1),
    )


def _name(value: Value) -> tuple[type[Value], str, str]:
    # The words of a speed hold the speed itself.
    return type(value), value.where, value.what if isinstance(value, Counter) else ""


def _events(host: str, value: Value, was: Value | None) -> Iterator[HealthEvent]:
    if isinstance(value, Counter) and isinstance(was, Counter) and value.value > was.value:
        grown = value.value - was.value
        yield HealthEvent(
            host=host, where=value.where, what=value.what, measure=value.measure, amount=grown, unit=value.unit
        )
    if isinstance(value, Speed) and isinstance(was, Speed) and value.value < was.value:
        yield HealthEvent(
            host=host,
            where=value.where,
            what=f"PCIe link went from {was.what} to {value.what}",
            measure=value.measure,
            amount=1.0 - value.value / was.value,
            unit="share",
        )
    if isinstance(value, Level) and value.limit and value.value > value.limit:
        yield HealthEvent(
            host=host,
            where=value.where,
            what=f"{value.value:.1f} {value.unit}, its limit is {value.limit:.1f} {value.unit}",
            measure=Measure.TEMPERATURE,
            amount=value.value / value.limit,
            unit="share",
        )


def _levels(host: str, value: Value, was: Value | None, elapsed_s: float) -> Iterator[HealthLevel]:
    if isinstance(value, Level):
        yield HealthLevel(host=host, where=value.where, value=value.value, unit=value.unit, limit=value.limit)
    if isinstance(value, Energy) and isinstance(was, Energy) and elapsed_s > 0:
        joules = value.joules - was.joules
        if joules < 0:
            # The register is 32 bits wide; one that does not say where it wraps tells nothing.
            joules = joules + value.range_j if value.range_j else -1.0
        if joules >= 0:
            yield HealthLevel(host=host, where=value.where, value=round(joules / elapsed_s, 1), unit="W")


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
        asked = []
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
        near = tuple(port for port in testbed.tester_ports if not port.on_peer)
        hosts = [(testbed.tester, await _view("tester", testbed.tester, near))]
        if testbed.peer is not None:
            far = tuple(port for port in testbed.tester_ports if port.on_peer)
            hosts.append((testbed.peer, await _view("peer", testbed.peer, far)))
        if testbed.dut is not None:
            hosts.append((testbed.dut, await _view("DUT", testbed.dut, testbed.dut_ports)))
        return cls(tuple(hosts))

    async def read(self) -> Snapshot:
        """Reads every value of every host now."""
        began = self._clock()
        values = {}
        unread: list[str] = []

        async def one(number: int, host: Host, view: HealthView) -> None:
            try:
                values[view.host] = await self._read_host(number, host, view, unread)
            except NicbenchError as error:
                unread.append(f"{view.host}: {error.message}")

        await asyncio.gather(*(one(number, host, view) for number, (host, view) in enumerate(self._hosts)))
        ended = self._clock()
        return Snapshot(ended, values, tuple(unread), 1000.0 * (ended - began))

    async def _read_host(self, number: int, host: Host, view: HealthView, unread: list[str]) -> tuple[Value, ...]:
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
            done = await host.run(("sh", "-c", join_scripts(scripts)), check=False, timeout_s=_TIMEOUT_S)
            printed = split_sections(done.stdout)
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
