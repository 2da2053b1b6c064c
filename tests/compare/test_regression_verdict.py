"""A value is worse only where a change is beyond the tolerance and shown; what cannot be judged is not worse."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.compare.regressions import FinishedRun, Outcome, check_regressions, judge
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy, Result, ResultVerdict, Summary, Value
from nicbench.store.folder import RunFolder


def rate(value: float, lower: float, upper: float | None, limit: LimitedBy = LimitedBy.DUT) -> Bounded:
    return Bounded(value=value, lower=lower, upper=upper, limited_by=limit)


NOTHING = Bounded(value=None, upper=10.0, reason_null=f"{PASSES_NOTHING} at any load", passes_nothing=True)
BELOW = Bounded(value=None, upper=50.0, limited_by=LimitedBy.DUT, reason_null="frames were lost at 50 frames/s")
UNKNOWN = Bounded(value=None, reason_null="every trial was disturbed")
LINE = rate(100.0, 100.0, None, LimitedBy.LINE_RATE)


@pytest.mark.parametrize(
    ("before", "after", "outcome", "why"),
    [
        ([rate(100, 100, 101)], [rate(90, 90, 91)], Outcome.WORSE, "do not overlap"),
        ([rate(90, 90, 91)], [rate(100, 100, 101)], Outcome.BETTER, "do not overlap"),
        ([rate(100, 100, 101)], [rate(97, 97, 98)], Outcome.TOLERATED, "tolerance"),
        ([rate(100, 100, 120)], [rate(90, 90, 110)], Outcome.SAME, "overlap"),
        ([LINE], [rate(90, 90, 91)], Outcome.WORSE, "do not overlap"),
        ([LINE], [LINE], Outcome.SAME, "equal"),
        ([LINE], [rate(80, 80, None, LimitedBy.TESTER)], Outcome.UNKNOWN, "tester was the limit"),
        ([rate(80, 80, None, LimitedBy.TESTER)], [rate(60, 60, 61)], Outcome.WORSE, "do not overlap"),
        ([rate(100, 100, 101)], [NOTHING], Outcome.WORSE, "do not overlap"),
        ([NOTHING], [NOTHING], Outcome.SAME, "equal"),
        (
            [rate(100, 100, 101)] * 5,
            [*[NOTHING] * 2, *[rate(100, 100, 101)] * 3],
            Outcome.UNKNOWN,
            "in 2 of 5 runs now",
        ),
        ([NOTHING, LINE, LINE], [NOTHING, LINE, LINE], Outcome.SAME, "equal medians"),
        ([rate(100, 100, 101)], [UNKNOWN], Outcome.UNKNOWN, "no value of this run"),
        ([None], [5.0], Outcome.UNKNOWN, "no value before"),
        (["words"], ["words"], Outcome.UNKNOWN, "no value"),
        ([100.0], [90.0], Outcome.WORSE, "tolerance alone"),
        ([0.0], [0.0], Outcome.SAME, "equal"),
        ([0.0], [3.0], Outcome.BETTER, "tolerance alone"),
        ([100.0, 88.0], [90.0, 85.0], Outcome.SAME, "overlap"),
        ([100.0, 98.0, 99.0], [90.0, 85.0], Outcome.WORSE, "do not overlap"),
        ([100.0] * 5, [90.0] * 5, Outcome.WORSE, "5 runs against 5"),
        ([100.0] * 5, [90.0], Outcome.WORSE, "intervals do not overlap: [100.0, 100.0] before and [90.00, 90.00]"),
        (
            [100, 101, 99, 100.5, 99.5],
            [90, 91, 89, 90.5, 89.5],
            Outcome.WORSE,
            "5 runs against 5: ratio of medians 0.9",
        ),
        ([100, 60, 140, 80, 120], [90, 130, 50, 70, 89], Outcome.SAME, "5 runs against 5"),
        (
            [rate(value, value, value + 30) for value in (100, 101, 99, 100.5, 99.5)],
            [rate(value, value, value + 30) for value in (90, 91, 89, 90.5, 89.5)],
            Outcome.SAME,
            "found their rates overlap",
        ),
        ([float("nan")], [1.0], Outcome.UNKNOWN, "no value before"),
        ([rate(100, 100, 101)], [BELOW], Outcome.WORSE, "do not overlap"),
        ([BELOW], [rate(100, 100, 101)], Outcome.BETTER, "do not overlap"),
        ([BELOW], [BELOW], Outcome.SAME, "no load that was tried passed"),
        ([rate(100, 100, 101)] * 4, [*[rate(100, 100, 101)] * 4, *[BELOW] * 4], Outcome.UNKNOWN, "there are runs now"),
        ([BELOW], [UNKNOWN], Outcome.UNKNOWN, "no value of this run"),
        (
            [rate(value, value, value + 1) for value in (100, 101, 99, 100.5, 99.5)],
            [rate(value, value, None, LimitedBy.TESTER) for value in (80, 81, 79, 80.5, 79.5)],
            Outcome.UNKNOWN,
            "tester was the limit",
        ),
    ],
)
def test_of_a_value_that_is_better_higher(before: list[Value], after: list[Value], outcome: Outcome, why: str) -> None:
    found = judge(before, after, higher_is_better=True, tolerance_ratio=0.05)
    assert found.outcome is outcome
    assert why in found.why


@pytest.mark.parametrize(
    ("after", "outcome"), [(120.0, Outcome.WORSE), (80.0, Outcome.BETTER), (103.0, Outcome.TOLERATED)]
)
def test_of_a_value_that_is_better_lower(after: float, outcome: Outcome) -> None:
    assert judge([100.0], [after], higher_is_better=False, tolerance_ratio=0.05).outcome is outcome


def test_a_loss_where_there_was_none_is_worse_however_small() -> None:
    found = judge([0.0], [0.001], higher_is_better=False, tolerance_ratio=0.05)
    assert (found.outcome, found.change_ratio) == (Outcome.WORSE, None)


def test_a_side_of_which_only_a_bound_is_known_has_the_bound_and_no_median() -> None:
    before = [rate(value, value, value + 1) for value in (100, 102, 101)]
    found = judge(before, [BELOW, BELOW], higher_is_better=True, tolerance_ratio=0.05)
    assert (found.before, found.after, found.before_below, found.after_below) == (101.0, None, None, 50.0)
    mixed = judge(before, [BELOW, rate(40, 40, 41)], higher_is_better=True, tolerance_ratio=0.05)
    assert (mixed.outcome, mixed.after, mixed.after_below) == (Outcome.WORSE, None, None)


def test_what_is_neither_better_higher_nor_lower_is_only_different() -> None:
    assert judge([1.0], [2.0], higher_is_better=None, tolerance_ratio=0.05).outcome is Outcome.DIFFERENT


def test_a_tolerance_of_nothing_takes_every_change_that_is_shown() -> None:
    assert judge([1000.0], [999.0], higher_is_better=True, tolerance_ratio=0.0).outcome is Outcome.WORSE


@pytest.mark.parametrize("earlier", [4, 10])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_a_run_that_does_not_differ_is_called_worse_no_more_often_than_it_is_the_lowest(
    draw: random.Random, earlier: int, outliers: float
) -> None:
    tries, worse = 1500, 0
    for _ in range(tries):
        values = [1e6 * (1 + 0.1 * draw.gauss() * (6 if draw.random() < outliers else 1)) for _ in range(earlier + 1)]
        found = judge(values[:-1], values[-1:], higher_is_better=True, tolerance_ratio=0.05)
        worse += found.outcome is Outcome.WORSE
    expected = tries / (earlier + 1)
    assert worse <= expected + 4 * expected**0.5


def ran(tmp_path: Path, *results: tuple[Bounded, ResultVerdict]) -> FinishedRun:
    found = tuple(
        Result(
            id=f"throughput/{run}",
            test="throughput",
            method="throughput",
            scope="per port",
            run=run,
            parameters={"frame_bytes": 64},
            values={"ndr_frames_per_s": value},
            verdict=verdict,
        )
        for run, (value, verdict) in enumerate(results, 1)
    )
    summary = Summary(title="t", verdict=ResultVerdict.VALID, results=found)
    return FinishedRun(RunFolder(tmp_path), summary, None)


def test_a_bound_stays_where_a_disturbed_result_is_left_out(tmp_path: Path) -> None:
    below = ran(tmp_path, (BELOW, ResultVerdict.VALID), (BELOW, ResultVerdict.DISTURBED))
    before = ran(tmp_path, (rate(100, 100, 101), ResultVerdict.VALID))
    (row,) = check_regressions([below], [before], 0.05).rows
    assert (row.judgement.outcome, row.judgement.after_below) == (Outcome.WORSE, 50.0)
    assert "1 disturbed or incomplete result left out" in row.judgement.why
