"""A context whose trials are known beforehand, for tests of methods: what one reads is the test's own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from nicbench.core.frame_size import Size
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.machine import PowerFacts
from nicbench.core.pattern import Pattern
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result
from nicbench.core.trial import Health, Latency, Reading, StreamReading, Trial, TrialRequest
from nicbench.core.units import line_rate_frames_per_s
from nicbench.methods.base import GiveWay, Method, SearchResult
from nicbench.search.base import Goal, Limits, Search

LINE = line_rate_frames_per_s(1e9, 64)  # 1.488 Mpps
HEALTH = Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0)
HELD_UP = Finding(reason=Reason.DISTURBED, threshold="x", value=2.0, limit=1.0, text="the worker was held up")


class KnownContext(ABC):
    """Between two ports of 1 Gb/s; keeps what it was asked for and what was published.

    ``ceiling`` is what calibration found of the tester, ``sends`` what it sends in truth, ``throughput`` what an
    earlier test found; trials of the numbers in ``disturbed``, from 1 on, are.
    """

    seed = 1
    bidirectional, ports, sending_ports = False, 2, 1
    pattern, most_line_rates, ip = Pattern.ONE_TO_ONE, 1.0, 4
    dut_links = ("d0", "d1")
    streams: tuple[str, ...] = ("all",)
    power = PowerFacts()

    def __init__(
        self,
        *,
        ceiling: float | None = None,
        sends: float = math.inf,
        throughput: float | None = None,
        disturbed: Iterable[int] = (),
    ) -> None:
        self.ceiling, self.sends, self.throughput, self.disturbed = ceiling, sends, throughput, set(disturbed)
        self.requests: list[TrialRequest] = []
        self.published: list[Result] = []

    @abstractmethod
    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        """What the trial reads, at the load that the tester sends."""

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        return tuple(size for size in written if isinstance(size, int))

    def line_rate_frames_per_s(self, size: Size) -> float:
        assert isinstance(size, int)
        return line_rate_frames_per_s(1e9, size)

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        return None

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        return self.ceiling

    async def tester_latency(self, size: Size) -> Latency | None:
        return None

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        if request.load_frames_per_s is not None and request.load_frames_per_s > self.sends:
            request = request.replace(load_frames_per_s=self.sends)
        self.requests.append(request)
        disturbed = len(self.requests) in self.disturbed
        trial = Trial(
            id=f"t{len(self.requests):04d}", key="k", test="t", configuration="default", parameters=point, repeat=0,
            request=request, reading=self.read(point, request),
            verdict=Verdict(findings=(HELD_UP,) if disturbed else ()),
        )  # fmt: skip
        return trial, disturbed

    async def search(
        self,
        search: Search,
        point: dict[str, Any],
        request: TrialRequest,
        goals: tuple[Goal, ...],
        limits: Limits,
        give_way: GiveWay | None = None,
    ) -> SearchResult:
        raise AssertionError("these methods are given their loads")

    def results_of(self, test: str) -> tuple[Result, ...]:
        rate = Bounded(value=self.throughput, lower=self.throughput, upper=None)
        return (Result(id="t", method="throughput", parameters={"frame_bytes": 64}, values={"ndr_frames_per_s": rate}),)

    def publish(self, result: Result) -> None:
        self.published.append(result)


def reading_of(transmit_s: float, streams: Iterable[StreamReading] = (), **more: Any) -> Reading:
    """A transmission of so long; counts are those of the streams unless given."""
    streams = tuple(streams)
    given = {"counts": Counts.sum_of(stream.counts for stream in streams), "ports": (), "latency": None, **more}
    return Reading(transmit_ns=round(1e9 * transmit_s), streams=streams, health=HEALTH, **given)


async def run(method: Method, context: KnownContext) -> tuple[Result, ...]:
    """What is published is what is returned, in order."""
    results = await method.run(context)
    assert tuple(context.published) == results
    return results
