"""Changes that are claimed: a known step is, at its run; noise alone, too few runs and invalid ones are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from nicbench.compare.history.figures import Figure
from nicbench.compare.history.trends import Trend, find_trend
from nicbench.compare.regressions import FEWEST_RUNS, Outcome

Draw = Callable[[random.Random], float]
NOISES = {
    "normal": lambda draw: draw.gauss(),
    "with outliers": lambda draw: draw.gauss() * (6.0 if draw.random() < 0.05 else 1.0),
    "to one side": lambda draw: draw.expovariate(1.0) - 1.0,
}
Say = Callable[[str, object], None]


def figures(numbers: Sequence[float], verdict: str = "valid") -> list[Figure]:
    return [Figure(number, verdict) for number in numbers]


def noise(count: int, seed: int, kind: str = "normal") -> list[float]:
    draw = random.Random(seed)
    return [1e6 * (1.0 + 0.01 * NOISES[kind](draw)) for _ in range(count)]


def step(numbers: Sequence[float], at: int, by: float = 0.95) -> list[float]:
    return [number * (by if place >= at else 1.0) for place, number in enumerate(numbers)]


def trend(numbers: Sequence[float], **asked: float) -> Trend:
    return find_trend(figures(numbers), higher_is_better=True, **asked)


SERIES = pytest.mark.parametrize("series", [25, pytest.param(200, marks=pytest.mark.acceptance)])


@SERIES
@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("count", [8, 20, 50, pytest.param(1000, marks=pytest.mark.acceptance)])
def test_noise_alone_is_claimed_in_one_series_of_fifty_at_most(
    kind: str, count: int, series: int, record_property: Say
) -> None:
    claimed = sum(bool(trend(noise(count, seed, kind)).changes) for seed in range(series))
    record_property("shown", f"{claimed} of {series} series of {count} values of noise ({kind}) have a change")
    assert claimed <= max(1, series // 50)


@SERIES
@pytest.mark.parametrize(("kind", "least"), [("normal", 0.95), ("with outliers", 0.85), ("to one side", 0.95)])
def test_a_step_of_5_percent_in_noise_of_1_percent_is_found_at_its_run(
    kind: str, least: float, series: int, record_property: Say
) -> None:
    changes = [trend(step(noise(30, seed, kind), 18)).changes for seed in range(series)]
    found = sum(len(each) == 1 and abs(each[0].first_after - 18) <= 1 for each in changes)
    record_property("shown", f"{found} of {series} steps ({kind}) are found at their run or the next to it")
    assert found >= least * series


def test_a_step_is_told_with_its_runs_its_size_and_whether_it_is_worse() -> None:
    one = trend(step(noise(30, 1), 18)).changes[0]
    assert (one.last_before, one.first_after, one.judgement.outcome) == (17, 18, Outcome.WORSE)
    assert one.judgement.change_ratio == pytest.approx(-0.05, abs=0.01)


def test_a_change_for_the_better_and_one_of_neither_kind_are_called_so() -> None:
    numbers = step(noise(30, 2), 15, by=1.06)
    assert trend(numbers).changes[0].judgement.outcome is Outcome.BETTER
    found = find_trend(figures(numbers), higher_is_better=None)
    assert found.changes[0].judgement.outcome is Outcome.DIFFERENT


@pytest.mark.parametrize("after", range(1, FEWEST_RUNS))
def test_too_few_runs_after_a_step_claim_nothing_and_say_how_many_are_needed(after: int) -> None:
    found = trend(step(noise(20 + after, 4), 20, by=0.8))
    assert found.changes == ()
    assert (found.recent, found.needed) == (after, FEWEST_RUNS - after)


def test_few_runs_claim_nothing() -> None:
    for count in range(2 * FEWEST_RUNS):
        assert trend(step([1.0] * count, count // 2, by=0.5)).changes == ()


def test_results_that_are_not_reliable_are_no_figures() -> None:
    numbers = noise(30, 6)
    spoiled = [
        Figure(number * 0.5, "disturbed") if 10 <= place < 18 else Figure(number, "valid")
        for place, number in enumerate(numbers)
    ]
    found = find_trend(spoiled, higher_is_better=True)
    assert found.changes == ()
    assert (found.levels[0].first, found.levels[0].last) == (0, 29)


def test_intervals_that_overlap_allow_no_claim() -> None:
    wide = [Figure(number, "valid", number * 0.9, number * 1.1, "dut") for number in step(noise(30, 7), 15, by=0.96)]
    assert find_trend(wide, higher_is_better=True).changes == ()
    narrow = [each._replace(lower=each.number * 0.999, upper=each.number * 1.001) for each in wide]
    assert len(find_trend(narrow, higher_is_better=True).changes) == 1


def test_a_change_within_the_tolerance_and_one_at_the_tester_s_limit_are_not_claimed() -> None:
    numbers = step(noise(40, 8), 20)
    assert trend(numbers, tolerance_ratio=0.1).changes == ()
    near = [each._replace(near=place >= 20) for place, each in enumerate(figures(numbers))]
    assert find_trend(near, higher_is_better=True).changes == ()


def below(upper: float, count: int) -> list[Figure]:
    """Figures of runs in which every load failed."""
    return [Figure(None, "valid", None, upper, "dut")] * count


def enclosed(numbers: Sequence[float]) -> list[Figure]:
    return [Figure(number, "valid", number, 1.002 * number, "dut") for number in numbers]


def test_a_rate_that_collapses_below_every_load_is_a_change_for_the_worse_and_its_return_one_for_the_better() -> None:
    found = find_trend([*enclosed(noise(8, 3)), *below(1000.0, 8), *enclosed(noise(8, 5))], higher_is_better=True)
    down, up = found.changes
    assert (down.first_after, down.judgement.outcome, down.judgement.after_below) == (8, Outcome.WORSE, 1000.0)
    assert (up.first_after, up.judgement.outcome) == (16, Outcome.BETTER)
    assert [(level.is_only_below, level.median < 1100.0) for level in found.levels] == [
        (False, False),
        (True, True),
        (False, False),
    ]


def test_a_bound_above_the_usual_rate_is_no_change() -> None:
    found = find_trend([*enclosed(noise(10, 3)), *below(2e6, 6)], higher_is_better=True)
    assert found.changes == ()
    assert found.levels[0].is_only_below, "were those runs far below their bounds, the median would be lower"


def test_few_runs_that_collapsed_are_recent_and_no_level() -> None:
    found = find_trend([*enclosed(noise(12, 3)), *below(1000.0, 2)], higher_is_better=True)
    assert (found.changes, found.recent, found.needed) == ((), 2, FEWEST_RUNS - 2)


def test_an_outlier_beside_a_step_hides_neither_of_its_sides() -> None:
    numbers = step(noise(30, 9), 15)
    numbers[15] *= 0.7
    (found,) = trend(numbers).changes
    assert (found.last_before, found.first_after) == (14, 16)
