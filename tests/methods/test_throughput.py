"""Throughput: what its result says of the tester's ceiling."""

from __future__ import annotations

from typing import Any

from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.trial import Reading, TrialRequest
from nicbench.methods.base import SearchResult
from nicbench.methods.throughput import Throughput
from nicbench.search.base import Goal, Limits, Outcome, Search

from .known import KnownContext, run

CALIBRATED = 1_010_000.0


class Searched(KnownContext):
    """Its searches end at a rate that the tester limits, below what calibration had found."""

    def __init__(self, learnt: float | None) -> None:
        super().__init__(ceiling=CALIBRATED)
        self.learnt = learnt

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        raise AssertionError("every trial is the search's")

    async def search(
        self, search: Search, point: dict[str, Any], request: TrialRequest, goals: tuple[Goal, ...], limits: Limits
    ) -> SearchResult:
        rate = Bounded(value=620_000.0, lower=620_000.0, limited_by=LimitedBy.TESTER)
        outcomes = {goal.name: Outcome(goal=goal.name, outcome="at_least", rate=rate, converged=True) for goal in goals}
        return SearchResult(outcomes=outcomes, trial_ids=(), traffic_s=1.0, ceiling_frames_per_s=self.learnt)


async def searched(learnt: float | None) -> Result:
    (result,) = await run(Throughput("t", Throughput.Options(frame_bytes=(64,))), Searched(learnt))
    return result


async def test_the_ceiling_beside_a_rate_is_the_one_that_held_it_down() -> None:
    assert (await searched(625_000.0)).values["ceiling_frames_per_s"] == 625_000.0
    assert (await searched(None)).values["ceiling_frames_per_s"] == CALIBRATED
