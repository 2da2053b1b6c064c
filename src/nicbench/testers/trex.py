"""Cisco TRex (`trex`): its stateless server sends and counts, driven by the Python client of the user's installation.

The client is no package that can be installed beside nicbench, so it is loaded from ``client``, the folder of a TRex
installation. TRex counts every frame by packet group (``STLFlowStats``), and stamps only those of latency streams
(``STLFlowLatencyStats``): a sample, sent where a trial is for latency. It compares no payloads.
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

from nicbench.duts.base import Addressing
from nicbench.errors import EngineError, UsageError
from nicbench.labs.base import TesterPort
from nicbench.model.ability import Ability
from nicbench.model.base import Frozen
from nicbench.model.pattern import forward_of, frames_of_ways, share_of_load
from nicbench.model.quantity import FramesPerSecond
from nicbench.model.traffic import Frames
from nicbench.model.trial import Purpose, Reading, TrialRequest
from nicbench.testers._trex_client import load_api, words_of
from nicbench.testers._trex_frames import IP_OFFSET, flow_program, udp_frame
from nicbench.testers._trex_ports import TrexPorts
from nicbench.testers._trex_reading import Told, UnknownCountError, Way, reading_of
from nicbench.testers.base import During, Setting, Tester, TesterFacts, TesterKind

T = TypeVar("T")
Mac = Annotated[str, StringConstraints(pattern=r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$", to_lower=True)]

# RFC 2544 section 23: learning frames before the transmission.
LEARNING_FRAMES: Final = 8
LEARNING_FRAMES_PER_S: Final = 1000.0
GRACE_S: Final = 15.0
# That a transmission is over the server tells within some 10 ms; more than this it was late.
ALLOWANCE_S: Final = 0.1
ALLOWANCE_SHARE: Final = 0.01
# TRex tells the utilisation of its cores over the last second.
CPU_WINDOW_S: Final = 1.0
_SHARE_OF_SAMPLE: Final = 0.1
_FIRST_LATENCY_GROUP: Final = 513
_SAMPLED: Final = frozenset({Purpose.LATENCY, Purpose.SOAK})
_PLAIN: Final = "nicbench has it send plain Ethernet, IPv4 and UDP"


class TrexOptions(Frozen):
    """``tester: {kind: trex, client: /opt/trex/v3.06, server: 192.0.2.10, ports: [0, 1]}``.

    ``ports`` are TRex's numbers, in the order in which nicbench takes them (pairs: the first and the second, ..);
    ``macs`` the addresses that their frames bear, one for each. ``latency_rate`` is that of the frames with a stamp, of
    each way's load. ``force`` takes ports that another user holds.
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
    def _ports_are_several(self) -> Self:
        if len(set(self.ports)) < len(self.ports):
            raise ValueError("each of `ports` is a port of its own: give every number once")
        if self.macs and len(self.macs) != len(self.ports):
            raise ValueError(f"there are {len(self.ports)} `ports` and {len(self.macs)} `macs`: give one for each port")
        return self


class Trex(TesterKind):
    """A TRex server with ports of its own, before a DUT that is there already."""

    kind = "trex"
    Options = TrexOptions
    options: TrexOptions
    cannot = MappingProxyType(
        {
            Ability.BURSTS: "its scheduler keeps the rate in the mean and sends frames in groups, some 10 us apart",
            Ability.PHASES: "it is given one load for a transmission",
            Ability.ARRIVALS: "it does not keep when frames arrive",
            Ability.MIX: "it is given one frame size for a stream",
            Ability.STREAMS: "it is given one stream for each way",
            Ability.HEADERS: _PLAIN,
            Ability.FIELDS: _PLAIN,
            Ability.IPV6: _PLAIN,
            Ability.STREAM_BURSTS: "it is given one steady stream for each way",
            Ability.NEIGHBOURS: "a TRex port that sends a load answers nobody",
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
                "a TRex port answers no ARP", place=setting.place, next_step="give the DUT static neighbours"
            )
        return _TrexTester(self.options, tuple(self._mac(i) for i in range(len(names))), names, setting.traffic)

    def _mac(self, index: int) -> str:
        """Locally administered (IEEE 802c) where none is given, and the same in every run."""
        return self.options.macs[index] if self.options.macs else f"02:00:00:00:54:{index + 1:02x}"


@dataclass(frozen=True, slots=True)
class _Planned:
    """A stream for TRex: frames of one packet group, at a rate, ``frames`` of them or until the time is over."""

    transmit: int
    packet: bytes
    program: tuple[tuple[int, int, int], ...]
    frames_per_s: float
    frames: int | None = None
    group: int | None = None
    stamped: bool = False


class _TrexTester(Tester):
    """All calls of the client are made in one thread: they block, and its sockets belong to one thread."""

    def __init__(self, options: TrexOptions, macs: tuple[str, ...], names: dict[int, str], traffic: Frames) -> None:
        self._options = options
        self._names = names
        self._traffic = traffic
        self._held = TrexPorts(options, names, macs)
        self._ports = self._held.numbers
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trex")
        self._api: Any = None

    async def start(self) -> TesterFacts:
        self._api = await self._in_thread(lambda: load_api(self._options.client))
        return await self._in_thread(lambda: self._held.take(self._api))

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        await self._asked(lambda: self._learn(request, addressing))
        await asyncio.sleep(request.settle_s)
        kept = set(forward_of([(way.transmit, way.receive) for way in addressing]))
        loaded = tuple(way for way in addressing if request.bidirectional or (way.transmit, way.receive) in kept)
        planned, ways = self._planned(loaded, request)
        down = await self._asked(lambda: self._prepared(planned))
        senders = sorted({stream.transmit for stream in planned}, key=self._ports.index)
        begun = time.monotonic()
        # Forced, for TRex refuses 100 % of the line rate where rounding makes it a bit more; links were looked at.
        await self._asked(lambda: self._held.client.start(senders, mult="1", duration=request.duration_s, force=True))
        beside = asyncio.ensure_future(during()) if during is not None else None
        try:
            cpu_share = await self._sleep_and_look(request.duration_s, begun)
            ended_s = await self._asked(lambda: self._ended(senders, begun, request))
            if beside is not None:
                await beside
        finally:
            if beside is not None:
                beside.cancel()
        told = await self._asked(lambda: self._told(planned, ended_s, request, cpu_share, down))
        await asyncio.sleep(request.settle_s)
        if ended_s is not None and request.frames is None:
            # What should have been sent in the time that it took.
            stretch = ended_s / request.duration_s
            ways = [replace(way, intended=round(way.intended * stretch)) for way in ways]
        try:
            return reading_of(ways, told, self._names)
        except UnknownCountError as error:
            step = "start the server with --software, or give it another card"
            raise EngineError(str(error), kind="refused", place=self._held.place, next_step=step) from error

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            await self._in_thread(self._held.give_back)
        self._thread.shutdown(wait=False)

    def _learn(self, request: TrialRequest, addressing: Sequence[Addressing]) -> None:
        """Every way, and its reverse, gets a few frames that nobody counts."""
        self._load([self._stream(way, request, LEARNING_FRAMES_PER_S, LEARNING_FRAMES) for way in addressing])
        senders = sorted({self._ports[way.transmit] for way in addressing}, key=self._ports.index)
        self._held.client.start(senders, mult="1", duration=-1, force=True)
        self._held.client.wait_on_traffic(senders, timeout=GRACE_S, rx_delay_ms=0)

    def _planned(self, loaded: Sequence[Addressing], request: TrialRequest) -> tuple[list[_Planned], list[Way]]:
        """A packet group for each way, and one more for its sample where latency is asked for."""
        ends = [(way.transmit, way.receive) for way in loaded]
        rate = share_of_load(ends) * (request.load_frames_per_s or 0.0)
        if rate <= 0.0:
            raise EngineError("TRex needs a load in frames per second", kind="refused", place=self._held.place)
        parts: Sequence[int | None] = (None,) * len(loaded)
        if request.frames is not None:
            parts = frames_of_ways(ends, request.frames)
        sampled = min(self._options.latency_rate, _SHARE_OF_SAMPLE * rate) if request.purpose in _SAMPLED else 0.0
        planned, ways = [], []
        for index, (way, part) in enumerate(zip(loaded, parts, strict=True)):
            if part == 0:
                continue  # of too few frames for every way; TRex takes a burst of none for an endless one
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
                    # Each stream of its own begins and ends with a whole frame.
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
    ) -> _Planned:
        packet = udp_frame(self._traffic, way, int(request.frame_bytes))
        program = flow_program(self._traffic, way)
        return _Planned(self._ports[way.transmit], packet, program, frames_per_s, frames, group, stamped)

    def _load(self, planned: Sequence[_Planned]) -> None:
        """These streams and no others on the ports."""
        self._held.client.remove_all_streams(self._ports)
        for stream in planned:
            self._held.client.add_streams([self._stl_stream(stream)], ports=[stream.transmit])

    def _stl_stream(self, stream: _Planned) -> Any:
        """The stream in TRex's words; both addresses are those of the frame, not of the port's configuration."""
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

    def _prepared(self, planned: Sequence[_Planned]) -> frozenset[int]:
        """The streams loaded and the counters cleared; the ports whose link is down."""
        self._load(planned)
        self._held.client.clear_stats(self._ports)
        return self._held.down()

    async def _sleep_and_look(self, duration_s: float, begun: float) -> float | None:
        """Waits for the transmission's end; the share of its cores' time that TRex used, where it can know it."""
        share = None
        if duration_s >= 2 * CPU_WINDOW_S:
            await asyncio.sleep(max(0.0, begun + duration_s - CPU_WINDOW_S / 2 - time.monotonic()))
            told = (await self._asked(lambda: self._held.client.get_stats(self._ports))).get("global", {})
            known = [told.get(name) for name in ("cpu_util", "rx_cpu_util")]
            shares = [float(value) / 100.0 for value in known if isinstance(value, int | float)]
            share = max(shares, default=None)
        await asyncio.sleep(max(0.0, begun + duration_s - time.monotonic()))
        return share

    def _ended(self, senders: list[int], begun: float, request: TrialRequest) -> float | None:
        """Waits for the end and the drain; where TRex does not come to its end it is stopped: after how many seconds.

        TRex sends every frame also where its queues are full, only later, so that the load sinks unsaid (trex-core
        442); stopped at its time, what is missing shows as unsent. It counts what arrives within ``rx_delay_ms``.
        """
        allowance_s = max(ALLOWANCE_S, ALLOWANCE_SHARE * request.duration_s)
        drain_ms = round(1000 * request.drain_s)
        try:
            self._held.client.wait_on_traffic(senders, timeout=allowance_s, rx_delay_ms=drain_ms)
        except self._api.TRexTimeoutError:
            ended_s = time.monotonic() - begun
            self._held.client.stop(senders, rx_delay_ms=drain_ms)
            return ended_s
        return None

    def _told(
        self,
        planned: Sequence[_Planned],
        ended_s: float | None,
        request: TrialRequest,
        cpu_share: float | None,
        down: frozenset[int],
    ) -> Told:
        asked_ns = round(1e9 * request.duration_s)
        taken_ns = asked_ns if ended_s is None else round(1e9 * ended_s)
        return Told(
            ports=self._held.client.get_stats(self._ports),
            groups=self._held.client.get_pgid_stats([stream.group for stream in planned]),
            transmit_ns=taken_ns,
            overtime_ns=max(0, taken_ns - asked_ns),
            cpu_share=cpu_share,
            links_lost=down | self._held.down(),
        )

    async def _asked(self, work: Callable[[], T]) -> T:
        """The answer of the client; EngineError with TRex's words where it refused or died."""
        if self._held.client is None:
            raise EngineError("the tester was not started", place=self._held.place)
        try:
            return await self._in_thread(work)
        except EngineError:
            raise
        except Exception as error:  # TRexError, but also asserts and lookups inside of the client (trex-core 326)
            raise EngineError(
                f"TRex failed: {words_of(error)}",
                place=self._held.place,
                next_step="see what the server's own output says, and start it again",
            ) from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
