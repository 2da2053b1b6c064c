"""Whether two tools agree: the interval of a ratio, and what a bound makes of it."""

from __future__ import annotations

import math
import random

import pytest

from nicbench.stats.ratios import Agreement, RatioInterval, agreement, ratio_interval


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
