"""Throughput: the limits it gives its search, and what its result says of the tester."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.frame_size import Size
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Reading, TrialRequest
from nicbench.methods._services import Service
from nicbench.methods.address_tables import AddressLearning
from nicbench.methods.base import FrameMethod, GiveWay, SearchResult
from nicbench.methods.impairments import Impairments
from nicbench.methods.port_shares import PortShares
from nicbench.methods.receive_spread import ReceiveSpread
from nicbench.methods.recovery import SystemRecovery
from nicbench.methods.service_activation import ServiceActivation
from nicbench.methods.single_core import SingleCore
from nicbench.methods.soak import CriticalLoadChoice
from nicbench.methods.throughput import SearchChoice, Throughput, known_rate_values
from nicbench.report.tables import sections
from nicbench.search.base import Ended, Goal, Limits, Outcome, Search

from .known import LINE, KnownContext, run

CALIBRATED = 1_010_000.0
FOUND = 620_000.0


class Searched(KnownContext):
    """Its searches find ``FOUND``, with a tester that sent no more than ``sent``."""

    def __init__(self, sent: float = 1e6, ended: Ended = Ended.SETTLED, took_s: float = 1.0) -> None:
        super().__init__(ceiling=CALIBRATED)
        self.sent, self.ended, self.took_s = sent, ended, took_s
        self.limits: list[Limits] = []
        self.ceilings_asked = 0

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        raise AssertionError("every trial is the search's")

    async def ceiling_frames_per_s(self, size: Size) -> float | None:
        self.ceilings_asked += 1
        return await super().ceiling_frames_per_s(size)

    async def search(
        self,
        search: Search,
        point: dict[str, Any],
        request: TrialRequest,
        goals: tuple[Goal, ...],
        limits: Limits,
        give_way: GiveWay | None = None,
    ) -> SearchResult:
        self.limits.append(limits)
        rate = Bounded(value=FOUND, lower=FOUND, upper=1.003 * FOUND, limited_by=LimitedBy.DUT)
        return SearchResult(
            outcomes={
                goal.name: Outcome(goal=goal.name, rate=rate, is_settled=True, ended=self.ended, trials=5)
                for goal in goals
            },
            trial_ids=(),
            traffic_s=1.0,
            took_s=self.took_s,
            most_sent_frames_per_s=self.sent,
        )


async def searched(context: Searched, **options: Any) -> Result:
    (result,) = await run(Throughput("t", Throughput.Options(frame_bytes=(64,), **options)), context)
    return result


@pytest.mark.parametrize(
    ("sent", "ceiling"),
    [(625_000.0, CALIBRATED), (1e6, None)],
    ids=["near what the tester sent", "far below it"],
)
async def test_the_testers_ceiling_is_measured_where_a_rate_comes_near_what_it_sent(
    sent: float, ceiling: float | None
) -> None:
    context = Searched(sent)
    assert (await searched(context)).values["ceiling_frames_per_s"] == ceiling
    assert context.ceilings_asked == (ceiling is not None)


async def test_an_interrupted_search_gives_its_rate_so_far_an_incomplete_verdict_and_no_further_trial() -> None:
    context = Searched(625_000.0, Ended.STOPPED)
    result = await searched(context)
    rate = result.values["ndr_frames_per_s"]
    assert (rate.value, result.verdict, context.ceilings_asked) == (FOUND, ResultVerdict.INCOMPLETE, 0)


@pytest.mark.parametrize(
    ("asked", "highest", "limited_by"),
    [(50_000.0, 50_000.0, LimitedBy.MAXIMUM_LOAD), (2 * LINE, LINE, LimitedBy.LINE_RATE)],
    ids=["below the line rate", "above it"],
)
async def test_no_load_above_the_maximum_is_tried(asked: float, highest: float, limited_by: LimitedBy) -> None:
    context = Searched()
    await searched(context, search=SearchChoice(maximum_load=asked))
    (limits,) = context.limits
    assert (limits.maximum_load_frames_per_s, limits.maximum_limited_by) == (highest, limited_by)


class Slow(Searched):
    """A search makes as many trials as its size asks for."""

    def __init__(self, trials: dict[Any, int]) -> None:
        super().__init__()
        self.trials, self.made, self.stops_at = trials, list[Any](), -1

    async def search(self, *given: Any, give_way: Any = None, **more: Any) -> SearchResult:
        *others, way = given
        size, ended = others[1]["frame_bytes"], self.ended
        try:
            for _ in range(self.trials[size]):
                self.made.append(size)
                await asyncio.sleep(0)
                if len(self.made) == self.stops_at:
                    task = asyncio.current_task()
                    assert task is not None
                    self.test.cancel()
                await way()
        except asyncio.CancelledError:
            ended = Ended.STOPPED
        found = await super().search(*others)
        return found.replace(outcomes={name: one.replace(ended=ended) for name, one in found.outcomes.items()})

    async def run(self) -> None:
        options = Throughput.Options(frame_bytes=(64, 512, 1518), search=SearchChoice(time=9.0))
        self.test = asyncio.create_task(run(Throughput("t", options), self))
        await self.test


async def test_sizes_with_a_time_take_turns_and_share_it() -> None:
    context = Slow({64: 2, 512: 4, 1518: 1})
    await context.run()
    assert context.made == [64, 512, 1518, 64, 512, 512, 512]
    assert [result.parameters["frame_bytes"] for result in context.published] == [64, 512, 1518]
    assert {limits.time_s for limits in context.limits} == {9.0}


async def test_of_an_interrupted_test_every_size_has_its_rate_so_far() -> None:
    context = Slow({64: 5, 512: 5, 1518: 5})
    context.stops_at = 5
    await context.run()
    assert context.made == [64, 512, 1518, 64, 512]
    assert [result.verdict for result in context.published] == [ResultVerdict.INCOMPLETE] * 3


def test_a_maximum_below_the_minimum_is_refused() -> None:
    with pytest.raises(ValidationError, match="`maximum_load` \\(500 pps\\) is not above `minimum_load`"):
        SearchChoice(maximum_load=500.0, minimum_load=1000.0)


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
    for minimum, lowest in ((1e6, 1e6), (2e6, LINE / 2)):
        context = Searched()
        await searched(context, search=SearchChoice(minimum_load=minimum))
        assert context.limits[0].minimum_load_frames_per_s == lowest


async def test_the_time_of_a_test_is_that_of_all_its_sizes() -> None:
    context = Searched(took_s=4.0)
    options = Throughput.Options(frame_bytes=(64, 512, 1518), search=SearchChoice(time=60.0))
    await run(Throughput("t", options), context)
    assert {(limits.time_s, limits.searches) for limits in context.limits} == {(60.0, 3)}


async def test_a_tester_that_sends_nothing_leaves_the_result_incomplete_and_says_why() -> None:
    result = await searched(Searched(0.0))
    rate = result.values["ndr_frames_per_s"]
    assert (rate.value, rate.limited_by, result.verdict) == (None, LimitedBy.TESTER, ResultVerdict.INCOMPLETE)
    assert rate.reason_null == result.disturbances[0] == "the tester sent nothing"


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


# The self-check: a rate that was found, compared with a known one.


class KnownRate(KnownContext):
    """The values of a DUT that passes 200 kpps, and 4000 more frames at once."""

    def known_rate_frames_per_s(self, trial_s: float) -> float:
        return 200_000.0 + 4_000 / trial_s

    def read(self, point: object, request: object) -> object:  # type: ignore[override]
        raise AssertionError("nothing is measured here")


def checked(lower: float | None, upper: float | None, *, passed_for_s: float | None = 2.0) -> tuple[object, object]:
    rate = Bounded(value=lower, lower=lower, upper=upper)
    outcome = Outcome(goal="NDR", rate=rate, is_settled=True, passed_for_s=passed_for_s)
    values = known_rate_values(KnownRate(), 64, outcome, 1.0)
    return values["agreement"], values["self_check"]


@pytest.mark.parametrize(
    ("lower", "upper", "agreement", "said"),
    [
        (201_500.0, 202_500.0, "agree", "found 201.5 to 202.5 kpps: agrees"),
        (201_200.0, 201_999.6, "agree", "found 201.2 to 202.0 kpps: agrees"),  # to a frame of a trial of 2 s
        (201_000.0, 201_900.0, "do not agree", "found 201.0 to 201.9 kpps: does not agree"),
        (202_100.0, 202_300.0, "do not agree", "found 202.1 to 202.3 kpps: does not agree"),
        (200_200.0, 204_700.0, "cannot be told", "found 200.2 to 204.7 kpps: cannot be told"),  # too wide
        (190_000.0, 195_000.0, "do not agree", "found 190.0 to 195.0 kpps: does not agree"),
        (210_000.0, None, "do not agree", "found at least 210.0 kpps: does not agree"),
        (150_000.0, None, "cannot be told", "found at least 150.0 kpps: cannot be told"),
        (None, None, "cannot be told", "found no rate: cannot be told"),
    ],
)
def test_an_interval_agrees_that_holds_the_known_rate_and_is_narrow(
    lower: float | None, upper: float | None, agreement: str, said: str
) -> None:
    assert checked(lower, upper) == (agreement, f"at 64 bytes expected 202.0 kpps, {said}")


def test_the_burst_counts_over_the_longest_trial_that_passed() -> None:
    assert "expected 200.1 kpps" in str(checked(200_000.0, 200_200.0, passed_for_s=60.0)[1])
    assert "expected 204.0 kpps" in str(checked(None, 210_000.0, passed_for_s=None)[1])


@pytest.mark.parametrize(("upper", "notes"), [(202_500.0, []), (201_900.0, ["does not agree"])])
def test_a_known_rate_that_was_missed_is_a_note_below_the_table(upper: float, notes: list[str]) -> None:
    rate = Bounded(value=201_500.0, lower=201_500.0, upper=upper)
    outcome = Outcome(goal="NDR", rate=rate, is_settled=True, passed_for_s=2.0)
    result = Result(
        id="a",
        test="a",
        method="throughput",
        parameters={"frame_bytes": 64},
        verdict=ResultVerdict.VALID,
        values={"ndr_frames_per_s": rate, **known_rate_values(KnownRate(), 64, outcome, 1.0)},
    )
    (section,) = sections([result], {})
    assert [note.text.rpartition(": ")[2] for note in section.notes] == notes


def test_of_other_duts_nothing_is_said() -> None:
    outcome = Outcome(goal="NDR", rate=Bounded(value=None), is_settled=False)

    class Unknown(KnownRate):
        def known_rate_frames_per_s(self, trial_s: float) -> None:  # type: ignore[override]
            return None

    assert known_rate_values(Unknown(), 64, outcome, 1.0) == {}


# A tester that was found to send nothing: no trial is made, and each method says so in a result without figures.


METHODS = (
    Impairments("test", Impairments.Options(rate="line_rate")),
    Impairments("test", Impairments.Options(rate="highest")),
    SingleCore("test", SingleCore.Options(frame_bytes=(64,))),
    ServiceActivation("test", ServiceActivation.Options(services=(Service(name="gold", cir=1e8),))),
    ReceiveSpread("test", ReceiveSpread.Options(rate="highest")),
    PortShares("test", PortShares.Options(rate="highest", frame_bytes=(64,))),
    AddressLearning("test", AddressLearning.Options()),
    SystemRecovery("test", SystemRecovery.Options(at="throughput", frame_bytes=(64,))),
)


class Nothing(KnownContext):
    bidirectional, ports = True, 4

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        raise AssertionError("a trial of no frames says nothing")


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
async def test_the_result_is_incomplete_and_says_what_the_tester_sends(method: FrameMethod) -> None:
    results = await run(method, Nothing(ceiling=0.0, throughput=1e5))
    assert {result.verdict for result in results} == {ResultVerdict.INCOMPLETE}
    assert "the tester sends no more than 0 pps" in results[0].disturbances[0]
    assert sections(results, {})
