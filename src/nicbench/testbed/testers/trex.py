"""Cisco TRex (`trex`): a stateless TRex server sends and counts frames, controlled by the user's Python client.

The client is not a package that pip can install, so it is loaded from ``client``, the folder of a TRex installation, in
a process of its own. TRex counts every frame by packet group (``STLFlowStats``), and stamps only frames of latency
streams (``STLFlowLatencyStats``), a sample that is sent in trials for latency. It does not compare payloads.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import EngineError, HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.frozen import frozen
from nicbench.core.headers import WrittenMac
from nicbench.core.pattern import Way, forward_of, frames_of_ways, share_of_load
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.traffic import Ability, Frames, Traffic
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.engine.trex import TrexClient, TrexError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.testbed.duts.base import Addressing, Refusal
from nicbench.testbed.labs.base import TesterPort
from nicbench.testbed.testers._trex_traffic import (
    SendingTime,
    TrexStatistics,
    flow_program,
    reading_of,
    refuse_flows,
    sending_time,
    silent_ways,
    udp_frame,
    worst,
)
from nicbench.testbed.testers._trex_traffic import Way as CountedWay
from nicbench.testbed.testers.base import During, Setting, Tester, TesterFacts, TesterKind
from nicbench.tuning.undo.adapters import FreeTrexPorts
from nicbench.tuning.undo.base import Undo

# A TRex server and its ports, by a client process: connected, acquired, checked, and released as they were.


_SMALLEST_FRAME_BYTES, _LARGEST_FRAME_BYTES = 64, 9216
_GIVE_BACK_S: Final = 20.0


class ServerOptions(Protocol):
    """The client and its interpreter, the address of the server, and whether ports may be taken from others."""

    @property
    def client(self) -> str: ...
    @property
    def python(self) -> str | None: ...
    @property
    def server(self) -> str: ...
    @property
    def sync_port(self) -> int: ...
    @property
    def async_port(self) -> int: ...
    @property
    def force(self) -> bool: ...


class TrexServer:
    """The server of a run: ``names`` of the testbed by TRex's numbers, ``macs`` the addresses of the ports' frames.

    ``owner`` is the name by which it holds its ports. Between ``connect`` and ``give_back`` it may be asked.
    """

    def __init__(self, options: ServerOptions, names: Mapping[int, str], macs: tuple[str, ...], owner: str) -> None:
        self._options = options
        self._names = names
        self._macs = macs
        self._owner = owner
        self._client: TrexClient | None = None
        self._version: Mapping[str, Any] = {}
        self._infos: Sequence[Mapping[str, Any]] = ()
        self._promiscuous: list[int] = []
        self.numbers: Final = list(names)
        self.place: Final = f"TRex at {options.server}:{options.sync_port}"

    async def connect(self) -> FreeTrexPorts:
        """Starts the client, connects and looks at the ports; gives what undoes that they are taken."""
        options = self._options
        python = options.python or sys.executable
        server: dict[str, Any] = {
            "server": options.server,
            "sync_port": options.sync_port,
            "async_port": options.async_port,
        }
        try:
            self._client = await TrexClient.start(LocalHost(), python, options.client, self.place)
            self._version = await self._client.ask("connect", **server, owner=self._owner)
            self._require_ports(self._version["ports"])
            self._infos = (await self._client.ask("look", ports=self.numbers))["ports"]
        except TrexError as error:
            raise self._not_ready(error) from error
        self._promiscuous = [n for n, info in zip(self.numbers, self._infos, strict=True) if info["prom"] == "off"]
        self._require_usable()
        return FreeTrexPorts(
            **server,
            client=options.client,
            python=python,
            owner=self._owner,
            ports=tuple(self.numbers),
            promiscuous=tuple(self._promiscuous),
        )

    async def take(self) -> TesterFacts:
        """Acquires the ports, by default only free ones, and has them receive whatever comes."""
        assert self._client is not None  # noqa: S101 - connect() made it
        try:
            await self._client.ask("take", ports=self.numbers, promiscuous=self._promiscuous, force=self._options.force)
        except TrexError as error:
            raise self._not_ready(error) from error
        speeds = [float(info["speed"] or 0) * 1e9 for info in self._infos]
        return TesterFacts(
            description={
                "engine": {"engine": "TRex", "version": self._version["version"], "mode": self._version["mode"]},
                "server": f"{self._options.server}:{self._options.sync_port}",
                "client_python": self._client.python,
                "ports": [
                    {
                        "name": self._names[number],
                        "number": number,
                        "driver": info["driver"],
                        "description": info["description"],
                        "link_bits_per_s": speed or None,
                        "mac": mac,
                        "own_mac": info["src_mac"],
                    }
                    for number, info, speed, mac in zip(self.numbers, self._infos, speeds, self._macs, strict=True)
                ],
            },
            minimum_frame_bytes=_SMALLEST_FRAME_BYTES,
            maximum_frame_bytes=_LARGEST_FRAME_BYTES,
            link_bits_per_s=min(speeds) if all(speeds) else None,
        )

    async def ask(
        self,
        command: str,
        within_s: float,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """The reply to a command about the ports; EngineError where TRex refused, died, or somebody took a port."""
        if self._client is None:
            raise EngineError("the tester is not running", place=self.place)
        try:
            reply = await self._client.ask(command, within_s=within_s, on_event=on_event, ports=self.numbers, **fields)
        except TrexError as error:
            self._refuse_takers(error.details.get("takers") or {})
            step = "see the output of the server, and start it again"
            raise EngineError(f"TRex failed: {error.message}", place=self.place, next_step=step) from error
        self._refuse_takers(reply.get("takers") or {})
        return reply

    async def give_back(self) -> None:
        """Stops and releases the ports and ends the client; never raises, also where the server is gone."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(HostError):
            await client.ask("give_back", within_s=_GIVE_BACK_S, ports=self.numbers, promiscuous=self._promiscuous)
        await client.close()

    def _refuse_takers(self, takers: Mapping[Any, str]) -> None:
        """EngineError where somebody took ports while they were in use."""
        if not takers:
            return
        ports, who = ", ".join(map(str, takers)), " and ".join(sorted(set(takers.values())))
        raise EngineError(
            f"{who} took port {ports} by force while it was in use: the trial is lost",
            kind="taken",
            place=self.place,
            next_step=f"have {who} release it, then `nicbench resume`; what was measured is kept",
        )

    def _require_ports(self, there: Sequence[int]) -> None:
        missing = [str(port) for port in self.numbers if port not in there]
        if missing:
            raise NotReadyError(
                f"the server has no port {', '.join(missing)}",
                place=self.place,
                next_step=f"its ports are {', '.join(map(str, there))}: name two of them under `ports`",
            )

    def _require_usable(self) -> None:
        """NotReadyError where a link is down, or a port would not receive the frames that are sent to it."""
        for number, info, mac in zip(self.numbers, self._infos, self._macs, strict=True):
            if info["link"] == "DOWN":
                raise NotReadyError(
                    f"the link of port {number} is down",
                    place=self.place,
                    next_step="check the cable and the DUT's port; see `portattr` in TRex's console for the links",
                )
            own = str(info["src_mac"] or "").lower()
            if info["prom_supported"] == "no" and own != mac:
                raise NotReadyError(
                    f"port {number} cannot be promiscuous, and frames to {mac} would not reach it",
                    place=self.place,
                    next_step=f"give its own address: `macs: [.., {own or 'MAC'}, ..]`, in the order of `ports`",
                )

    def _not_ready(self, error: TrexError) -> NicbenchError:
        """What keeps the ports from being taken, with what to do about it."""
        message, place, step = error.message, self.place, "see `portattr` in TRex's console for the ports"
        match error.kind:
            case "absent":
                place, step = (
                    "tester, client",
                    "name the folder of an unpacked TRex release, or of a clone of trex-core",
                )
            case "load":
                place = "tester, client"
                step = (
                    "name in `python` an interpreter that the release supports (3.06: up to Python 3.11, 3.08: up to "
                    "3.12), and leave `external_libs` beside its client"
                )
            case "unreachable":
                message = f"there is no answer from a TRex server: {message}"
                step = "start it on that machine: `./t-rex-64 -i --hdrh`, or correct `server` and `sync_port`"
            case "mismatch":
                theirs = error.details.get("server")
                message = f"client and server are of different releases: {message}"
                step = f"name in `client` the folder of the server's own release{f', {theirs}' if theirs else ''}"
            case "events":
                message = f"no events come from its port {self._options.async_port}: {message}"
                step = "correct `async_port` (the server prints it at its start), and let firewalls pass it"
            case "busy":
                message = f"its ports cannot be acquired: {message}"
                step = "release them (`release` in TRex's console), or write `force: true` to take them"
            case _:
                message = f"its ports cannot be used: {message}"
        return NotReadyError(message, place=place, next_step=step)


# RFC 2544 section 23: learning frames before the transmission.
LEARNING_FRAMES: Final = 8
LEARNING_FRAMES_PER_S: Final = 1000.0
_FRAMES_IN_DOUBT: Final = 400
"""More frames than a DUT sends by itself meanwhile, also if it asks for each neighbour that it does not know."""
GRACE_S: Final = 15.0
# A transmission that goes on for longer than this beyond its time is stopped.
ALLOWANCE_S: Final = 0.1
ALLOWANCE_SHARE: Final = 0.01
_SHARE_OF_SAMPLE: Final = 0.1
_FIRST_LATENCY_GROUP: Final = 513
_FIRST_LEARNING_GROUP: Final = 1025
_SAMPLED: Final = frozenset({Purpose.LATENCY, Purpose.SOAK})
_PLAIN: Final = "nicbench has it send plain Ethernet, IPv4 and UDP"


class TrexOptions(Frozen):
    """``tester: {kind: trex, client: /opt/trex/v3.06, server: 192.0.2.10, ports: [0, 1]}``.

    ``python`` is the interpreter that loads the client, for its releases do not support each: nicbench's own, if none.
    ``ports`` are TRex's port numbers in nicbench's order (pairs: the first and the second, and so on), ``macs`` the
    source addresses of their frames, one for each. ``latency_rate`` is the rate of stamped frames in each way's load.
    ``force`` takes ports that another user holds.
    """

    client: str = Field(min_length=1)
    """The folder of an unpacked TRex release, or of a clone of trex-core, on this machine."""
    python: str | None = Field(default=None, min_length=1)
    """The Python interpreter that loads the client; without it nicbench's own. Releases up to 3.06 need Python 3.11 or
    older, 3.08 needs 3.12 or older.
    """
    server: str = Field(default="127.0.0.1", min_length=1)
    """Where `./t-rex-64 -i` runs."""
    sync_port: int = Field(default=4501, ge=1, le=65_535)
    """TCP port of requests and replies."""
    async_port: int = Field(default=4500, ge=1, le=65_535)
    """TCP port of events. An event must arrive when the ports are taken; without events the end of no transmission
    would be noticed.
    """
    ports: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(default=(0, 1), min_length=1, max_length=64)
    """TRex's numbers of its ports, in the order in which `pattern` takes them."""
    macs: tuple[WrittenMac, ...] = ()
    """MAC addresses of the frames, one for each port; without it `02:00:00:00:54:01` and so on. The ports are
    promiscuous meanwhile.
    """
    latency_rate: Annotated[FramesPerSecond, Field(ge=1.0, le=1e6)] = 1000.0
    """Frames with a time stamp, of each way's load and at most 10 % of it; only in trials that measure latency."""
    force: bool = False
    """Take ports that another user of the server holds."""

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        if len(set(self.ports)) < len(self.ports):
            raise ValueError("`ports` has a number twice: give each port once")
        if self.macs and len(self.macs) != len(self.ports):
            raise ValueError(f"there are {len(self.ports)} `ports` and {len(self.macs)} `macs`: give one for each port")
        return self


class Trex(TesterKind):
    """A TRex server with its own ports, which are connected to a DUT that is set up already."""

    kind = "trex"
    Options = TrexOptions
    options: TrexOptions
    cannot = MappingProxyType(
        {
            Ability.BURSTS: "its scheduler keeps the rate in the mean and sends frames in groups, some 10 µs apart",
            Ability.PHASES: "it is given one load for a transmission",
            Ability.ARRIVALS: "it does not keep when frames arrive",
            Ability.MIX: "it is given one frame size for a stream",
            Ability.STREAMS: "it is given one stream for each way",
            Ability.STREAM_LOADS: "it is given one stream for each way",
            Ability.WAY_LOADS: "it is given one load for all ways",
            Ability.MAC_ADDRESSES: _PLAIN,
            Ability.COPIES: _PLAIN,
            Ability.HEADERS: _PLAIN,
            Ability.FILE: _PLAIN,
            Ability.FIELDS: _PLAIN,
            Ability.TRAFFIC_CLASSES: _PLAIN,
            Ability.IPV6: _PLAIN,
            Ability.STREAM_BURSTS: "it is given one steady stream for each way",
            Ability.LEARNING: f"it sends {LEARNING_FRAMES} on each way",
            Ability.NEIGHBOURS: "a TRex port that sends a load answers no requests",
        }
    )

    def own_ports(self) -> tuple[TesterPort, ...]:
        return tuple(
            TesterPort(name=f"trex{number}", engine={}, mac=self._mac(index))
            for index, number in enumerate(self.options.ports)
        )

    def refuse_flows(self, traffic: Traffic, ways: Sequence[Addressing]) -> Refusal | None:
        return refuse_flows(traffic, ways) if traffic.ip == 4 else None

    def statements(self) -> tuple[str, ...]:
        return (
            (
                "The tester is TRex. It counts every frame and compares no payload: a frame that was altered counts as "
                "returned where its headers are whole. Duplicated, reordered and corrupted frames of the load are not "
                "measured by this tester."
            ),
            (
                "TRex stamps only frames of latency streams, in software on one core: latencies are of this sample, "
                f"{self.options.latency_rate:g} frames/s of each way's load, at most {100 * _SHARE_OF_SAMPLE:g} %."
            ),
        )

    def make(self, setting: Setting) -> Tester:
        names = {
            number: port.name for number, port in zip(self.options.ports, setting.testbed.tester_ports, strict=True)
        }
        if any(setting.neighbours):
            raise UsageError(
                "a TRex port does not answer ARP", place=setting.place, next_step="give the DUT static neighbours"
            )
        macs = tuple(self._mac(index) for index in range(len(names)))
        owner = f"nicbench@{socket.gethostname()}/{setting.run_id}"
        return _TrexTester(TrexServer(self.options, names, macs, owner), names, setting.traffic, self.options)

    def _mac(self, index: int) -> str:
        """The MAC address of a port; where none is given a locally administered one (IEEE 802c), always the same."""
        return self.options.macs[index] if self.options.macs else f"02:00:00:00:54:{index + 1:02x}"


@frozen
class _TrexStream:
    """A stream for TRex: frames of one packet group at a rate, ``frames`` of them or until the time is over.

    The names are those of ``trex_process.Stream``; ``packet`` is hexadecimal.
    """

    transmit: int
    packet: str
    program: tuple[tuple[int, int, int], ...]
    frames_per_s: float
    frames: int | None
    group: int
    stamped: bool = False


class _TrexTester(Tester):
    """Makes trials by TRex's client."""

    def __init__(self, server: TrexServer, names: dict[int, str], traffic: Frames, options: TrexOptions) -> None:
        self._server = server
        self._names = names
        self._traffic = traffic
        self._options = options
        self._ports = server.numbers

    async def prepare(self) -> Undo:
        return await self._server.connect()

    async def start(self) -> TesterFacts:
        return await self._server.take()

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        silent, unclear = await self._learn(request, addressing, LEARNING_FRAMES)
        if unclear:
            # Groups are not counted at a port, which the trial says, or the DUT sends frames of its own. Of one flow,
            # for it may ask for the neighbour of each.
            one_flow = self._traffic.replace(flows=1)
            silent, unclear = await self._learn(request, addressing, _FRAMES_IN_DOUBT, one_flow)
        return silent - unclear

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        forward = set(forward_of([(way.transmit, way.receive) for way in addressing]))
        loaded = tuple(way for way in addressing if request.bidirectional or (way.transmit, way.receive) in forward)
        planned, ways = self._plan_streams(loaded, request)
        beside = []

        def has_begun(_: dict[str, Any]) -> None:
            if during is not None:
                beside.append(asyncio.ensure_future(during()))

        try:
            told = await self._server.ask(
                "trial",
                within_s=request.duration_s + request.drain_s + request.settle_s + 2 * GRACE_S,
                on_event=has_begun,
                streams=[asdict(stream) for stream in planned],
                duration_s=request.duration_s,
                allowance_s=max(ALLOWANCE_S, ALLOWANCE_SHARE * request.duration_s),
                drain_s=request.drain_s,
                settle_s=request.settle_s,
            )
            await asyncio.gather(*beside)
        finally:
            for each in beside:
                each.cancel()
            await asyncio.gather(*beside, return_exceptions=True)  # until what they did is taken back
        time = _time_of(planned, request.duration_s, told["sent"])
        if told["stopped"] and request.frames is None:
            # The frames that should have been sent in the time that the transmission took until it was stopped.
            stretch = max(1.0, time.taken_ns / (1e9 * request.duration_s))
            ways = [replace(way, intended=round(way.intended * stretch)) for way in ways]
        statistics = TrexStatistics(
            ports=told["statistics"],
            groups=told["groups"],
            later=told["later"],
            time=time,
            cpu_share=max(told["cpu_shares"], default=None),
            links_changed=frozenset(told["links_changed"]),
        )
        try:
            return reading_of(ways, statistics, self._names)
        except ValueError as error:
            step = "start the server with --software, or use another card"
            raise EngineError(str(error), kind="refused", place=self._server.place, next_step=step) from error

    async def close(self) -> None:
        await self._server.give_back()

    async def _learn(
        self, request: TrialRequest, addressing: Sequence[Addressing], frames: int, traffic: Frames | None = None
    ) -> tuple[frozenset[Way], frozenset[Way]]:
        """Sends frames on every way and its reverse; gives the silent ways, and those of which that is not clear."""
        streams, ways = [], {}
        for group, way in enumerate(addressing, _FIRST_LEARNING_GROUP):
            streams.append(self._stream(way, request, LEARNING_FRAMES_PER_S, frames, group, traffic=traffic))
            ways[self._way(way, frames, group)] = (way.transmit, way.receive)
        told = await self._server.ask(
            "learn",
            within_s=request.settle_s + 2 * GRACE_S,
            streams=[asdict(stream) for stream in streams],
            send_within_s=GRACE_S,
            settle_s=request.settle_s,
        )
        silent, unclear = silent_ways(list(ways), told["statistics"], told["groups"])
        return frozenset(map(ways.__getitem__, silent)), frozenset(map(ways.__getitem__, unclear))

    def _way(self, way: Addressing, intended: int, group: int, latency_group: int | None = None) -> CountedWay:
        transmit, receive = self._ports[way.transmit], self._ports[way.receive]
        return CountedWay(f"{way.transmit}->{way.receive}", transmit, receive, intended, group, latency_group)

    def _plan_streams(
        self, loaded: Sequence[Addressing], request: TrialRequest
    ) -> tuple[list[_TrexStream], list[CountedWay]]:
        """The streams of a trial: a packet group for each way, and one for its sample where latency is measured."""
        ends = [(way.transmit, way.receive) for way in loaded]
        rate = share_of_load(ends) * (request.load_frames_per_s or 0.0)
        if rate <= 0.0:
            raise EngineError("TRex needs a load in frames per second", kind="refused", place=self._server.place)
        parts: Sequence[int | None] = (None,) * len(loaded)
        if request.frames is not None:
            parts = frames_of_ways(ends, request.frames)
        sampled = min(self._options.latency_rate, _SHARE_OF_SAMPLE * rate) if request.purpose in _SAMPLED else 0.0
        planned, ways = [], []
        for index, (way, part) in enumerate(zip(loaded, parts, strict=True)):
            if part == 0:
                continue  # there are fewer frames than ways, and TRex takes a burst of 0 frames for an endless one
            in_sample = None if part is None else int(part * sampled / rate)
            latency_group = _FIRST_LATENCY_GROUP + index if sampled and in_sample != 0 else None
            rest = None if part is None else part - (in_sample or 0)
            own = [self._stream(way, request, rate - (sampled if latency_group else 0.0), rest, 1 + index)]
            if latency_group is not None:
                own.append(self._stream(way, request, sampled, in_sample, latency_group, stamped=True))
            # Each stream begins and ends with a whole frame.
            intended = sum(int(one.frames_per_s * request.duration_s) for one in own) if part is None else part
            ways.append(self._way(way, intended, 1 + index, latency_group))
            planned += own
        return planned, ways

    def _stream(
        self,
        way: Addressing,
        request: TrialRequest,
        frames_per_s: float,
        frames: int | None,
        group: int,
        *,
        stamped: bool = False,
        traffic: Frames | None = None,
    ) -> _TrexStream:
        packet = udp_frame(self._traffic, way, int(request.frame_bytes))
        program = flow_program(traffic or self._traffic, way)
        return _TrexStream(self._ports[way.transmit], packet.hex(), program, frames_per_s, frames, group, stamped)


def _time_of(planned: Sequence[_TrexStream], duration_s: float, sent: dict[int, Any]) -> SendingTime:
    """For how long the ports sent: that of the one which missed its time most, as exactly as all are known."""
    times = []
    for port in {stream.transmit for stream in planned}:
        own = [stream for stream in planned if stream.transmit == port]
        rate, frames = sum(stream.frames_per_s for stream in own), [stream.frames for stream in own]
        asked_s = duration_s if None in frames else sum(frame or 0 for frame in frames) / rate
        times.append(sending_time(sent[port], rate, asked_s))
    return worst(times)
