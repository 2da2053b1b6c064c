"""What one test's method is given (``methods.base.Context``): its trials, searches, ceilings, and earlier results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nicbench.events import Bus, CeilingFound, ResultReady
from nicbench.judge.near_limits import with_near_limits
from nicbench.judge.repeats import Repeats
from nicbench.methods.base import Found
from nicbench.model.frame_size import IMIX, Size, mean_bytes, words_of
from nicbench.model.pattern import Ways
from nicbench.model.result import Result
from nicbench.model.traffic import Traffic
from nicbench.model.trial import Health, Latency, Trial, TrialRequest
from nicbench.search.base import CeilingReached, Goal, Limits, Sample, Search
from nicbench.trials.basis import with_basis, with_ports
from nicbench.trials.bridge import run_search
from nicbench.trials.ceiling import Ceilings
from nicbench.trials.maker import TrialMaker
from nicbench.units import line_rate_frames_per_s

# A load just below a ceiling, so that the tester's rate, which wavers, reaches it.
CEILING_ROOM = 0.01


class TestContext:
    """The context of one test of the bench file."""

    __test__ = False  # not a test class for pytest

    def __init__(
        self,
        test: str,
        seed: int,
        link_bits_per_s: float,
        traffic: Traffic,
        ways: Ways,
        maker: TrialMaker,
        ceilings: Ceilings,
        repeats: Repeats,
        earlier: Mapping[str, tuple[Result, ...]],
        bus: Bus,
    ) -> None:
        self.seed = seed
        self.bidirectional = ways.bidirectional
        self.ports = maker.ports
        self.pattern = traffic.pattern
        self.most_line_rates = ways.most_line_rates
        self._test = test
        self._link_bits_per_s = link_bits_per_s
        self._traffic = traffic
        self._ways = ways
        self._maker = maker
        self._ceilings = ceilings
        self._repeats = repeats
        self._earlier = earlier
        self._bus = bus
        self._points_measured = 0
        self._trials: dict[str, Trial] = {}

    def sizes(self, written: Iterable[int | str]) -> tuple[Size, ...]:
        """Mixes in place of their names, which the bench file's checks made sure of."""
        return tuple(size if isinstance(size, int) else self._traffic.mix(size) or IMIX for size in written)

    def line_rate_frames_per_s(self, size: Size) -> float:
        """Of one port."""
        return line_rate_frames_per_s(self._link_bits_per_s, mean_bytes(size))

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        """Of one port, without a DUT."""
        return await self._ceilings.ceiling_frames_per_s(size)

    async def tester_latency(self, size: Size) -> Latency | None:
        """The tester's own, without a DUT."""
        return await self._ceilings.latency(size)

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        """One judged trial, repeated where invalid; True where the least disturbed of all had to be used.

        Where the tester cannot send the load, it is measured at what the tester can send.
        """
        while True:
            try:
                return await self._measured(point, request)
            except CeilingReached as reached:
                self._tell_ceiling(request.size, reached.rate_frames_per_s)
                lower = reached.rate_frames_per_s * (1.0 - CEILING_ROOM)
                request = request.model_copy(update={"load_frames_per_s": lower})

    async def _measured(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        request = request.model_copy(update={"bidirectional": self._ways.bidirectional})
        sequence, self._points_measured = self._points_measured, self._points_measured + 1

        async def once(repeat: int) -> Trial:
            return await self._maker.make(f"{self._test}/{sequence}/{repeat}", self._test, point, request, repeat)

        trial, disturbed = await self._repeats.measured(once)
        self._trials[trial.id] = trial
        return trial, disturbed

    async def search(
        self, search: Search, point: dict[str, Any], request: TrialRequest, goals: tuple[Goal, ...], limits: Limits
    ) -> Found:
        """Every load of the search is one ``measure``; repeats cost the search none of its trials."""
        trial_ids: list[str] = []
        traffic_ns = 0

        async def measure(load_frames_per_s: float, duration_s: float) -> Sample:
            nonlocal traffic_ns
            asked = request.model_copy(update={"load_frames_per_s": load_frames_per_s, "duration_s": duration_s})
            try:
                trial, disturbed = await self._measured(point, asked)
            except CeilingReached as reached:
                self._tell_ceiling(request.size, reached.rate_frames_per_s)
                raise
            trial_ids.append(trial.id)
            traffic_ns += trial.reading.transmit_ns
            return Sample(
                load_frames_per_s=load_frames_per_s,
                duration_s=duration_s,
                counts=trial.reading.counts,
                valid=not disturbed,
                pacing_uncertainty=_held_up_ns(trial.reading.health) / max(1, trial.reading.transmit_ns),
                trial_ids=(trial.id,),
            )

        outcomes = await run_search(search, measure, goals, limits)
        return Found(outcomes=outcomes, trial_ids=tuple(trial_ids), traffic_s=traffic_ns / 1e9)

    def results_of(self, test: str) -> tuple[Result, ...]:
        """Of an earlier test of this run."""
        return self._earlier.get(test, ())

    def publish(self, result: Result) -> None:
        """Journals and shows a result."""
        self._bus.publish(ResultReady(test=self._test, result=self.completed(result)))

    def completed(self, result: Result) -> Result:
        """With what no method knows of: whose turn it was, the basis of its rates, its ports, the tester's limits."""
        behind = [self._trials[name] for name in result.trials if name in self._trials]
        turn = self._maker.turn
        result = result.model_copy(
            update={
                "id": turn.key(result.id),
                "test": self._test,
                "configuration": turn.configuration,
                "run": turn.run,
                "warm_up": turn.warm_up,
            }
        )
        return with_near_limits(with_ports(with_basis(result, self._ways), self._ways, behind))

    def _tell_ceiling(self, size: Size, rate_frames_per_s: float) -> None:
        self._bus.publish(
            CeilingFound(
                configuration=self._maker.turn.configuration,
                run=self._maker.turn.run,
                frame_bytes=mean_bytes(size),
                mix=None if isinstance(size, int) else size.name,
                ceiling_frames_per_s=rate_frames_per_s,
                calibrated=False,
                text=f"the tester fell short of its load twice at {words_of(size)}: the bound comes down to "
                f"{rate_frames_per_s / 1e6:.3f} Mpps",
            )
        )


def _held_up_ns(health: Health) -> int:
    """For how long the load may have been another: a gap of our own engine, or the overtime of another generator."""
    return health.longest_gap_ns if health.longest_gap_ns is not None else health.overtime_ns or 0
