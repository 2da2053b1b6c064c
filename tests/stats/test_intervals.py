"""Intervals by Student's t, of a mean and of a ratio: against closed forms, printed tables and draws."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from nicbench.stats.intervals import Agreement, RatioInterval, agreement, mean_interval, ratio_interval


def half_width(values: list[float], confidence_ratio: float) -> float:
    found = mean_interval(values, confidence_ratio, 0.05)
    assert found.lower is not None
    assert found.upper is not None
    assert found.mean - found.lower == pytest.approx(found.upper - found.mean, rel=1e-12)
    return found.upper - found.mean


@pytest.mark.parametrize("confidence_ratio", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_two_and_three_values_have_closed_forms(confidence_ratio: float) -> None:
    # One degree of freedom is the Cauchy distribution, two have an algebraic quantile.
    of_two = math.tan(math.pi * confidence_ratio / 2.0)
    assert half_width([10.0, 14.0], confidence_ratio) == pytest.approx(of_two * 2.0, rel=1e-9)
    of_three = confidence_ratio * math.sqrt(2.0 / (1.0 - confidence_ratio**2))
    assert half_width([1.0, 2.0, 3.0], confidence_ratio) == pytest.approx(of_three / math.sqrt(3.0), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "confidence_ratio", "quantile"),
    [(4, 0.95, 3.182), (5, 0.95, 2.776), (10, 0.95, 2.262), (10, 0.99, 3.250), (20, 0.99, 2.861), (31, 0.95, 2.042)],
)
def test_quantiles_are_those_of_printed_tables(n: int, confidence_ratio: float, quantile: float) -> None:
    values = [float(number) for number in range(n)]
    assert half_width(values, confidence_ratio) == pytest.approx(
        quantile * statistics.stdev(values) / math.sqrt(n), rel=2e-4
    )


def test_the_width_is_the_full_width_as_a_share_of_the_mean() -> None:
    # 99 and 101: s = sqrt(2), half width t * s / sqrt(2) = 12.706, full width 25.4 % of 100.
    found = mean_interval([99.0, 101.0], 0.95, 0.26)
    assert found.width_ratio == pytest.approx(0.25412, rel=1e-4)
    assert found.reached
    assert not mean_interval([99.0, 101.0], 0.95, 0.25).reached
    below_zero = mean_interval([-99.0, -101.0], 0.95, 0.26)
    assert below_zero.width_ratio == pytest.approx(found.width_ratio)


def test_what_never_differs_is_known_and_one_value_is_not() -> None:
    assert mean_interval([3.0, 3.0], 0.95, 0.001).reached
    nothing_lost = mean_interval([0.0, 0.0, 0.0], 0.95, 0.05)
    assert (nothing_lost.width_ratio, nothing_lost.reached) == (0.0, True)
    alone = mean_interval([3.0], 0.95, 1.0)
    assert (alone.mean, alone.lower, alone.width_ratio, alone.reached) == (3.0, None, None, False)


def test_of_a_mean_of_zero_no_share_is_known() -> None:
    found = mean_interval([-1.0, 1.0], 0.95, 0.05)
    assert (found.mean, found.width_ratio, found.reached) == (0.0, None, False)
    assert found.upper == pytest.approx(12.7062, rel=1e-5)


def test_so_many_intervals_hold_the_mean_as_the_confidence_says(draw: random.Random) -> None:
    sets = 4000
    holding = 0
    for _ in range(sets):
        found = mean_interval([draw.gauss(10.0, 3.0) for _ in range(4)], 0.9, 0.05)
        assert found.lower is not None
        assert found.upper is not None
        holding += found.lower <= 10.0 <= found.upper
    assert abs(holding / sets - 0.9) < 5 * math.sqrt(0.9 * 0.1 / sets)


def test_the_interval_is_that_of_students_t_of_the_logarithms() -> None:
    """Computed by hand: logarithms 0.1, 0.2, 0.3; mean 0.2, s 0.1, t of 2 degrees of freedom at 95 % 4.302653."""
    found = ratio_interval([(1.0, math.exp(step)) for step in (0.1, 0.2, 0.3)], 0.95)
    assert found is not None
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.2))
    assert (found.lower, found.upper) == (
        pytest.approx(math.exp(0.2 - half), rel=1e-6),
        pytest.approx(math.exp(0.2 + half), rel=1e-6),
    )
    assert found.pairs == 3


def test_what_changes_for_both_alike_falls_out() -> None:
    drifting = [(10.0**step, 1.1 * 10.0**step) for step in range(5)]
    found = ratio_interval(drifting, 0.95)
    assert found is not None
    assert (found.lower, found.upper) == (pytest.approx(1.1), pytest.approx(1.1))


def test_pairs_that_lie_far_apart_tell_nothing() -> None:
    found = ratio_interval([(1.0, 1e12), (1e12, 1.0)], 0.9999)
    assert found is not None
    assert agreement(found, 1.0) is Agreement.UNKNOWN


def test_the_other_way_round_is_the_inverse() -> None:
    pairs = [(1.0, 1.1), (2.0, 2.1), (3.0, 3.6)]
    one, other = (ratio_interval(given, 0.9) for given in (pairs, [(b, a) for a, b in pairs]))
    assert one is not None
    assert other is not None
    assert one.lower == pytest.approx(1 / other.upper)


def test_of_fewer_than_two_pairs_there_is_none() -> None:
    assert ratio_interval([(1.0, 1.0)], 0.95) is None


def test_it_holds_the_true_ratio_as_often_as_it_says(draw: random.Random) -> None:
    held = 0
    for _ in range(500):
        pairs = [(draw.lognormvariate(0, 0.1), 1.05 * draw.lognormvariate(0, 0.1)) for _ in range(10)]
        found = ratio_interval(pairs, 0.95)
        held += found is not None and found.lower <= 1.05 <= found.upper
    assert 450 <= held <= 497  # 475 expected, five standard deviations of 4.9 either way


@pytest.mark.parametrize(
    ("lower", "upper", "answer"),
    [
        (0.97, 1.04, Agreement.AGREE),
        (1 / 1.05, 1.05, Agreement.AGREE),
        (1.08, 1.15, Agreement.DISAGREE),
        (0.5, 0.9, Agreement.DISAGREE),
        (0.99, 1.06, Agreement.UNKNOWN),
        (0.9, 1.2, Agreement.UNKNOWN),
        (0.9, 1.0, Agreement.UNKNOWN),
    ],
)
def test_an_interval_within_beside_or_over_the_bound(lower: float, upper: float, answer: Agreement) -> None:
    assert agreement(RatioInterval(1.0, lower, upper, 10), 0.05) is answer
