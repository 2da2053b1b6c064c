"""The tester by our engine ``nicbench-packets``: makes each trial from the small commands of the protocol."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

from nicbench.core.errors import EngineError
from nicbench.core.frame_size import Size
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Way, forward_of, frames_of_ways, share_of_load
from nicbench.core.reading import LearntFlows
from nicbench.core.traffic import Traffic, stream_rates_frames_per_s
from nicbench.core.trial import Purpose, Reading, StreamReading, TrialRequest
from nicbench.engine.binaries import deploy_file
from nicbench.engine.client import Conversation, EngineClient
from nicbench.engine.pair import EnginePair
from nicbench.engine.reading import parse_reading, set_aside
from nicbench.hosts.base import Host
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_groups import (
    beside_streams,
    broadcast_streams,
    group_requests,
    last_s,
    with_broadcasts,
)
from nicbench.testbed.testers._engine_streams import (
    delayed,
    is_beside,
    learning_requests,
    pause_requests,
    phase_requests,
    requests_of_its_own,
    stream_requests,
    with_codepoint,
    with_own_loads,
    with_sent_classes,
)
from nicbench.testbed.testers.base import During, Tester, TesterFacts

# What our engine is configured with for a run, and what the plan says of it.


# What is said of DPDK alone: of the engine, of a port, and of the options.
_DPDK_ENGINE = frozenset({"dpdk", "drivers"})
_DPDK_PORT = frozenset({"transmit_descriptors", "receive_descriptors", "send_buffer_bytes", "lossless"})
_DPDK_OPTIONS = frozenset({"eal_arguments", "timestamps"})


@frozen
class Recording:
    """Files that trials write in addition to their readings, into ``folder`` on the engine's host."""

    folder: Path
    capture: dict[str, int] | None = None
    per_flow: str | None = None


@frozen
class PacketsOptions:
    """The parameters of the protocol's ``configure`` and ``start`` that are the same for a whole run."""

    run_key: int
    ports: tuple[dict[str, Any], ...]
    worker_cpu: int | None
    watch_cpus: tuple[int, ...]
    virtual_clock: bool
    huge_pages: bool
    memory_mib: int
    burst: int
    catch_up_s: float
    latency_from: str
    timestamps: str
    traffic: Traffic
    reordering_n: int = 3
    eal: tuple[str, ...] = ()
    recording: Recording | None = None
    workers: tuple[dict[str, Any], ...] = ()
    """The workers as in the protocol's `configure`; without any a single one on ``worker_cpu`` does everything."""
    generates: bool = False
    """Whether flows begin and end on their own; what ports receive may then be captured at any time."""
    fault: dict[str, float] | None = None
    """For tests only: a fault of the tester itself, e.g. a pause of its receiver (protocol: ``start``)."""


def facts_of(
    options: PacketsOptions, binary: str, hello: Mapping[str, Any], configured: Mapping[str, Any]
) -> TesterFacts:
    """What the engine's replies to ``hello`` and ``configure`` say, for the report and for the bounds of trials.

    Ports in the kernel have nothing of DPDK, which is not started.
    """
    ports = [_without_clock(_without_early_link(port)) for port in configured["ports"]]
    speeds = [port["link_bits_per_s"] for port in ports if port.get("link_bits_per_s")]
    engine = {key: value for key, value in hello.items() if key not in ("id", "ok")}
    told = {
        "engine": engine,
        "ports": list(ports),
        "clock": configured.get("clock"),
        "eal_arguments": configured.get("eal_arguments"),
        "command": [binary],
        "workers": list(options.workers),
        "burst": options.burst,
        "catch_up_s": options.catch_up_s,
        "latency_from": options.latency_from,
        "timestamps": options.timestamps,
    }
    if all(port["kind"] == "xdp" for port in options.ports):
        told["engine"] = {key: value for key, value in engine.items() if key not in _DPDK_ENGINE}
        told["ports"] = [{key: port[key] for key in port if key not in _DPDK_PORT} for port in ports]
        told = {key: value for key, value in told.items() if key not in _DPDK_OPTIONS}
    return TesterFacts(
        description=told,
        minimum_frame_bytes=max(port["min_frame_bytes"] for port in ports),
        maximum_frame_bytes=min(port["max_frame_bytes"] for port in ports),
        link_bits_per_s=min(speeds) if speeds else None,
        tag_bytes=min(port.get("tag_bytes", 0) for port in ports),
    )


def _without_early_link(port: dict[str, Any]) -> dict[str, Any]:
    """The port with an unknown link state where it is a memif that is down: it connects a moment after the reply."""
    return {**port, "link_up": None} if port.get("driver") == "net_memif" and not port.get("link_up") else port


def _without_clock(port: dict[str, Any]) -> dict[str, Any]:
    """The port without the key ``timestamps`` where its value is ``None``, as with stamps of the time-stamp counter."""
    return {name: value for name, value in port.items() if name != "timestamps" or value is not None}


# What a trial's request means for the engine's transmission, and what is added to what the engine says of it. Pure.


LEARNING_S: Final = 0.01
BURST_ROOM: Final = 1.25
"""The time that a burst may take, as a multiple of what its rate needs."""


def forward_ways(addressing: tuple[Addressing, ...]) -> tuple[Addressing, ...]:
    """The forward ways of the traffic: those whose reverse does not come before them."""
    forward = set(forward_of([(way.transmit, way.receive) for way in addressing]))
    return tuple(way for way in addressing if (way.transmit, way.receive) in forward)


def between_two_ports(addressing: tuple[Addressing, ...]) -> tuple[Addressing, ...]:
    """The first way and its reverse: the tester's own latency is measured over one cable."""
    ends = {addressing[0].transmit, addressing[0].receive}
    return tuple(replace(way, is_direct=True) for way in addressing if {way.transmit, way.receive} == ends)


def transmission_s(request: TrialRequest) -> float:
    """The longest time that the engine may send; bursts and phases end with their last frame and are not cut off."""
    if request.groups is not None:
        return last_s(request.groups, request) + LEARNING_S
    if request.pausing is not None:
        ends_s = max((train.ends_s for train in request.pausing.trains), default=0.0)
        return max(ends_s, request.pausing.load_begins_s + request.duration_s) + LEARNING_S
    if request.phases:
        return request.duration_s + LEARNING_S
    if request.frames is None or not request.load_frames_per_s:
        return request.duration_s
    return max(request.duration_s, BURST_ROOM * request.frames / request.load_frames_per_s + LEARNING_S)


def with_phases(reading: Reading, phases: Sequence[int]) -> Reading:
    """The reading with the number of its phase in each stream; unchanged without phases."""
    if not phases:
        return reading
    pairs = zip(reading.streams, phases, strict=True)
    return reading.replace(streams=tuple(stream.replace(phase=phase) for stream, phase in pairs))


# RFC 2544 section 23: "learning frames" teach bridges and caches both ends before the transmission.
LEARNING_FRAMES = 8
# The engine takes each number once. Those of trials and their learning frames count upwards from 1; further learning
# frames before a trial have the numbers from this on, which the engine knows as earlier ones (protocol: ``start``).
_FURTHER_LEARNING = 2**30
LEARNING_SENDINGS = 3
"""How often one attempt of learning is sent, at most, where the tester did not send all of its frames."""
# The time beyond its duration that a transmission may take before the engine counts as dead.
GRACE_S = 15.0
# Latency trials have histograms by groups of flows (protocol: ``start``).
FLOW_GROUPS = 64

Engine = EngineClient | EnginePair
"""One engine, or two that answer as one."""


class PacketsTester(Tester):
    """One engine process on one host (one process per network namespace)."""

    learning_frames: ClassVar[int] = LEARNING_FRAMES
    """How many frames teach each way; fewer would leave its least latency to chance where that matters."""
    learning_catch_up_s: ClassVar[float] = 0.001
    """How late a learning frame may be sent; later ones are not."""

    def __init__(self, host: Host, binary: str, options: PacketsOptions) -> None:
        self._host = host
        self._binary = binary
        self._options = options
        self._client: Engine | None = None
        self._conversation: Conversation | None = None
        self._learnt_for: int | None = None
        self._further_learning = 0

    @property
    def folder_elsewhere(self) -> str | None:
        writes = self._options.recording is not None or self._options.generates
        if not writes or self._host.shares_files:
            return None
        return f"/run/nicbench-files-{self._options.run_key:016x}"

    async def start(self) -> TesterFacts:
        client = self._client = await self._connect()
        hello = await client.greet()
        options = self._options
        configured = await client.request(
            "configure",
            run_key=f"{options.run_key:016x}",
            clock="virtual" if options.virtual_clock else "tsc",
            worker_cpu=options.worker_cpu,
            workers=list(options.workers),
            watch_cpus=list(options.watch_cpus),
            huge_pages=options.huge_pages,
            memory_mib=options.memory_mib,
            eal=list(options.eal),
            timestamps=options.timestamps,
            ports=list(options.ports),
        )
        return facts_of(options, self._binary, hello, configured)

    async def _connect(self) -> Engine:
        return await self._start_engine(self._host)

    async def _start_engine(self, host: Host) -> EngineClient:
        binary = await deploy_file(host, Path(self._binary))
        return EngineClient(await host.start([binary]), f"nicbench-packets on {host.name}")

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        if request.purpose is Purpose.CEILING:
            return frozenset()
        if request.purpose is Purpose.TESTER_LATENCY:
            addressing = between_two_ports(addressing)
        own_number = 2 * number - 1
        if self._learnt_for == number:
            own_number = self._further_number()
        self._learnt_for = number
        return await self._learn(own_number, request, addressing)

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        self._learnt_for = number
        counted = addressing if request.bidirectional else forward_ways(addressing)
        others = tuple(way for way in addressing if way not in counted)
        streams = learning_requests(self._options.traffic, counted, request.size, frames_per_flow, LEARNING_FRAMES)
        if not any("flows" in one for one in streams):  # frames of files, whose flows nobody has counted
            return ()
        duration_s = LEARNING_S + max(BURST_ROOM * one["frames"] / one["rate_frames_per_s"] for one in streams)
        few = [{**one, "frames": LEARNING_FRAMES} for one in self._few_frames(others, request.size)]
        for _ in range(LEARNING_SENDINGS):
            read = await self._send_learning(self._further_number(), request, [*streams, *few], duration_s)
            if not any(reading.counts.unsent_tester for reading in read[: len(streams)]):
                break
        unsent = [_unsent_flows(reading) for reading in read]
        return tuple(
            LearntFlows(
                stream=one["name"],
                transmit_port=one["transmit_port"],
                receive_port=one["receive_port"],
                flows=reading.flows.flows,
                # What a lossless port refused is no fault of the tester's: those flows do not pass.
                silent=reading.flows.silent + missing - by_tester,
                frames_per_flow=frames_per_flow,
                unsent=by_tester,
            )
            for one, reading, (missing, by_tester) in zip(streams, read, unsent, strict=False)
            if reading.flows is not None and "flows" in one
        )

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        client = self._require_client()
        if self._learnt_for is None:
            await self.learn(number, request, addressing)
        if request.purpose is Purpose.TESTER_LATENCY:
            addressing = between_two_ports(addressing)
        duration_s = transmission_s(request)
        streams, phases = self._trial_streams(addressing, request, duration_s)
        await client.request(
            "start",
            trial=2 * number,
            duration_s=duration_s,
            catch_up_s=self._options.catch_up_s,
            burst=self._options.burst,
            latency_from=self._options.latency_from,
            fault=self._options.fault,
            flow_groups=FLOW_GROUPS if request.purpose is Purpose.LATENCY else 1,
            reordering_n=self._options.reordering_n,
            traffic_classes=request.codepoint is not None,
            **self._files(number, request.purpose),
            streams=streams,
        )
        beside = asyncio.ensure_future(during()) if during is not None else None
        try:
            drained, settled = await self._drain_and_settle(number, request, duration_s)
            if beside is not None:
                await beside
            await self._fetch(drained)
        finally:
            if beside is not None:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)  # until what it did is taken back
        reading = parse_reading(drained, settled.get("late", ()))
        if request.codepoint is not None:
            reading = with_sent_classes(reading, streams)
        if request.pausing is not None:
            return set_aside(reading, [one["name"] for one in streams if is_beside(one["name"])])
        aside: frozenset[str] = frozenset()
        if request.groups:
            aside = beside_streams(streams)
        elif self._options.traffic.broadcasts is not None:
            aside = broadcast_streams(streams)
        return set_aside(reading, aside) if aside else with_phases(reading, phases)

    async def _drain_and_settle(
        self, number: int, request: TrialRequest, duration_s: float
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Waits for the end of the transmission and gives the replies to ``drain`` and ``settle``."""
        client = self._require_client()
        await client.wait_for("transmitted", within_s=duration_s + GRACE_S, trial=2 * number)
        drained = await client.request("drain", duration_s=request.drain_s, within_s=request.drain_s + GRACE_S)
        settled = await client.request("settle", duration_s=request.settle_s, within_s=request.settle_s + GRACE_S)
        return drained, settled

    def _trial_streams(
        self, addressing: tuple[Addressing, ...], request: TrialRequest, duration_s: float
    ) -> tuple[list[dict[str, Any]], list[int]]:
        """The streams of a trial, and the number of its phase for each where there are phases."""
        ways = addressing if request.bidirectional else forward_ways(addressing)

        def at(load_frames_per_s: float | None, lasting_s: float, frames: int | None) -> list[dict[str, Any]]:
            traffic = with_codepoint(self._options.traffic, request.codepoint)
            return self._streams(ways, request.size, self._rates(ways, load_frames_per_s), lasting_s, frames, traffic)

        if (own := requests_of_its_own(ways, request)) is not None:
            return own, []
        if request.groups is not None:
            return group_requests(addressing, request.size, request.groups, request), []
        if request.ways:
            return self._streams_of_ways(ways, request, duration_s), []
        if request.streams:
            return self._streams_of_own_loads(ways, request, duration_s), []
        if request.pausing is not None:
            load = at(request.load_frames_per_s, request.duration_s, request.frames)
            return [*delayed(load, request.pausing.load_begins_s), *pause_requests(ways[0], request.pausing)], []
        if not request.phases:
            load, share = at(request.load_frames_per_s, duration_s, request.frames), self._options.traffic.broadcasts
            return load if share is None else with_broadcasts(load, addressing, request.size, share), []
        # A phase ends with its frames, however long the transmission lasts.
        return phase_requests(request.phases, lambda load, frames: at(load, math.inf, frames))

    def _streams_of_own_loads(
        self, ways: tuple[Addressing, ...], request: TrialRequest, duration_s: float
    ) -> list[dict[str, Any]]:
        """The streams of a trial in which each has a load of its own; a way carries its share of the busiest port's."""
        traffic, rates = with_own_loads(self._options.traffic, request.streams)
        share = share_of_load([(way.transmit, way.receive) for way in ways])
        own = tuple(None if rate is None else share * rate for rate in rates)
        return [one for way in ways for one in stream_requests(traffic, way, request.size, own, duration_s)]

    def _streams_of_ways(
        self, ways: tuple[Addressing, ...], request: TrialRequest, duration_s: float
    ) -> list[dict[str, Any]]:
        """The streams of a trial in which each way has a load of its own, or none."""
        traffic, loads = self._options.traffic, {(load.transmit, load.receive): load for load in request.ways}
        return [
            one
            for way in ways
            if (load := loads.get((way.transmit, way.receive))) is not None
            for one in stream_requests(
                traffic,
                way,
                request.size,
                stream_rates_frames_per_s(traffic, load.load_frames_per_s),
                duration_s,
                load.frames,
            )
        ]

    def _files(self, number: int, purpose: Purpose) -> dict[str, Any]:
        """The files that this trial writes; trials of the tester itself write none."""
        recording = self._options.recording
        if recording is None or purpose in (Purpose.CEILING, Purpose.TESTER_LATENCY):
            return {}
        recording.folder.mkdir(parents=True, exist_ok=True)
        folder = self.folder_elsewhere or str(recording.folder)
        files = {}
        if recording.capture is not None:
            files["capture"] = {"path": f"{folder}/t{number:04d}.pcapng", **recording.capture}
        if recording.per_flow is not None:
            path = f"{folder}/t{number:04d}-flows.ndjson"
            files["flow_report"] = {"path": path, "histograms": recording.per_flow == "histograms"}
        return files

    async def _fetch(self, drained: Mapping[str, Any]) -> None:
        """Copies the files of a trial from another machine, and removes them there."""
        if self.folder_elsewhere is None or self._options.recording is None:
            return
        for file in ("capture", "flow_report"):
            path = str((drained.get(file) or {}).get("path") or "")
            if path:
                await self._host.get(path, self._options.recording.folder / PurePosixPath(path).name)
                await self._host.run(("rm", "-f", "--", path))

    def converse(self, on_event: Callable[[dict[str, Any]], None]) -> Conversation:
        process = self._require_client().hand_over()
        self._conversation = Conversation(process, f"nicbench-packets on {self._host.name}", on_event)
        return self._conversation

    async def close(self) -> None:
        if self._conversation is not None:
            await self._conversation.stop()
            self._conversation = None
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        """Sends a few uncounted frames on every way and its reverse, waits, and gives the ways they did not pass."""
        streams = self._few_frames(addressing, request.size)
        ways = [(stream["transmit_port"], stream["receive_port"]) for stream in streams]
        read = [one.counts for one in await self._send_learning(number, request, streams, LEARNING_S)]
        passed = {way for way, counts in zip(ways, read, strict=True) if counts.received or counts.corrupted}
        return frozenset(ways) - passed

    def _few_frames(self, ways: Sequence[Addressing], size: Size) -> list[dict[str, Any]]:
        rates = [self.learning_frames / LEARNING_S for _ in self._options.traffic.port_streams()]
        return self._streams(ways, size, rates, LEARNING_S)

    async def _send_learning(
        self, number: int, request: TrialRequest, streams: list[dict[str, Any]], duration_s: float
    ) -> tuple[StreamReading, ...]:
        """Sends streams that no trial counts, waits the settle time, and gives what came of each."""
        client = self._require_client()
        late_s = self.learning_catch_up_s
        await client.request("start", trial=number, duration_s=duration_s, catch_up_s=late_s, streams=streams)
        await client.wait_for("transmitted", within_s=duration_s + GRACE_S, trial=number)
        drained = await client.request("drain", duration_s=request.settle_s, within_s=request.settle_s + GRACE_S)
        return parse_reading(drained, [0] * len(streams)).streams

    def _further_number(self) -> int:
        self._further_learning += 1
        return _FURTHER_LEARNING + self._further_learning

    def _rates(self, loaded: Sequence[Addressing], load_frames_per_s: float | None) -> tuple[float, ...]:
        """The rates of the streams of each way, which carries its share of the busiest port's load."""
        share = share_of_load([(way.transmit, way.receive) for way in loaded])
        return tuple(share * rate for rate in stream_rates_frames_per_s(self._options.traffic, load_frames_per_s))

    def _streams(
        self,
        ways: Sequence[Addressing],
        size: Size,
        rates_frames_per_s: Sequence[float],
        duration_s: float,
        frames: int | None = None,
        traffic: Traffic | None = None,
    ) -> list[dict[str, Any]]:
        traffic = traffic or self._options.traffic
        parts: tuple[int | None, ...] = (None,) * len(ways)
        if frames is not None:
            parts = frames_of_ways([(way.transmit, way.receive) for way in ways], frames)
        return [
            one
            for way, part in zip(ways, parts, strict=True)
            for one in stream_requests(traffic, way, size, rates_frames_per_s, duration_s, part)
        ]

    def _require_client(self) -> Engine:
        if self._client is None:
            raise EngineError("the tester is not running", place=self._host.name)
        return self._client


def _unsent_flows(reading: StreamReading) -> tuple[int, int]:
    """How many flows of a stream had no frame at least, and how many of these because of the tester."""
    flows = reading.flows.flows if reading.flows is not None else 0
    missing = max(0, flows - reading.counts.sent)
    return missing, min(missing, reading.counts.unsent_tester)
