"""A session: the state that clients change, one change at a time, and read without waiting for one.

It begins with the first configuration, on a testbed made for it, and ends with an empty one, after a time without
requests, or with the server. Its run folder has each configuration and each transmission.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import ConfigurationSet
from nicbench.engine.generator import Action, FlowState, FlowTally, PortCounts, Tally
from nicbench.otg.capturing import Capturing
from nicbench.otg.configuration import Configuration, read_configuration
from nicbench.otg.metrics import flow_metric, port_metric, select_flow_columns, select_port_columns
from nicbench.otg.ports import ServedPort
from nicbench.otg.refusals import OtgError
from nicbench.otg.transmission import Transmission
from nicbench.stages.served import Bed

DRAIN_S: Final = 0.5
"""How long frames have to arrive after the last of their flow was sent."""
_LOOK_S: Final = 0.1
_RATE_S: Final = 0.5
"""Rates are taken over at least so long, where a flow has been sending for that long."""
_KEPT: Final = 16


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A tally with its time (monotonic)."""

    at_s: float
    flows: Mapping[int, FlowTally]
    ports: Sequence[PortCounts]


class Session:
    """What is configured and sent. Errors are OtgError, or those of the engine."""

    def __init__(self, bed: Bed, served: Mapping[str, ServedPort], seed: int) -> None:
        self._bed = bed
        self._served = served
        self._seed = seed
        self._config: Mapping[str, Any] = {}
        self._configuration = Configuration({}, (), {})
        self._numbers: Mapping[str, int] = {}
        self._configurations = 0
        self._transmissions = 0
        self._transmission: Transmission | None = None
        self._finishing: asyncio.Task[None] | None = None
        self._starts = 0
        """Odd while flows are being started: until that is done, those may not have begun."""
        self._is_closing = False
        """Whether the transmission is over, and being written down."""
        self._trouble: NicbenchError | None = None
        """Why the last transmission could not be finished; whoever changes something next is told."""
        self._capturing = Capturing(bed)
        self._latest: Tally | None = None
        """The last counts of all flows: what is left of a transmission whose engine is gone."""
        self._history: list[_Snapshot] = []
        self._stopped_at: dict[int, float] = {}
        self._changing = asyncio.Lock()
        self._looking = asyncio.Event()

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration as the client set it."""
        return self._config

    @property
    def failure(self) -> NicbenchError | None:
        """Why the engine is gone; None while it is there."""
        return self._bed.conversation.failure

    @property
    def is_busy(self) -> bool:
        """Whether a flow is sending that will end by itself, or something is being changed."""
        flows = self._latest.flows if self._latest is not None and self.is_transmitting else ()
        ends = any(flow.state is FlowState.STARTED and flow.intended is not None for flow in flows)
        return ends or self._changing.locked()

    @property
    def is_transmitting(self) -> bool:
        """Whether a flow is sending, or its frames may still be under way."""
        return self._transmission is not None

    def look(self, event: Mapping[str, Any]) -> None:
        """Is told of the engine's events: a flow has ended."""
        self._looking.set()

    # Changes, one at a time.

    async def set_config(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        """Replaces the configuration and returns warnings; flows that are sending are stopped, and captures end."""
        async with self._changing:
            configuration = await asyncio.to_thread(read_configuration, config, self._served, self._seed)
            await self._end_transmission()
            file = f"raw/configuration-{self._configurations + 1:04d}.json"
            await asyncio.to_thread(self._bed.folder.write_json, file, dict(config))
            flows = [flow.program for flow in configuration.flows]
            await self._bed.generator.load(flows)
            await self._capturing.configure(configuration)
            self._config, self._configuration = config, configuration
            self._numbers = {flow.name: number for number, flow in enumerate(configuration.flows)}
            self._history, self._stopped_at = [], {}
            self._configurations += 1
            event = ConfigurationSet(
                number=self._configurations, ports=len(configuration.ports), flows=len(flows), file=file
            )
            self._bed.bus.publish(event)
        return configuration.warnings

    async def control_flows(self, action: str, names: Iterable[str]) -> None:
        """Starts, stops, pauses or resumes the flows of these names, all where there are none."""
        async with self._changing:
            self._tell_trouble()
            numbers = self._flows_of(names, "control_state.traffic.flow_transmit.flow_names")
            if action == "start":
                await self._start(numbers)
            elif self._transmission is not None:
                await self._bed.generator.control(Action(action), numbers)
                if action == "stop":
                    await self._wait_until_stopped(numbers)

    async def control_captures(self, action: str, names: Iterable[str]) -> None:
        """Starts or stops the captures of these ports, of all that the configuration has where there are none."""
        async with self._changing:
            self._tell_trouble()
            await self._capturing.control(action, names)

    async def end(self) -> None:
        """Stops flows and captures; what was sent is in the journal then."""
        async with self._changing:
            with contextlib.suppress(EngineError, HostError):  # the engine or its machine is gone
                await self._end_transmission()
                await self._capturing.stop_all()

    # What waits for no change.

    async def flow_metrics(self, names: Iterable[str], columns: Iterable[str]) -> list[dict[str, Any]]:
        """Returns metrics of the flows of these names, or of all whose metrics are enabled."""
        flows = self._configuration.flows
        wanted = self._flows_of(names, "metrics_request.flow.flow_names")
        given = bool(list(names))
        numbers = [number for number in wanted if flows[number].metrics]
        if given and len(numbers) < len(wanted):
            off = next(flows[number].name for number in wanted if not flows[number].metrics)
            raise OtgError([f"metrics_request.flow.flow_names: metrics of flow {off[:80]!r} are not enabled"])
        now = await self._tally()
        before = self._before(now)
        return [
            select_flow_columns(self._flow_metric(number, now, before), columns)
            for number in numbers
            if number in now.flows
        ]

    async def port_metrics(self, names: Iterable[str], columns: Iterable[str]) -> list[dict[str, Any]]:
        """Returns metrics of the ports of these names, all where there are none."""
        ports = self._configuration.ports
        for index, name in enumerate(names):
            if name not in ports:
                path = f"metrics_request.port.port_names[{index}]"
                raise OtgError([f"{path}: no port of the configuration is called {name[:80]!r}"])
        now = await self._tally()
        before = self._before(now)
        sending = {self._configuration.flows[number].transmit for number in now.flows if self._sends(number, now)}
        return [
            select_port_columns(
                port_metric(
                    name,
                    port.location,
                    port.link_bits_per_s,
                    now.ports[port.number],
                    before.ports[port.number] if before else None,
                    now.at_s - before.at_s if before else 0.0,
                    capturing=name in self._capturing.going,
                    transmitting=name in sending,
                ),
                columns,
            )
            for name, port in ports.items()
            if not list(names) or name in names
        ]

    def capture(self, name: str) -> Path:
        """Returns the file of a port's capture, which has ended. OtgError where there is none."""
        return self._capturing.file(name)

    async def tally(self) -> dict[str, Any]:
        """Returns all that the engine counted of each flow, with its latency distribution, and of each port."""
        configured = self._configuration.flows
        told = await self._bed.generator.tally(histograms=True)
        flows = [
            {"name": configured[each.flow].name, **each.model_dump(mode="json")}
            for each in told.flows
            if each.flow < len(configured)
        ]
        return {"flows": flows, "ports": [port.model_dump(mode="json") for port in told.ports]}

    # Transmissions.

    async def _start(self, numbers: list[int]) -> None:
        if not numbers:
            raise OtgError(["control_state.traffic: the configuration has no flow"])
        self._starts += 1  # from here on the transmission that goes on, if any, is not finished
        try:
            if self._is_closing and self._finishing is not None:
                await self._finishing
            if self._transmission is None:
                number = self._transmissions + 1
                self._transmission = await Transmission.begin(number, self._bed, self._configuration)
                self._transmissions, self._history = number, []
                self._finishing = asyncio.ensure_future(self._follow(self._transmission))
            await self._stop_paused(numbers)
            await self._transmission.note_start(numbers)
            for number in numbers:
                self._stopped_at.pop(number, None)
            await self._bed.generator.control(Action.START, numbers)
            self._latest = None  # it has what these flows had counted before
        finally:
            self._starts += 1
            self._looking.set()

    async def _stop_paused(self, numbers: list[int]) -> None:
        """A flow that pauses and is started begins anew, as one that has stopped."""
        now = await self._tally()
        paused = [number for number in numbers if now.flows[number].state is FlowState.PAUSED]
        if paused:
            await self._bed.generator.control(Action.STOP, paused)

    def _tell_trouble(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    async def _follow(self, transmission: Transmission) -> None:
        """Waits until all flows of a transmission have stopped and their drain has passed, and finishes it."""
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._looking.wait(), _LOOK_S if len(self._numbers) < 256 else 5 * _LOOK_S)
                self._looking.clear()
                starts = self._starts
                now = await self._tally()
                if (
                    starts == self._starts
                    and starts % 2 == 0
                    and not any(self._sends(number, now) for number in transmission.started)
                ):
                    break
            self._is_closing = True
            await transmission.finish(DRAIN_S)
        except NicbenchError as error:
            self._trouble = error
            with contextlib.suppress(NicbenchError):  # a full disk, for instance: what came first is told
                await transmission.abandon(self._latest, error)
        finally:
            self._transmission, self._finishing, self._is_closing = None, None, False

    async def _wait_until_stopped(self, numbers: list[int]) -> None:
        """Returns when the drain of the flows has passed: clients read metrics as soon as ``stop`` is answered."""
        while self._transmission is not None:
            now = await self._tally()
            if not any(self._sends(number, now) for number in numbers):
                return
            await asyncio.sleep(_LOOK_S / 2)

    async def _end_transmission(self) -> None:
        finishing = self._finishing
        if finishing is None:
            return
        with contextlib.suppress(EngineError):  # where it is gone, the last counts are kept
            await self._bed.generator.control(Action.STOP)
        self._looking.set()
        await finishing

    def _sends(self, number: int, now: _Snapshot) -> bool:
        """Whether a flow is sending, or frames of it may still arrive: it says stopped only after its drain."""
        tally = now.flows.get(number)
        if tally is None:
            return False
        if tally.state is not FlowState.STOPPED:
            self._stopped_at.pop(number, None)
            return True
        receivers = len(self._configuration.flows[number].receive)
        if not receivers or (tally.received or 0) >= receivers * tally.sent:
            return False
        return now.at_s - self._stopped_at.setdefault(number, now.at_s) < DRAIN_S

    async def _tally(self) -> _Snapshot:
        self._latest = tally = await self._bed.generator.tally()
        now = _Snapshot(time.monotonic(), {each.flow: each for each in tally.flows}, tally.ports)
        if not self._history or now.at_s - self._history[-1].at_s >= _LOOK_S / 2:
            self._history = [*self._history[1 - _KEPT :], now]
        return now

    def _before(self, now: _Snapshot) -> _Snapshot | None:
        """Returns the youngest tally that is old enough to take rates from, or the oldest."""
        old = [each for each in self._history if now.at_s - each.at_s >= _RATE_S]
        oldest = self._history[0] if self._history and self._history[0] is not now else None
        return old[-1] if old else oldest

    def _flow_metric(self, number: int, now: _Snapshot, before: _Snapshot | None) -> dict[str, Any]:
        tally = now.flows[number]
        sends = self._sends(number, now)
        state = FlowState.STARTED if sends and tally.state is FlowState.STOPPED else tally.state
        earlier = before.flows.get(number) if before is not None and sends else None
        elapsed_s = now.at_s - before.at_s if before is not None else 0.0
        return flow_metric(self._configuration.flows[number], tally, earlier, elapsed_s, state)

    def _flows_of(self, names: Iterable[str], path: str) -> list[int]:
        given = list(names)
        for index, name in enumerate(given):
            if name not in self._numbers:
                raise OtgError([f"{path}[{index}]: no flow of the configuration is called {name[:80]!r}"])
        return [self._numbers[name] for name in given] or list(self._numbers.values())


MakeBed = Callable[[Callable[[dict[str, Any]], None]], AbstractAsyncContextManager[Bed]]


def served_ports(bed: Bed) -> dict[str, ServedPort]:
    """Returns the tester's ports by their names in the bench file, which are the locations that clients give."""
    testbed = bed.testbed
    return {
        port.name: ServedPort(number, port.name, testbed.link_bits_per_s)
        for number, port in enumerate(testbed.tester_ports)
    }


@asynccontextmanager
async def session_on(make_bed: MakeBed, seed: int) -> AsyncIterator[Session]:
    """Makes the testbed and a session on it; both end together."""
    sessions: list[Session] = []

    def look(event: dict[str, Any]) -> None:
        for each in sessions:
            each.look(event)

    async with make_bed(look) as bed:
        session = Session(bed, served_ports(bed), seed)
        sessions.append(session)
        try:
            yield session
        finally:
            await session.end()
