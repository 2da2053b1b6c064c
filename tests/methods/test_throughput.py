"""Throughput: what its result says of the tester's ceiling."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Reading, TrialRequest
from nicbench.methods._critical_load import CriticalLoadChoice
from nicbench.methods._throughput import SearchChoice
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
        self.limits = limits
        rate = Bounded(value=620_000.0, lower=620_000.0, limited_by=LimitedBy.TESTER)
        outcomes = {goal.name: Outcome(goal=goal.name, rate=rate, is_settled=True) for goal in goals}
        return SearchResult(
            outcomes=outcomes, trial_ids=(), traffic_s=1.0, took_s=1.0, most_sent_frames_per_s=self.learnt or 620_000.0
        )


async def searched(learnt: float | None) -> Result:
    (result,) = await run(Throughput("t", Throughput.Options(frame_bytes=(64,))), Searched(learnt))
    return result


async def test_the_ceiling_beside_a_rate_is_the_one_that_held_it_down() -> None:
    assert (await searched(625_000.0)).values["ceiling_frames_per_s"] == 625_000.0
    assert (await searched(None)).values["ceiling_frames_per_s"] == CALIBRATED


@pytest.mark.parametrize(
    ("asked", "highest", "limited_by"),
    [(50_000.0, 50_000.0, LimitedBy.MAXIMUM_LOAD), (2 * CALIBRATED, CALIBRATED, LimitedBy.TESTER)],
    ids=["below the tester's ceiling", "above it"],
)
async def test_no_load_above_the_maximum_is_tried(asked: float, highest: float, limited_by: LimitedBy) -> None:
    context = Searched(None)
    options = Throughput.Options(frame_bytes=(64,), search=SearchChoice(maximum_load=asked))
    await run(Throughput("t", options), context)
    assert (context.limits.maximum_load_frames_per_s, context.limits.maximum_limited_by) == (highest, limited_by)


def test_a_maximum_below_the_minimum_is_refused() -> None:
    with pytest.raises(ValidationError, match="`maximum_load` \\(500 pps\\) is not above `minimum_load`"):
        SearchChoice(maximum_load=500.0)


@pytest.mark.parametrize(
    ("goals", "told"),
    [
        ({"NDR": 0.0, "ndr": 0.3}, "`NDR` and `ndr` differ by capital letters only"),
        ({"line_rate": 0.0}, "`line_rate` is the name of another figure"),
        ({"Ceiling": 0.0}, "`Ceiling` is the name of another figure"),
    ],
)
def test_goals_whose_rates_would_have_one_name_are_refused(goals: dict[str, float], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        SearchChoice(goals=goals)


@pytest.mark.parametrize("choice", [SearchChoice, CriticalLoadChoice])
def test_a_minimum_load_of_nothing_is_refused(choice: type[SearchChoice] | type[CriticalLoadChoice]) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        choice(minimum_load=0.0)


async def test_no_load_below_the_minimum_is_tried_unless_nothing_lies_above_it() -> None:
    for minimum, lowest in ((1e6, 1e6), (2e6, CALIBRATED / 2)):
        context = Searched(None)
        options = Throughput.Options(frame_bytes=(64,), search=SearchChoice(minimum_load=minimum))
        await run(Throughput("t", options), context)
        assert context.limits.minimum_load_frames_per_s == lowest


async def test_a_tester_that_sends_nothing_leaves_the_result_incomplete_and_says_why() -> None:
    context = Searched(None)
    context.ceiling = 0.0
    (result,) = await run(Throughput("t", Throughput.Options(frame_bytes=(64,))), context)
    rate = result.values["ndr_frames_per_s"]
    assert isinstance(rate, Bounded)
    assert (rate.value, rate.limited_by, result.verdict) == (None, LimitedBy.TESTER, ResultVerdict.INCOMPLETE)
    assert rate.reason_null == result.disturbances[0]
    assert "its ceiling is 0" in result.disturbances[0]


@pytest.mark.parametrize(
    ("search", "said", "not_said"),
    [
        ({"kind": "mlr"}, ["the highest load that meets each goal", "one of 60 s confirms"], []),
        ({"kind": "mlr", "validation": 0.0}, ["no trial longer than 1 s confirms"], ["full length", "60 s"]),
    ],
    ids=["validated", "not validated"],
)
def test_the_procedure_is_that_of_the_search_and_its_validation(
    search: dict[str, Any], said: list[str], not_said: list[str]
) -> None:
    options = Throughput.Options.model_validate({"search": search, "trial": {"duration": 1.0}})
    text = Throughput.procedure(options.model_dump(mode="json"))
    assert [words for words in said if words not in text] == []
    assert [words for words in not_said if words in text] == []
