"""A session: its state, which clients change one at a time and read without waiting for a change.

It begins with the first configuration, on a testbed of its own, and ends with an empty configuration, after a time
without requests, or with the server. Its run folder has each configuration and each transmission.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import ConfigurationSet, Note
from nicbench.engine.generator import Action, FlowState
from nicbench.otg.configuration import Configuration, read_configuration, with_further
from nicbench.otg.counters import (
    flow_metrics,
    group_by_name,
    lag_metric,
    loss_duration_ms,
    port_metric,
    select_flow_columns,
    select_port_columns,
    sum_parts,
    tagged_metrics,
)
from nicbench.otg.devices import Gateway, Source
from nicbench.otg.flows import Flow, ServedPort
from nicbench.otg.hosting import Hosting
from nicbench.otg.links import Links
from nicbench.otg.model import NOT_IMPLEMENTED, OtgError
from nicbench.otg.routers import Routers
from nicbench.otg.transmission import LOOK_S, Capturing, Counting, Snapshot, Transmission
from nicbench.stages.served import Bed

DRAIN_S: Final = 0.5
"""How long frames have to arrive after the last of their flow was sent."""


class Session:
    """The configuration, the flows and the captures. Errors are OtgError, or those of the engine."""

    def __init__(self, bed: Bed, served: Mapping[str, ServedPort], seed: int) -> None:
        self._bed = bed
        self._served = served
        self._seed = seed
        self._config: Mapping[str, Any] = {}
        self._configuration = Configuration({}, (), {})
        self._numbers: Mapping[str, list[int]] = {}
        """The engine's flows of each flow: one for each port that sends."""
        self._configurations = 0
        self._transmissions = 0
        self._transmission: Transmission | None = None
        self._finishing: asyncio.Task[None] | None = None
        self._starts = 0
        """Odd while flows are being started: until that is done, those may not have begun."""
        self._is_closing = False
        """Whether the transmission is over, and being written down."""
        self._trouble: NicbenchError | None = None
        """Why the last transmission could not be finished; the next client that changes something receives it."""
        self._capturing = Capturing(bed)
        self.routers = Routers(bed)
        self._hosting = Hosting(bed.generator, self.routers)
        self._links = Links(bed)
        self._counting = Counting(bed.generator)
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
        """Whether a flow with an end is sending, or a change is in progress."""
        latest = self._counting.latest
        ends = latest is not None and self.is_transmitting and latest.columns.is_any_about_to_end()
        return ends or self._changing.locked()

    @property
    def is_transmitting(self) -> bool:
        """Whether a flow is sending, or frames may be in flight."""
        return self._transmission is not None

    def look(self, event: Mapping[str, Any]) -> None:
        """Handles an event of the engine: a flow has ended."""
        self._looking.set()

    # Changes, one at a time.

    async def set_config(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        """Replaces the configuration and returns warnings; flows that are sending are stopped, and captures ended."""
        async with self._changing:
            return await self._replace(config, keeps_hosts=False)

    async def change_config(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], path: str) -> Sequence[str]:
        """Replaces the configuration by what ``change`` makes of it, while no flow is sending, and returns warnings."""
        async with self._changing:
            await self._let_end()
            if self.is_transmitting:
                why = f"{path}: flows are not changed while any is sending: stop them"
                raise OtgError([why], code=NOT_IMPLEMENTED)
            return await self._replace(change(self._config), keeps_hosts=True)

    async def _replace(self, config: Mapping[str, Any], *, keeps_hosts: bool) -> tuple[str, ...]:
        gc.unfreeze()
        macs = self._configuration.macs if keeps_hosts else {}
        configuration = await asyncio.to_thread(read_configuration, config, self._served, self._seed, macs)
        if configuration.routers:
            await self.routers.require()
        await self._end_transmission()
        await self._capturing.stop_all()  # one that cannot be kept leaves the session as it is
        file = f"raw/configuration-{self._configurations + 1:04d}.json"
        await asyncio.to_thread(self._bed.folder.write_json, file, dict(config))
        if not keeps_hosts:
            await self._links.bring_up()
        # Before the flows, with which ports begin to count: hosts ask first of all for their gateways.
        await self._hosting.configure(
            configuration.devices, configuration.routers, configuration.ports, keeps=keeps_hosts
        )
        await self._hosting.settle()
        try:
            await self._load(configuration)
        except OtgError:
            await self._hosting.stop()
            raise
        self._config = config
        self._numbers = group_by_name(configuration.flows)
        self._stopped_at = {}
        self._configurations += 1
        await self._capturing.configure(configuration)
        event = ConfigurationSet(
            number=self._configurations, ports=len(configuration.ports), flows=len(configuration.flows), file=file
        )
        self._bed.bus.publish(event)
        gc.freeze()  # thousands of flows are half a million objects: metrics would wait while the collector looks
        return configuration.warnings

    async def _load(self, configuration: Configuration) -> None:
        """Replaces the flows of the engine; all counters begin anew."""
        try:
            await self._bed.generator.load([flow.program for flow in configuration.flows])
        except EngineError as error:
            if error.kind != "bad_request":
                raise
            raise OtgError([f"config.flows: {error.message}: {error.next_step}"]) from error
        self._configuration = configuration
        self._counting.forget()

    async def control_hosts(self, action: str) -> None:
        """Starts or stops all emulated hosts."""
        async with self._changing:
            await (self._hosting.start() if action == "start" else self._hosting.stop())

    async def control_routes(self, state: str, names: Sequence[str]) -> None:
        """Has ranges of routes announced or withdrawn (``advertise``, ``withdraw``); without names, all."""
        async with self._changing:
            await self.routers.set_routes(names, state)

    async def control_peers(self, state: str, names: Sequence[str]) -> None:
        """Has sessions of BGP go ``up`` or ``down``; without names, all."""
        async with self._changing:
            await self.routers.set_peers(names, state)

    async def control_flows(self, action: str, names: Iterable[str]) -> None:
        """Starts, stops, pauses or resumes the flows of these names; without names, all flows."""
        async with self._changing:
            self._tell_trouble()
            numbers = self._flows_of(names, "control_state.traffic.flow_transmit.flow_names")
            if action == "start":
                await self._start(numbers)
            elif self._transmission is not None:
                await self._bed.generator.control(Action(action), numbers)
                if action == "stop":
                    await self._wait_until_stopped(numbers)

    async def control_links(self, state: str, names: Sequence[str]) -> None:
        """Takes the links of these ports ``down`` or ``up``; without names, of all ports of the configuration."""
        async with self._changing:
            await self._links.control(state, self._configuration.ports, names)

    async def control_captures(self, action: str, names: Iterable[str]) -> None:
        """Starts or stops the captures of these ports; without names, all captures of the configuration."""
        async with self._changing:
            self._tell_trouble()
            await self._capturing.control(action, names)

    async def end(self) -> None:
        """Stops flows and captures, and writes the transmission to the journal."""
        async with self._changing:
            with contextlib.suppress(EngineError, HostError):  # the engine or its machine is gone
                await self._end_transmission()
                await self._capturing.stop_all()
                await self._links.bring_up()
                for sentence in await self._hosting.summary():
                    self._bed.bus.publish(Note(level="info", text=sentence))
            await self.routers.stop()

    # What waits for no change.

    async def flow_metrics(
        self, names: Sequence[str], columns: Sequence[str], tagged: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Returns metrics of the flows of these names, or of all whose metrics are enabled.

        ``tagged`` says which metrics by tag are wanted, as OTG's message does.
        """
        flows, now = await self._count()
        wanted = self._flows_of(names, "metrics_request.flow.flow_names")
        numbers = [number for number in wanted if flows[number].metrics]
        if names and len(numbers) < len(wanted):
            off = next(flows[number].name for number in wanted if not flows[number].metrics)
            raise OtgError([f"metrics_request.flow.flow_names: metrics of flow {off[:80]!r} are not enabled"])
        before = self._counting.before(now)
        elapsed_s = now.at_s - before.at_s if before is not None else 0.0
        states = [self._told_state(number, now) for number in numbers]
        metrics = flow_metrics(flows, numbers, now.flows, before.flows if before else None, elapsed_s, states)
        if self._configuration.tells_loss_duration:
            for number, metric in zip(numbers, metrics, strict=True):
                rate = flows[number].program["rate_frames_per_s"]
                metric["packet_loss_duration"] = {"value": loss_duration_ms(metric, rate)}
        if len(flows) > len(self._numbers):
            metrics = sum_parts(metrics)
        metrics = [select_flow_columns(metric, columns) for metric in metrics] if columns else metrics
        return await self._add_tagged(metrics, [number for number in numbers if flows[number].tags], tagged or {})

    async def _add_tagged(
        self, metrics: list[dict[str, Any]], numbers: Sequence[int], wanted: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Adds what was counted by the tags of these flows of the engine, if that is wanted."""
        if not numbers or not wanted.get("include", True):
            return metrics
        filters = {str(each.get("name")): each.get("values") or () for each in wanted.get("filters") or ()}
        named = {metric["name"]: metric for metric in metrics}
        flows = self._configuration.flows
        for tally in (await self._bed.generator.tally(numbers)).flows:
            flow = flows[tally.flow]
            found = tagged_metrics(flow, tally.tagged, filters, wanted.get("metric_names") or ())
            named[flow.name].setdefault("tagged_metrics", []).extend(found)
        return metrics

    async def port_metrics(self, names: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Returns metrics of the ports of these names, or of all."""
        flows, now = await self._count()
        ports = self._configuration.ports
        for index, name in enumerate(names):
            if name not in ports:
                path = f"metrics_request.port.port_names[{index}]"
                raise OtgError([f"{path}: no port of the configuration is called {name[:80]!r}"])
        before = self._counting.before(now)
        sending = {flow.transmit for number, flow in enumerate(flows) if self._sends(number, now)}
        return [
            select_port_columns(
                port_metric(
                    name,
                    port.location,
                    port.link_bits_per_s,
                    now.ports[port.number],
                    before.ports[port.number] if before else None,
                    now.at_s - before.at_s if before else 0.0,
                    self._counting.link_changed_ns(now.ports[port.number].name),
                    capturing=name in self._capturing.going,
                    transmitting=name in sending,
                ),
                columns,
            )
            for name, port in ports.items()
            if not names or name in names
        ]

    async def lag_metrics(self, names: Sequence[str], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Returns metrics of the groups of ports of these names, or of all: sums over their ports."""
        lags = self._configuration.lags
        for index, name in enumerate(names):
            if name not in lags:
                path = f"metrics_request.lag.lag_names[{index}]"
                raise OtgError([f"{path}: no lag of the configuration is called {name[:80]!r}"])
        ports = {metric["name"]: metric for metric in await self.port_metrics((), ())}
        wanted = {
            name: [ports[port] for port in members] for name, members in lags.items() if not names or name in names
        }
        return [select_port_columns(lag_metric(name, members), columns) for name, members in wanted.items()]

    async def neighbours(self, version: int, names: Sequence[str], path: str) -> list[dict[str, Any]]:
        """Returns the neighbours that emulated hosts know, as OTG's states."""
        return await self._hosting.states(version, names, path)

    async def ping(self, version: int, requests: Sequence[Mapping[str, Any]], path: str) -> list[dict[str, Any]]:
        """Has emulated hosts ping, and returns OTG's result of each request."""
        async with self._changing:
            return await self._hosting.ping(version, requests, path)

    async def hosts(self) -> dict[str, Any]:
        """Returns what emulated hosts know and did."""
        return await self._hosting.told()

    async def capture(self, name: str) -> Path:
        """Returns the file of a port's capture; one that goes on is ended by that. OtgError without one."""
        if name in self._capturing.going:
            await self.control_captures("stop", [name])
        return self._capturing.file(name)

    async def tally(self, flows: Sequence[int] | None = None) -> dict[str, Any]:
        """Returns all that the engine counted of these flows (all), with latency distributions, and of each port."""
        configured = self._configuration.flows
        told = await self._bed.generator.tally(flows, histograms=True)
        counted = [
            {"name": configured[each.flow].name, **each.model_dump(mode="json")}
            for each in told.flows
            if each.flow < len(configured)
        ]
        return {"flows": counted, "ports": [port.model_dump(mode="json") for port in told.ports]}

    # Transmissions.

    async def _start(self, numbers: list[int]) -> None:
        if not numbers:
            raise OtgError(["control_state.traffic: the configuration has no flow"])
        await self._let_end()
        self._tell_trouble()
        await self._resolve(numbers)
        self._starts += 1  # from here on the transmission that goes on, if any, is not finished
        try:
            if self._is_closing and self._finishing is not None:
                await self._finishing
            if self._transmission is None:
                number = self._transmissions + 1
                self._transmission = await Transmission.begin(number, self._bed, self._configuration)
                self._transmissions = number
                self._counting.forget()
                self._finishing = asyncio.ensure_future(self._follow(self._transmission))
            await self._stop_paused(numbers)
            await self._transmission.note_start(numbers)
            for number in numbers:
                self._stopped_at.pop(number, None)
            await self._bed.generator.control(Action.START, numbers)
            self._counting.latest = None  # it has what these flows had counted before
        finally:
            self._starts += 1
            self._looking.set()

    async def _resolve(self, numbers: Iterable[int]) -> None:
        """Waits until the addresses of devices that send these flows are known to be theirs, and gives the frames the
        MAC addresses of their gateways, as they are now.
        """
        before = self._configuration
        sources = frozenset[Source]().union(*(before.sources.get(number, ()) for number in numbers))
        if not sources:
            return
        needs = frozenset[Gateway]().union(*(before.needs.get(number, ()) for number in numbers))
        macs = await self._hosting.resolve(needs, sources)
        if all(macs[need] == before.macs.get(need) for need in needs):
            return
        if self.is_transmitting:
            why = (
                "control_state.traffic: a gateway has another MAC address than before: stop the flows that are sending"
            )
            raise OtgError([why], code=NOT_IMPLEMENTED)
        await self._load(await asyncio.to_thread(read_configuration, self._config, self._served, self._seed, macs))

    async def _let_end(self) -> None:
        """Waits until a transmission whose flows have all stopped is written down: nothing more belongs to it."""
        transmission, finishing = self._transmission, self._finishing
        if transmission is None or finishing is None:
            return
        now = await self._counting.count()
        if not any(self._sends(number, now) for number in transmission.started):
            self._looking.set()
            await finishing

    async def _stop_paused(self, numbers: list[int]) -> None:
        """A paused flow that is started begins anew, like a stopped one."""
        now = await self._counting.count()
        paused = [number for number in numbers if now.flows.state[number] is FlowState.PAUSED]
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
                    await asyncio.wait_for(self._looking.wait(), LOOK_S if len(self._numbers) < 256 else 5 * LOOK_S)
                self._looking.clear()
                starts = self._starts
                now = await self._counting.count()
                if (
                    starts == self._starts
                    and starts % 2 == 0
                    and not any(self._sends(number, now) for number in transmission.started)
                ):
                    break
            self._is_closing = True
            await transmission.finish(DRAIN_S)
            await self._tell_hosts(transmission.number)
        except NicbenchError as error:
            self._trouble = error
            with contextlib.suppress(NicbenchError):  # a full disk, for instance: what came first is told
                latest = self._counting.latest
                await transmission.abandon(latest.whole() if latest is not None else None, error)
        finally:
            self._transmission, self._finishing, self._is_closing = None, None, False

    async def _tell_hosts(self, transmission: int) -> None:
        """Keeps what emulated hosts knew and did until now, and notes who else has their addresses."""
        if not self._hosting.is_started:
            return
        told = await self._hosting.told()
        await asyncio.to_thread(self._bed.folder.write_json, f"raw/hosts-{transmission:04d}.json", told)
        for each in told["duplicates"]:
            text = f"{each['address']} of {each['ethernet']} is claimed by {each['mac']} too, {each['claims']} times"
            text += ", and was first: the device does not use it" if each["is_given_up"] else ""
            self._bed.bus.publish(Note(level="warning", text=text))

    async def _wait_until_stopped(self, numbers: list[int]) -> None:
        """Returns when the drain of the flows has passed: clients read metrics as soon as ``stop`` is answered."""
        while self._transmission is not None:
            now = await self._counting.count()
            if not any(self._sends(number, now) for number in numbers):
                return
            await asyncio.sleep(LOOK_S / 2)

    async def _end_transmission(self) -> None:
        finishing = self._finishing
        if finishing is None:
            return
        with contextlib.suppress(EngineError):  # where it is gone, the last counts are kept
            await self._bed.generator.control(Action.STOP)
        self._looking.set()
        await finishing

    def _sends(self, number: int, now: Snapshot) -> bool:
        """Whether a flow is sending, or frames of it may still arrive: it says stopped only after its drain."""
        if now.flows.state[number] is not FlowState.STOPPED:
            self._stopped_at.pop(number, None)
            return True
        receivers = len(self._configuration.flows[number].receive)
        if not receivers or (now.flows.received[number] or 0) >= receivers * now.flows.sent[number]:
            return False
        return now.at_s - self._stopped_at.setdefault(number, now.at_s) < DRAIN_S

    async def _count(self) -> tuple[Sequence[Flow], Snapshot]:
        """Counts, and returns the flows that are configured then: they may be replaced meanwhile."""
        while True:
            flows = self._configuration.flows
            now = await self._counting.count()
            if flows is self._configuration.flows and len(now.flows.flow) == len(flows):
                return flows, now

    def _told_state(self, number: int, now: Snapshot) -> FlowState:
        state = now.flows.state[number]
        return FlowState.STARTED if state is FlowState.STOPPED and self._sends(number, now) else state

    def _flows_of(self, names: Iterable[str], path: str) -> list[int]:
        given = list(names)
        for index, name in enumerate(given):
            if name not in self._numbers:
                raise OtgError([f"{path}[{index}]: no flow of the configuration is called {name[:80]!r}"])
        return [number for name in given or self._numbers for number in self._numbers[name]]


MakeBed = Callable[[Callable[[dict[str, Any]], None]], AbstractAsyncContextManager[Bed]]


def served_ports(bed: Bed, further: Mapping[str, str]) -> dict[str, ServedPort]:
    """Returns the tester's ports by the locations that clients give: their names in the bench file, and others."""
    testbed = bed.testbed
    ports = {
        port.name: ServedPort(number, port.name, testbed.link_bits_per_s, bed.largest_frame_bytes, bed.tag_bytes)
        for number, port in enumerate(testbed.tester_ports)
    }
    return with_further(ports, further)


@asynccontextmanager
async def session_on(make_bed: MakeBed, seed: int, locations: Mapping[str, str]) -> AsyncIterator[Session]:
    """Makes the testbed and a session on it; both end together. ``locations`` are ports by further locations."""
    sessions: list[Session] = []

    def look(event: dict[str, Any]) -> None:
        for each in sessions:
            each.look(event)

    async with make_bed(look) as bed:
        session = Session(bed, served_ports(bed, locations), seed)
        sessions.append(session)
        try:
            yield session
        finally:
            await session.end()
