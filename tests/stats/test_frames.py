"""Rates of instances against a target: known by hand, by exact arithmetic, and where something is unknown."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction

import pytest

from nicbench.core.result import Result, Value
from nicbench.stats.frames import (
    FiguresOverRuns,
    HeldInstances,
    Instance,
    RunFigures,
    Target,
    TriedPoint,
    fairness,
    figures_of_run,
    figures_of_sum,
    find_sustained,
    group_by_point,
    summarise_run_figures,
)

TARGET = Target()
SEED = 20221122


def run(*rates: float | None) -> RunFigures:
    return figures_of_run([Instance(rate) for rate in rates], TARGET)


def tried(instances: int, *sums: float | None) -> FiguresOverRuns:
    return summarise_run_figures([figures_of_sum(instances, each, TARGET) for each in sums], TARGET)


def test_the_target_is_met_at_ninety_nine_percent_of_it() -> None:
    assert TARGET.for_instances(9) == 216.0
    assert TARGET.is_met(23.76)
    assert not TARGET.is_met(23.759)
    assert Target(tolerance_ratio=0.0).is_met(24.0)
    assert not Target(tolerance_ratio=0.0).is_met(23.99)


def test_exactly_the_least_meets_it_however_it_comes_out_in_binary() -> None:
    for instances in range(1, 101):
        least = float(Fraction("23.76") * instances)
        assert TARGET.is_met(least, instances)
        assert TARGET.is_met(math.fsum([23.76] * instances), instances)
        assert not TARGET.is_met(least - 1e-6, instances)


@pytest.mark.parametrize("wrong", [{"frames_per_s": 0.0}, {"frames_per_s": math.inf}, {"tolerance_ratio": 1.0}])
def test_a_target_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not"):
        Target(**wrong)


def test_a_run_by_hand() -> None:
    """The deviation is of the population: of 20 and 28 it is 4, where that of a sample would be 5.66."""
    found = run(20.0, 28.0)
    assert (found.sum_frames_per_s, found.average_frames_per_s) == (48.0, 24.0)
    assert found.standard_deviation_frames_per_s == 4.0
    assert (found.minimum_frames_per_s, found.maximum_frames_per_s) == (20.0, 28.0)
    assert found.fairness == pytest.approx(48**2 / (2 * (20**2 + 28**2)))
    assert found.is_met, "by the sum, one instance makes up for the other"
    assert (found.instances_met, found.every_instance_met) == (1, False)


def test_of_one_instance_nothing_deviates() -> None:
    assert run(25.0).standard_deviation_frames_per_s == 0.0


def test_figures_are_those_of_exact_arithmetic() -> None:
    generator = random.Random(SEED)
    for _ in range(200):
        rates = [generator.randrange(0, 3000) / 100 for _ in range(generator.randrange(1, 13))]
        exact = [Fraction(rate) for rate in rates]
        found, mean = run(*rates), sum(exact) / len(exact)
        variance = sum((rate - mean) ** 2 for rate in exact) / len(exact)
        assert found.sum_frames_per_s == pytest.approx(float(sum(exact)), rel=1e-14)
        assert found.average_frames_per_s == pytest.approx(float(mean), rel=1e-14)
        assert found.standard_deviation_frames_per_s == pytest.approx(math.sqrt(variance), rel=1e-12)
        squares = sum(rate**2 for rate in exact)
        jain = float(sum(exact) ** 2 / (len(exact) * squares)) if squares else None
        assert found.fairness == (None if jain is None else pytest.approx(jain, rel=1e-12)), f"seed {SEED}: {rates}"


def test_an_instance_that_nobody_measured_leaves_no_sum_and_meets_nothing() -> None:
    found = run(25.0, None, 25.0)
    assert found.sum_frames_per_s is None
    assert found.average_frames_per_s is None
    assert found.standard_deviation_frames_per_s is None
    assert found.fairness is None
    assert not found.is_met
    assert found.instances_met == 2


def test_zero_is_known() -> None:
    found = run(0.0, 0.0)
    assert (found.sum_frames_per_s, found.fairness, found.is_met) == (0.0, None, False)


@pytest.mark.parametrize(
    ("rates", "index"), [((5.0,) * 7, 1.0), ((1.0, 0.0, 0.0, 0.0), 0.25), ((1e-200, 1e-200), 1.0), ((3.0, 1.0), 0.8)]
)
def test_jains_index(rates: tuple[float, ...], index: float) -> None:
    assert fairness(rates) == pytest.approx(index)


def test_dropped_frames_add_up_and_are_unknown_where_one_is() -> None:
    counted = figures_of_run([Instance(24.0, 3, 480), Instance(23.0, 20, 480)], TARGET)
    assert (counted.dropped_frames, counted.due_frames) == (23, 960)
    summary = summarise_run_figures(
        [counted, figures_of_run([Instance(24.0, 0, 480), Instance(24.0, 1, 480)], TARGET)], TARGET
    )
    assert (summary.dropped_frames, summary.due_frames) == (24, 1920)
    assert summary.dropped_ratio == 24 / 1920
    partly = figures_of_run([Instance(24.0, 3, 480), Instance(24.0)], TARGET)
    assert partly.dropped_frames is None
    assert summarise_run_figures([counted, partly], TARGET).dropped_ratio is None


def test_more_frames_dropped_than_due_are_refused() -> None:
    with pytest.raises(ValueError, match="481 dropped frames of 480"):
        Instance(24.0, 481, 480)


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf])
def test_a_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="unknown one is None"):
        Instance(rate)


def test_over_runs_by_hand() -> None:
    found = summarise_run_figures([run(24.0, 24.0), run(24.0, 18.0), run(24.0, 23.8)], TARGET)
    assert found.average_frames_per_s == pytest.approx((48.0 + 42.0 + 47.8) / 3)
    assert found.median_frames_per_s == pytest.approx(47.8)
    assert (found.minimum_frames_per_s, found.maximum_frames_per_s) == (42.0, 48.0)
    assert found.target_frames_per_s == 48.0
    assert (found.runs_met, found.runs_met_ratio) == (2, 2 / 3)
    assert (found.instances_met, found.instances_counted, found.instances_met_ratio) == (5, 6, 5 / 6)
    assert found.runs_met_by_every_instance == 2
    assert found.met_in_median_run


def test_where_only_sums_are_known_nothing_is_said_of_instances() -> None:
    found = tried(2, 48.0, 42.0)
    assert (found.runs_met, found.instances_met, found.instances_met_ratio) == (1, None, None)
    assert found.runs_met_by_every_instance is None
    answer = find_sustained([found])
    assert answer.by_every_instance is None


def test_an_unknown_run_is_the_lowest_for_the_median_run_and_no_number_elsewhere() -> None:
    found = tried(1, 24.0, None, 24.0)
    assert (found.runs, found.runs_known, found.runs_met) == (3, 2, 2)
    assert (found.average_frames_per_s, found.median_frames_per_s) == (24.0, 24.0)
    assert found.met_in_median_run
    assert not tried(1, 24.0, None).met_in_median_run
    assert not tried(1, None, None).met_in_median_run
    assert tried(1, None).average_frames_per_s is None


@pytest.mark.parametrize("runs", [[], [run(24.0), run(24.0, 24.0)]])
def test_only_runs_with_the_same_number_of_instances_are_summed_up(runs: list[RunFigures]) -> None:
    with pytest.raises(ValueError, match="the same number of instances"):
        summarise_run_figures(runs, TARGET)


def test_streams_sustained_in_every_run_and_in_the_median_run() -> None:
    good, bad = 24.0, 20.0
    found = find_sustained(
        [tried(3, 3 * bad, 3 * bad, 3 * good), tried(1, good, good, good), tried(2, 40.0, 48.0, 48.0)]
    )
    assert found.in_every_run == HeldInstances(1, 3)
    assert found.in_median_run == HeldInstances(2, 3)


def test_a_smaller_number_that_did_not_hold_is_named() -> None:
    found = find_sustained([tried(1, 24.0), tried(2, 30.0), tried(3, 72.0)])
    assert found.in_every_run == HeldInstances(3, 3, gaps=(2,))
    assert found.in_every_run.is_at_least


def test_none_held_is_zero_only_where_one_was_tried() -> None:
    low = [find_sustained([tried(instances, 1.0)]) for instances in (1, 4)]
    assert [one and one.in_every_run.instances for one in low] == [0, None]
    assert not low[1].in_every_run.is_at_least
    assert find_sustained([]) is None


def test_two_summaries_of_one_number_are_refused() -> None:
    with pytest.raises(ValueError, match="several"):
        find_sustained([tried(1, 24.0), tried(1, 24.0)])


def test_the_median_of_an_even_number_is_between_the_two_in_the_middle() -> None:
    sums = [10.0, 20.0, 24.0, 30.0]
    assert tried(1, *sums).median_frames_per_s == statistics.median(sums) == 22.0


# Runs made of results: whose run it is, which target it had, and what is known of it.


def result(
    number: int | None, *, run: int | None = 1, instances: int = 2, warm_up: bool = False, **values: Value
) -> Result:
    """Of an instance, or of all of them; measured."""
    part = {"part": "runs"} if number is None else {"part": "instances", "instance": number}
    return Result(
        id=f"frames/{run}/{number}",
        method="frames",
        run=run,
        warm_up=warm_up,
        parameters={**part, "direction": "read", "instances": instances},
        values=values,
    )


def only(*results: Result, default: Target | None = None) -> TriedPoint:
    (one,) = group_by_point(results, default).values()
    return one


def test_a_measured_result_says_itself_whose_run_it_is_and_one_that_warms_up_is_left_out() -> None:
    found = only(
        result(None, run=1, warm_up=True, sum_frames_per_s=1.0),
        result(None, run=3, sum_frames_per_s=3.0),
        result(None, run=2, sum_frames_per_s=2.0),
    )
    assert [(ran.run, ran.figures.sum_frames_per_s) for ran in found.runs] == [(2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(
    "stated",
    [
        result(None, sum_frames_per_s=50.0, target_frames_per_s=60.0, tolerance_percent=5.0),
        result(1, frames_per_s=25.0, target_frames_per_s=30.0, tolerance_percent=5.0),
    ],
    ids=["of all together", "of one"],
)
def test_the_target_is_that_of_the_results(stated: Result) -> None:
    found = only(stated, default=Target())
    assert found.target == Target(30.0, 0.05)
    assert not found.is_assumed


@pytest.mark.parametrize("wrong", [0.0, -24.0, float("inf"), None])
def test_without_a_target_in_what_was_measured_there_is_none(wrong: float | None) -> None:
    found = only(result(None, sum_frames_per_s=50.0, target_frames_per_s=wrong), default=Target())
    assert found.target is None


def test_what_is_known_of_instances_comes_before_their_sum() -> None:
    found = only(
        result(None, sum_frames_per_s=50.0, bytes_per_s=5e8),
        result(1, frames_per_s=20.0, bytes_per_s=2e8),
        result(2, frames_per_s=24.0, bytes_per_s=3e8),
    )
    (ran,) = found.runs
    assert ran.figures.sum_frames_per_s == 44.0
    assert ran.bytes_per_s == 5e8
    assert ran.whole is not None
    assert [one is not None for one in ran.instances] == [True, True]


def test_bytes_of_some_instances_are_not_those_of_all() -> None:
    some = only(result(1, frames_per_s=20.0, bytes_per_s=2e8), result(2, frames_per_s=24.0))
    every = only(result(1, frames_per_s=20.0, bytes_per_s=2e8), result(2, frames_per_s=24.0, bytes_per_s=3e8))
    assert [some.runs[0].bytes_per_s, every.runs[0].bytes_per_s] == [None, 5e8]


def test_a_measured_run_of_which_nothing_is_known_met_nothing() -> None:
    found = only(result(None, sum_frames_per_s=None, target_frames_per_s=48.0))
    assert (found.over.runs, found.over.runs_known, found.over.runs_met) == (1, 0, 0)
