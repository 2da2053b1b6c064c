"""Cisco TRex (`trex`): a stateless TRex server sends and counts frames, controlled by the user's Python client.

The client is not a package that pip can install, so it is loaded from ``client``, the folder of a TRex installation.
TRex counts every frame by packet group (``STLFlowStats``), and stamps only frames of latency streams
(``STLFlowLatencyStats``), a sample that is sent in trials for latency. It does not compare payloads.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import Field, StringConstraints, model_validator

from nicbench.core.base import Frozen
from nicbench.core.errors import EngineError, UsageError
from nicbench.core.pattern import forward_of, frames_of_ways, share_of_load
from nicbench.core.quantity import FramesPerSecond
from nicbench.core.traffic import Ability, Frames
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import TesterPort
from nicbench.testbed.testers._trex_server import TrexPorts, load_api, words_of
from nicbench.testbed.testers._trex_traffic import (
    IP_OFFSET,
    TrexStatistics,
    UnknownCountError,
    Way,
    flow_program,
    reading_of,
    udp_frame,
)
from nicbench.testbed.testers.base import During, Setting, Tester, TesterFacts, TesterKind

T = TypeVar("T")
Mac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", to_lower=True)]

# RFC 2544 section 23: learning frames before the transmission.
LEARNING_FRAMES: Final = 8
LEARNING_FRAMES_PER_S: Final = 1000.0
GRACE_S: Final = 15.0
# The server reports the end of a transmission within about 10 ms; a longer delay means that TRex was late.
ALLOWANCE_S: Final = 0.1
ALLOWANCE_SHARE: Final = 0.01
# TRex reports the utilisation of its cores over the last second.
CPU_WINDOW_S: Final = 1.0
_SHARE_OF_SAMPLE: Final = 0.1
_FIRST_LATENCY_GROUP: Final = 513
_SAMPLED: Final = frozenset({Purpose.LATENCY, Purpose.SOAK})
_PLAIN: Final = "nicbench has it send plain Ethernet, IPv4 and UDP"


class TrexOptions(Frozen):
    """``tester: {kind: trex, client: /opt/trex/v3.06, server: 192.0.2.10, ports: [0, 1]}``.

    ``ports`` are TRex's port numbers in nicbench's order (pairs: the first and the second, and so on), ``macs`` the
    source addresses of their frames, one for each. ``latency_rate`` is the rate of stamped frames in each way's load.
    ``force`` takes ports that another user holds.
    """

    client: str = Field(min_length=1)
    server: str = Field(default="127.0.0.1", min_length=1)
    sync_port: int = Field(default=4501, ge=1, le=65_535)
    async_port: int = Field(default=4500, ge=1, le=65_535)
    ports: tuple[Annotated[int, Field(ge=0, le=255)], ...] = Field(default=(0, 1), min_length=1, max_length=64)
    macs: tuple[Mac, ...] = ()
    latency_rate: Annotated[FramesPerSecond, Field(ge=1.0, le=1e6)] = 1000.0
    force: bool = False

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
            Ability.HEADERS: _PLAIN,
            Ability.FILE: _PLAIN,
            Ability.FIELDS: _PLAIN,
            Ability.IPV6: _PLAIN,
            Ability.STREAM_BURSTS: "it is given one steady stream for each way",
            Ability.NEIGHBOURS: "a TRex port that sends a load answers no requests",
        }
    )

    def own_ports(self) -> tuple[TesterPort, ...]:
        return tuple(
            TesterPort(name=f"trex{number}", engine={}, mac=self._mac(index))
            for index, number in enumerate(self.options.ports)
        )

    def statements(self) -> tuple[str, ...]:
        return (
            (
                "The tester is TRex. It counts every frame and compares no payload: a frame that was altered counts as "
                "returned where its headers are whole. Late, duplicated, reordered and corrupted frames of the load "
                "are not measured by this tester."
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
        return _TrexTester(self.options, tuple(self._mac(i) for i in range(len(names))), names, setting.traffic)

    def _mac(self, index: int) -> str:
        """The MAC address of a port; where none is given a locally administered one (IEEE 802c), always the same."""
        return self.options.macs[index] if self.options.macs else f"02:00:00:00:54:{index + 1:02x}"


@dataclass(frozen=True, slots=True)
class _TrexStream:
    """A stream for TRex: frames of one packet group at a rate, ``frames`` of them or until the time is over."""

    transmit: int
    packet: bytes
    program: tuple[tuple[int, int, int], ...]
    frames_per_s: float
    frames: int | None = None
    group: int | None = None
    stamped: bool = False


class _TrexTester(Tester):
    """Makes trials by TRex's client; all its calls block, and are made in one thread, which its sockets belong to."""

    def __init__(self, options: TrexOptions, macs: tuple[str, ...], names: dict[int, str], traffic: Frames) -> None:
        self._options = options
        self._names = names
        self._traffic = traffic
        self._trex_ports = TrexPorts(options, names, macs)
        self._ports = self._trex_ports.numbers
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trex")
        self._api: Any = None

    async def start(self) -> TesterFacts:
        self._api = await self._in_thread(lambda: load_api(self._options.client))
        return await self._in_thread(lambda: self._trex_ports.take(self._api))

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        await self._call_client(lambda: self._learn(request, addressing))
        await asyncio.sleep(request.settle_s)
        forward = set(forward_of([(way.transmit, way.receive) for way in addressing]))
        loaded = tuple(way for way in addressing if request.bidirectional or (way.transmit, way.receive) in forward)
        planned, ways = self._plan_streams(loaded, request)
        down = await self._call_client(lambda: self._prepare(planned))
        senders = sorted({stream.transmit for stream in planned}, key=self._ports.index)
        begun = time.monotonic()
        # With force, for TRex refuses 100 % of line rate where rounding makes it a bit more; the links were checked.
        await self._call_client(
            lambda: self._trex_ports.client.start(senders, mult="1", duration=request.duration_s, force=True)
        )
        beside = asyncio.ensure_future(during()) if during is not None else None
        try:
            cpu_share = await self._wait_and_read_load(request.duration_s, begun)
            ended_s = await self._call_client(lambda: self._wait_for_end(senders, begun, request))
            if beside is not None:
                await beside
        finally:
            if beside is not None:
                beside.cancel()
        statistics = await self._call_client(lambda: self._read_statistics(planned, ended_s, request, cpu_share, down))
        await asyncio.sleep(request.settle_s)
        if ended_s is not None and request.frames is None:
            # The frames that should have been sent in the time that the transmission took.
            stretch = ended_s / request.duration_s
            ways = [replace(way, intended=round(way.intended * stretch)) for way in ways]
        try:
            return reading_of(ways, statistics, self._names)
        except UnknownCountError as error:
            step = "start the server with --software, or use another card"
            raise EngineError(str(error), kind="refused", place=self._trex_ports.place, next_step=step) from error

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            await self._in_thread(self._trex_ports.give_back)
        self._thread.shutdown(wait=False)

    def _learn(self, request: TrialRequest, addressing: Sequence[Addressing]) -> None:
        """Sends a few uncounted frames on every way and its reverse."""
        self._load([self._stream(way, request, LEARNING_FRAMES_PER_S, LEARNING_FRAMES) for way in addressing])
        senders = sorted({self._ports[way.transmit] for way in addressing}, key=self._ports.index)
        self._trex_ports.client.start(senders, mult="1", duration=-1, force=True)
        self._trex_ports.client.wait_on_traffic(senders, timeout=GRACE_S, rx_delay_ms=0)

    def _plan_streams(self, loaded: Sequence[Addressing], request: TrialRequest) -> tuple[list[_TrexStream], list[Way]]:
        """The streams of a trial: a packet group for each way, and one for its sample where latency is measured."""
        ends = [(way.transmit, way.receive) for way in loaded]
        rate = share_of_load(ends) * (request.load_frames_per_s or 0.0)
        if rate <= 0.0:
            raise EngineError("TRex needs a load in frames per second", kind="refused", place=self._trex_ports.place)
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
            ways.append(
                Way(
                    name=f"{way.transmit}->{way.receive}",
                    transmit=self._ports[way.transmit],
                    receive=self._ports[way.receive],
                    # Each stream begins and ends with a whole frame.
                    intended=sum(int(one.frames_per_s * request.duration_s) for one in own) if part is None else part,
                    group=1 + index,
                    latency_group=latency_group,
                )
            )
            planned += own
        return planned, ways

    def _stream(
        self,
        way: Addressing,
        request: TrialRequest,
        frames_per_s: float,
        frames: int | None,
        group: int | None = None,
        *,
        stamped: bool = False,
    ) -> _TrexStream:
        packet = udp_frame(self._traffic, way, int(request.frame_bytes))
        program = flow_program(self._traffic, way)
        return _TrexStream(self._ports[way.transmit], packet, program, frames_per_s, frames, group, stamped)

    def _load(self, planned: Sequence[_TrexStream]) -> None:
        """Replaces all streams of the ports by these."""
        self._trex_ports.client.remove_all_streams(self._ports)
        for stream in planned:
            self._trex_ports.client.add_streams([self._stl_stream(stream)], ports=[stream.transmit])

    def _stl_stream(self, stream: _TrexStream) -> Any:
        """The stream as an ``STLStream``, with both MAC addresses from the frame, not from the port's configuration."""
        api = self._api
        program: list[Any] = []
        for number, (offset, first, count) in enumerate(stream.program):
            name = f"address{number}"
            last = first + count - 1
            program.append(api.STLVmFlowVar(name=name, min_value=first, max_value=last, size=4, op="inc"))
            program.append(api.STLVmWrFlowVar(fv_name=name, pkt_offset=offset))
        program.append(api.STLVmFixIpv4(offset=IP_OFFSET))
        mode = (
            api.STLTXCont(pps=stream.frames_per_s)
            if stream.frames is None
            else api.STLTXSingleBurst(pps=stream.frames_per_s, total_pkts=stream.frames)
        )
        counted = None
        if stream.group is not None:
            counted = (api.STLFlowLatencyStats if stream.stamped else api.STLFlowStats)(pg_id=stream.group)
        return api.STLStream(
            packet=api.STLPktBuilder(pkt_buffer=stream.packet, vm=api.STLScVmRaw(program)),
            mode=mode,
            flow_stats=counted,
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=1,
        )

    def _prepare(self, planned: Sequence[_TrexStream]) -> frozenset[int]:
        """Loads the streams and clears the counters; gives the ports whose link is down."""
        self._load(planned)
        self._trex_ports.client.clear_stats(self._ports)
        return self._trex_ports.down()

    async def _wait_and_read_load(self, duration_s: float, begun: float) -> float | None:
        """Waits for the end of the transmission and gives the share of its cores' time that TRex used, None if unknown.

        TRex can know it for transmissions of at least two seconds.
        """
        share = None
        if duration_s >= 2 * CPU_WINDOW_S:
            await asyncio.sleep(max(0.0, begun + duration_s - CPU_WINDOW_S / 2 - time.monotonic()))
            summary = (await self._call_client(lambda: self._trex_ports.client.get_stats(self._ports))).get(
                "global", {}
            )
            known = [summary.get(name) for name in ("cpu_util", "rx_cpu_util")]
            shares = [float(value) / 100.0 for value in known if isinstance(value, int | float)]
            share = max(shares, default=None)
        await asyncio.sleep(max(0.0, begun + duration_s - time.monotonic()))
        return share

    def _wait_for_end(self, senders: list[int], begun: float, request: TrialRequest) -> float | None:
        """Waits for the end and the drain. A late TRex is stopped, and the seconds until then are given, else None.

        TRex sends every frame even where its queues are full, only later, so that the load falls silently (trex-core
        442); once it is stopped, the missing frames count as unsent. It counts what arrives within ``rx_delay_ms``.
        """
        allowance_s = max(ALLOWANCE_S, ALLOWANCE_SHARE * request.duration_s)
        drain_ms = round(1000 * request.drain_s)
        try:
            self._trex_ports.client.wait_on_traffic(senders, timeout=allowance_s, rx_delay_ms=drain_ms)
        except self._api.TRexTimeoutError:
            ended_s = time.monotonic() - begun
            self._trex_ports.client.stop(senders, rx_delay_ms=drain_ms)
            return ended_s
        return None

    def _read_statistics(
        self,
        planned: Sequence[_TrexStream],
        ended_s: float | None,
        request: TrialRequest,
        cpu_share: float | None,
        down: frozenset[int],
    ) -> TrexStatistics:
        asked_ns = round(1e9 * request.duration_s)
        taken_ns = asked_ns if ended_s is None else round(1e9 * ended_s)
        return TrexStatistics(
            ports=self._trex_ports.client.get_stats(self._ports),
            groups=self._trex_ports.client.get_pgid_stats([stream.group for stream in planned]),
            transmit_ns=taken_ns,
            overtime_ns=max(0, taken_ns - asked_ns),
            cpu_share=cpu_share,
            links_lost=down | self._trex_ports.down(),
        )

    async def _call_client(self, work: Callable[[], T]) -> T:
        """Runs ``work`` with the client; EngineError with TRex's message where it refused or died."""
        if self._trex_ports.client is None:
            raise EngineError("the tester is not running", place=self._trex_ports.place)
        try:
            return await self._in_thread(work)
        except EngineError:
            raise
        except Exception as error:  # TRexError, but also failed asserts and lookups in the client (trex-core 326)
            raise EngineError(
                f"TRex failed: {words_of(error)}",
                place=self._trex_ports.place,
                next_step="see the output of the server, and start it again",
            ) from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
