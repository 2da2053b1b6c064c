"""Two engines on two machines that answer as one (protocol, "Two engines"), and what is known of their clocks.

``engine/pair.py`` makes two engines answer as one, so that ``PairTester`` differs from ``PacketsTester`` in its
clocks alone; ``engine/pair.py`` puts their readings together. ``stats/peer_clock.py`` has comparisons of two
clocks, the line through them and the bound of its error, all pure; a further way of comparing (``ptp`` is one) gives
``Comparison``s and nothing else. What must be sent after the counters of the path were read is sent in
``Tester.complete``. The engine knows of the other only that ports are ``remote``, when to begin, and what the other
sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicbench.core.clocks import ClockMapping
from nicbench.core.errors import EngineError
from nicbench.core.frozen import frozen
from nicbench.core.reading import sum_of_known
from nicbench.engine.client import REPLY_TIMEOUT_S, EngineClient
from nicbench.hosts.base import Process
from nicbench.stats.peer_clock import (
    ClockLine,
    Comparison,
    choose_kind,
    compare_both_ways,
    compare_questions,
    lay_line,
    map_trial,
    recent,
)

# Puts the readings of two engines together: of each stream what one sent, and what the other received. Pure.

_OF_THE_SENDER = (
    *("intended", "sent", "unsent_tester", "unsent_backpressure", "maximum_burst"),
    *("transmit_gaps", "lateness", "gap_errors"),
)
_SUMS = ("total_gap_ns", "gaps", "iterations", "idle_iterations", "voluntary_switches", "involuntary_switches")
_OF_A_WORKER = ("longest_gap_ns", "total_gap_ns", "gaps", "iterations", "idle_iterations", "core_clock_hz")

Raw = Mapping[str, Any]


def join_readings(
    near: Raw,
    far: Raw,
    streams: Sequence[Raw],
    far_ports: Collection[int],
    bursts_ns: Sequence[Sequence[float]],
    drift: float,
) -> dict[str, Any]:
    """The reply to ``drain`` as one engine would give it, from those of both.

    ``streams`` are those of ``start``, ``bursts_ns`` the mean times of bursts by engine and stream. By ``drift`` the
    far engine's clock gains on the near one's, by which all times since the trial began are given.
    """
    both = (near, far)
    joined = []
    for number, stream in enumerate(streams):
        sender, receiver = (int(stream[port] in far_ports) for port in ("transmit_port", "receive_port"))
        sent, received = both[sender]["streams"][number], both[receiver]["streams"][number]
        one = {**received, **{name: sent.get(name) for name in _OF_THE_SENDER}}
        # Since the receiver was told, the sending port may have completed more: the reading of the sender says it.
        one["lost"] = max(
            0,
            one["sent"] - one["received"] - one.get("late", 0) - one["corrupted"] - one.get("unattributed", 0),
        )
        if one.get("latency") and sender != receiver:
            burst_ns = bursts_ns[sender][number]
            uncertain_ns = max(burst_ns, one["latency"].get("uncertainty_ns") or 0.0)
            one["latency"] = {**one["latency"], "uncertainty_ns": uncertain_ns}
        rates = (1.0, 1.0 / (1.0 + drift))
        joined.append(_by_near_clock(one, sending=rates[sender], receiving=rates[receiver]))
    sending = {int(stream["transmit_port"] in far_ports) for stream in streams}
    return {
        **near,
        "streams": joined,
        "ports": [both[number in far_ports]["ports"][number] for number in range(len(near["ports"]))],
        "transmit_ns": max(both[one]["transmit_ns"] for one in sending),
        "sending_ns": max(both[one]["sending_ns"] for one in sending),
        "sent_while_sending": sum(one["sent_while_sending"] for one in both),
        "health": _join_health(near, far),
    }


def _by_near_clock(stream: Raw, *, sending: float, receiving: float) -> dict[str, Any]:
    """The stream with its times multiplied by what the clock of the engine is worth that took them."""
    arrivals, jump_ns = stream.get("arrivals"), stream.get("last_jump_ns")
    return {
        **stream,
        "arrivals": arrivals and _scaled(arrivals, receiving),
        "last_jump_ns": None if jump_ns is None else round(jump_ns * sending),
    }


def _scaled(times: Raw, rate: float) -> dict[str, Any]:
    return {
        name: _scaled(value, rate) if isinstance(value, Mapping) else value if value is None else round(value * rate)
        for name, value in times.items()
    }


def least_ways(
    near: Raw, far: Raw, streams: Sequence[Raw], far_ports: Collection[int]
) -> tuple[float | None, float | None]:
    """The least time of a frame from the near engine to the far one, and back; None where none came.

    A time below 0 is one by which the stamps of both clocks say that a frame came before it was sent.
    """
    least: list[float | None] = [None, None]
    for number, stream in enumerate(streams):
        sender, receiver = (int(stream[port] in far_ports) for port in ("transmit_port", "receive_port"))
        latency = (near, far)[receiver]["streams"][number].get("latency")
        if sender == receiver or not latency:
            continue
        time_ns = -latency["negative_maximum_ns"] if latency.get("negative") else latency["minimum_ns"]
        known = least[sender]
        least[sender] = time_ns if known is None else min(known, time_ns)
    return least[0], least[1]


def _join_health(near: Raw, far: Raw) -> dict[str, Any]:
    """The health of both engines as of two workers of one; the DUT's CPUs are watched by the near one."""
    both = [near["health"], far["health"]]
    steps = [one["clock_step_ns"] for one in both if one.get("clock_step_ns") is not None]
    return {
        **both[0],
        "longest_gap_ns": max(one["longest_gap_ns"] for one in both),
        "clock_step_ns": max(steps, key=abs, default=None),
        **{name: sum_of_known([one.get(name) for one in both]) for name in _SUMS},
        "workers": [
            {**{name: one["health"].get(name) for name in _OF_A_WORKER}, "sent": _sent_by(one)} for one in (near, far)
        ],
    }


def _sent_by(reading: Raw) -> int:
    """What an engine sent itself: of the other's streams it has no schedule."""
    return sum(stream["sent"] for stream in reading["streams"] if stream["intended"])


LEAD_S: Final = 0.1
"""From the request until the first frame is due: both engines must be ready by then."""
QUESTIONS: Final = 8
"""Questions for the time of each engine, of which the fastest counts."""
LONGEST_COMPARED_S: Final = 1.0
"""In a longer transmission the fastest frames of both ways may be of times between which the clocks drifted."""
FAST: Final = 3.0
"""A comparison whose duration exceeds that of the fastest one by this factor waited for a processor."""
TEST_LINKS: Final = "test links"
CONTROL_PATH: Final = "control path"
PTP: Final = "ptp"


@frozen
class PairStart:
    """A transmission: the line by which both engines began it, when by the near clock, and how long it lasts."""

    line: ClockLine
    begin_ns: int
    lasts_ns: float


class EnginePair:
    """The conversation with both. Port numbers in ``far_ports`` are the far engine's, all others the near one's.

    ``far_configure`` are fields of ``configure`` that the far engine is given in place of the near one's.
    """

    def __init__(
        self, near: EngineClient, far: EngineClient, far_ports: frozenset[int], far_configure: Mapping[str, Any]
    ) -> None:
        self._near, self._far = near, far
        self._far_ports = far_ports
        self._far_configure = far_configure
        self._comparisons: list[Comparison] = []
        self._streams: Sequence[Mapping[str, Any]] = ()
        self._last: PairStart | None = None

    async def greet(self) -> dict[str, Any]:
        """Greets both; returns the near engine's reply. EngineError where they are of different versions."""
        near, far = await _both(self._near.greet(), self._far.greet())
        if near.get("version") != far.get("version"):
            raise EngineError(
                f"the two engines are of versions {near.get('version')} and {far.get('version')}",
                kind="version",
                next_step="install the same nicbench for both: `make install`",
            )
        return near

    async def request(self, command: str, *, within_s: float = REPLY_TIMEOUT_S, **fields: Any) -> dict[str, Any]:
        """As ``EngineClient.request``, of both; the replies are put together."""
        if command == "configure":
            return await self._configure(within_s, fields)
        if command == "start":
            return await self._start(within_s, fields)
        if command == "drain":
            return await self._drain(within_s, fields)
        near, far = await self._ask_both(command, within_s, fields)
        if command == "settle":
            late = [
                (far if self._is_far(stream["receive_port"]) else near)["late"][number]
                for number, stream in enumerate(self._streams)
            ]
            return {**near, "late": late}
        return near

    async def wait_for(self, event: str, *, within_s: float, **fields: Any) -> dict[str, Any]:
        """The near engine's event, once the far one has told of it too."""
        within_s += LEAD_S
        near, _ = await _both(
            self._near.wait_for(event, within_s=within_s, **fields),
            self._far.wait_for(event, within_s=within_s, **fields),
        )
        return near

    def hand_over(self) -> Process:
        """Refused: flows that begin and end on their own are one engine's."""
        raise EngineError("a tester of two machines sends by the trial only", kind="unsupported")

    async def close(self) -> None:
        """Ends both; never raises."""
        await asyncio.gather(self._near.close(), self._far.close())

    async def compare_by_questions(self) -> None:
        """Compares the clocks by questions for the time, asked by the controller."""
        near = await _ask_time(self._near)
        far = await _ask_time(self._far)
        self._comparisons.append(compare_questions(CONTROL_PATH, near, far))

    async def compare_by_ptp(self, bound_ns: float) -> None:
        """Compares the clocks by the times of day of both machines, which PTP keeps equal to within ``bound_ns``."""
        near, far = await self._ask_both("clock", REPLY_TIMEOUT_S, {})
        ahead_ns = (far["now_ns"] - far["realtime_ns"]) - (near["now_ns"] - near["realtime_ns"])
        self._comparisons.append(Comparison(PTP, near["now_ns"], ahead_ns, bound_ns))

    @property
    def watched_s(self) -> float:
        """For how long the clocks have been compared over the test links, in seconds."""
        times = [one.at_ns for one in self._comparisons if one.by == TEST_LINKS]
        return (max(times) - min(times)) / 1e9 if times else 0.0

    def has_compared_well(self, since_ns: float) -> bool:
        """Whether a comparison by frames since then, by the near clock, was about as fast as the fastest one."""
        links = [one for one in self._comparisons if one.by == TEST_LINKS]
        fast_ns = FAST * min((one.half_ns for one in links), default=0.0)
        return any(one.at_ns > since_ns and one.half_ns <= fast_ns for one in links)

    @property
    def last_compared_ns(self) -> float:
        """When the clocks were compared by frames last, by the near clock; 0 where they were not."""
        return max((one.at_ns for one in self._comparisons if one.by == TEST_LINKS), default=0.0)

    @property
    def last_start(self) -> PairStart | None:
        """How the last transmission was begun; None before the first."""
        return self._last

    def mapping(self, start: PairStart) -> ClockMapping | None:
        """How the clocks were mapped in that transmission; None where nothing bounds the error."""
        return map_trial(start.line, self._comparisons, start.begin_ns, start.begin_ns + start.lasts_ns)

    def _is_far(self, port: int) -> bool:
        return port in self._far_ports

    async def _configure(self, within_s: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        ports = list(enumerate(fields["ports"]))
        near_ports = [_remote(port) if self._is_far(number) else port for number, port in ports]
        far_ports = [port if self._is_far(number) else _remote(port) for number, port in ports]
        near, far = await _both(
            self._near.request("configure", within_s=within_s, **{**fields, "ports": near_ports}),
            self._far.request("configure", within_s=within_s, **{**fields, **self._far_configure, "ports": far_ports}),
        )
        await self.compare_by_questions()
        joined = [(far if self._is_far(number) else near)["ports"][number] for number, _ in ports]
        return {**near, "ports": joined}

    async def _start(self, within_s: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        self._streams = fields["streams"]
        await self.compare_by_questions()
        kind = choose_kind(recent(self._comparisons))
        line = lay_line([one for one in self._comparisons if one.by == kind])
        now_ns = (await self._near.request("clock"))["now_ns"]
        at_ns = now_ns + round(LEAD_S * 1e9)
        self._last = PairStart(line, at_ns, fields["duration_s"] * 1e9)
        far_at_ns = at_ns + round(line.offset_at(at_ns))
        drift = line.drift
        near_streams = [self._with_drift(one, drift, far=False) for one in self._streams]
        far_streams = [self._with_drift(one, -drift / (1.0 + drift), far=True) for one in self._streams]
        near, _ = await _both(
            self._near.request("start", within_s=within_s, **{**fields, "at_ns": at_ns, "streams": near_streams}),
            self._far.request("start", within_s=within_s, **{**fields, "at_ns": far_at_ns, "streams": far_streams}),
        )
        return near

    def _with_drift(self, stream: Mapping[str, Any], drift: float, *, far: bool) -> dict[str, Any]:
        """The stream, with the drift of its sender where the engine only receives it."""
        is_remote = self._is_far(stream["transmit_port"]) != far
        return {**stream, "sender_drift": drift} if is_remote else dict(stream)

    async def _drain(self, within_s: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        near_sent, far_sent = await self._ask_both("sent", within_s, {})
        senders = [self._is_far(stream["transmit_port"]) for stream in self._streams]
        told = [(far_sent if is_far else near_sent)["sent"][number] for number, is_far in enumerate(senders)]
        near, far = await _both(
            self._near.request("drain", within_s=within_s, **fields, sent=_elsewhere(told, senders, far=False)),
            self._far.request("drain", within_s=within_s, **fields, sent=_elsewhere(told, senders, far=True)),
        )
        self._compare_by_frames(*least_ways(near, far, self._streams, self._far_ports))
        await self.compare_by_questions()
        bursts = [near_sent["burst_ns"], far_sent["burst_ns"]]
        drift = 0.0 if self._last is None else self._last.line.drift
        joined = join_readings(near, far, self._streams, self._far_ports, bursts, drift)
        if self._last is not None:  # one of so many frames ends with the last of them
            self._last = replace(self._last, lasts_ns=min(self._last.lasts_ns, joined["transmit_ns"]))
        return joined

    def _compare_by_frames(self, there_ns: float | None, back_ns: float | None) -> None:
        """Adds the comparison by the least times of both ways of the last transmission, where frames went both."""
        start = self._last
        if start is None or there_ns is None or back_ns is None or start.lasts_ns > LONGEST_COMPARED_S * 1e9:
            return
        at_ns = start.begin_ns + start.lasts_ns / 2
        # Stamps count from the begin of the transmission on each clock, so what they miss is what the line misses.
        missed = compare_both_ways(TEST_LINKS, at_ns, there_ns, back_ns)
        offset_ns = start.line.offset_at(at_ns) + missed.offset_ns
        self._comparisons.append(Comparison(TEST_LINKS, at_ns, offset_ns, missed.half_ns))

    async def _ask_both(
        self, command: str, within_s: float, fields: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        return await _both(
            self._near.request(command, within_s=within_s, **fields),
            self._far.request(command, within_s=within_s, **fields),
        )


def _remote(port: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": port["name"], "kind": "remote", "lossless": port.get("lossless", False)}


def _elsewhere(told: Sequence[int], senders: Sequence[bool], *, far: bool) -> list[int | None]:
    """What the other engine sent of each stream; None for those that this one sends."""
    return [None if is_far == far else sent for sent, is_far in zip(told, senders, strict=True)]


async def _ask_time(engine: EngineClient) -> tuple[float, float, float]:
    """The fastest of several questions: when it was asked and answered by our clock, and the time that it said."""
    asked = []
    for _ in range(QUESTIONS):
        sent_ns = time.monotonic_ns()
        said_ns = (await engine.request("clock"))["now_ns"]
        asked.append((sent_ns, said_ns, time.monotonic_ns()))
    return min(asked, key=lambda one: one[2] - one[0])


async def _both(
    near: Coroutine[Any, Any, dict[str, Any]], far: Coroutine[Any, Any, dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both results; where one fails the other is not awaited any longer, for it may wait for the one that died."""
    tasks = [asyncio.ensure_future(near), asyncio.ensure_future(far)]
    try:
        first, second = await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return first, second
