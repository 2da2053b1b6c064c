"""What a sample comes to, and what lies far off: against printed values, and where there is little to say."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from nicbench.stats.sample import (
    Range,
    Rule,
    Sample,
    describe,
    find_deviation_range,
    find_median_range,
    find_sum_range,
    outliers,
)

_IGLEWICZ = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
"""Iglewicz and Hoaglin 1993: of ten values two are outliers, which a rule by mean and deviation does not find."""


def test_both_standard_deviations_are_named_and_differ() -> None:
    found = describe([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (found.n, found.mean, found.median, found.minimum, found.maximum) == (8, 5.0, 4.5, 2.0, 9.0)
    assert found.population_standard_deviation == 2.0
    assert found.sample_standard_deviation == pytest.approx(math.sqrt(32 / 7))
    assert found.coefficient_of_variation == pytest.approx(math.sqrt(32 / 7) / 5)


def test_quartiles_are_of_type_7() -> None:
    """By R: quantile(c(6, 7, 15, 36, 39, 40, 41, 42, 43, 47, 49)), quantile(1:10)."""
    first = describe([6, 7, 15, 36, 39, 40, 41, 42, 43, 47, 49])
    assert (first.lower_quartile, first.median, first.upper_quartile) == (25.5, 40, 42.5)
    second = describe(range(1, 11))
    assert (second.lower_quartile, second.upper_quartile) == (3.25, 7.75)


def test_unknown_values_are_counted_and_never_taken_for_zero() -> None:
    found = describe([None, 3.0, math.nan, 5.0, math.inf])
    assert (found.n, found.unknown, found.mean, found.minimum) == (2, 3, 4.0, 3.0)


def test_of_nothing_and_of_one_value_no_spread_is_known() -> None:
    assert describe([]) == Sample(n=0, unknown=0)
    assert describe([None]) == Sample(n=0, unknown=1)
    alone = describe([3.0])
    assert (alone.mean, alone.median, alone.lower_quartile, alone.upper_quartile) == (3.0, 3.0, 3.0, 3.0)
    assert alone.sample_standard_deviation is None
    assert alone.population_standard_deviation is None
    assert alone.coefficient_of_variation is None
    assert not alone.is_constant


def test_equal_values_have_no_spread_and_their_own_mean() -> None:
    found = describe([0.1, 0.1, 0.1])  # 0.1 + 0.1 + 0.1 is more than 0.3
    assert (found.mean, found.sample_standard_deviation, found.coefficient_of_variation) == (0.1, 0.0, 0.0)
    assert found.is_constant
    assert describe([-1.0, 1.0]).coefficient_of_variation is None


def test_the_order_of_values_does_not_matter(draw: random.Random) -> None:
    values = [draw.gauss(10, 3) for _ in range(20)]
    assert describe(draw.sample(values, 20)) == describe(values)


def test_outliers_are_named_with_their_place_and_both_rules_find_them() -> None:
    for rule in Rule:
        found = outliers([None, *_IGLEWICZ], rule)
        assert [(one.place, one.value) for one in found.found] == [(9, 8.2), (10, 8.3)]


def test_the_bounds_of_both_rules() -> None:
    """By hand: quartiles 2.3 and 2.6 of the first; median 2.45, MAD 0.15 of the second."""
    values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2]
    fences = outliers(values)
    assert (fences.lower, fences.upper) == (pytest.approx(2.3 - 1.5 * 0.3), pytest.approx(2.6 + 1.5 * 0.3))
    assert [one.value for one in fences.found] == [8.2]
    scores = outliers(_IGLEWICZ, Rule.MODIFIED_Z)
    assert scores.upper == pytest.approx(2.45 + 3.5 * 0.15 / 0.6745)


def test_where_most_values_are_the_same_every_other_one_is_shown_and_the_note_says_so() -> None:
    for rule in Rule:
        found = outliers([24.0, 24.0, 24.0, 24.0, 24.0, 23.9], rule)
        assert [one.value for one in found.found] == [23.9]
        assert found.note == "the middle values are all the same: every other value is outside, however near"


def test_of_few_values_none_is_called_an_outlier() -> None:
    found = outliers([1.0, None, 1.0, 1000.0])
    assert found.found == ()
    assert found.note == "of fewer than 4 values none can be called an outlier"


# What statistics of rounded figures can be, held against NumPy and SciPy at every corner and at many points.


HALF = 0.05


def drawn(draw: random.Random) -> np.ndarray:
    spread = draw.choice((0.0, 0.02, 0.1, 1.0))
    return np.array([round(25.0 + draw.gauss(0.0, spread), 1) for _ in range(draw.randint(2, 9))])


def ranges(values: np.ndarray, half: float = HALF) -> list[Range]:
    return [Range(value - half, value + half) for value in values]


def corners(values: np.ndarray) -> np.ndarray:
    return values + HALF * np.array(list(itertools.product((-1.0, 1.0), repeat=len(values))))


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_deviation_is_greatest_at_a_corner_and_least_about_one_point(draw: random.Random, ddof: int) -> None:
    for _ in range(100):
        values = drawn(draw)
        found = find_deviation_range(ranges(values), len(values) - ddof)
        every = np.std(corners(values), axis=1, ddof=ddof)
        assert found.most == pytest.approx(every.max(), abs=1e-9)
        points = np.linspace(values.min() - HALF, values.max() + HALF, 2001)
        distances = np.clip(np.abs(values[:, None] - points) - HALF, 0.0, None)
        least = np.sqrt((distances**2).sum(axis=0).min() / (len(values) - ddof))
        assert found.least == pytest.approx(least, abs=1e-3)


def test_without_rounding_they_are_those_of_numpy(draw: random.Random) -> None:
    for _ in range(100):
        values = drawn(draw)
        values[0] += 1.0
        exact = ranges(values, 0.0)
        for found, expected in (
            (find_sum_range(exact), np.sum(values)),
            (find_median_range(exact), np.median(values)),
            (find_deviation_range(exact, len(values)), np.std(values)),
            (find_deviation_range(exact, len(values) - 1), np.std(values, ddof=1)),
        ):
            assert (found.least, found.most) == pytest.approx((expected, expected), abs=1e-7)


def test_sums_and_medians_reach_from_corner_to_corner(draw: random.Random) -> None:
    for _ in range(100):
        values = drawn(draw)
        every = corners(values)
        for found, of_each in (
            (find_sum_range(ranges(values)), every.sum(axis=1)),
            (find_median_range(ranges(values)), np.median(every, axis=1)),
        ):
            assert (found.least, found.most) == pytest.approx((of_each.min(), of_each.max()))


def test_of_unequal_ranges_no_deviation_is_left_out(draw: random.Random) -> None:
    for _ in range(100):
        values = drawn(draw)
        halves = np.array([draw.choice((0.005, 0.05, 0.5)) for _ in values])
        found = find_deviation_range(
            [Range(value - half, value + half) for value, half in zip(values, halves, strict=True)], len(values)
        )
        shifts = np.array([[draw.uniform(-1.0, 1.0) for _ in values] for _ in range(50)])
        every = np.std(values + halves * shifts, axis=1)
        assert found.least <= every.min() + 1e-9
        assert every.max() <= found.most + 1e-9
