"""What statistics of rounded figures can be, held against NumPy and SciPy at every corner and at many points."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from scipy import stats

from nicbench.stats.sample import Range, find_deviation_range, find_mean_range, find_median_range, find_sum_range

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


@pytest.mark.filterwarnings("ignore:Precision loss occurred")  # SciPy, of numbers that differ little
def test_without_rounding_they_are_those_of_numpy_and_scipy(draw: random.Random) -> None:
    for _ in range(100):
        values = drawn(draw)
        values[0] += 1.0
        exact = ranges(values, 0.0)
        for found, expected in (
            (find_sum_range(exact), np.sum(values)),
            (find_mean_range(exact), np.mean(values)),
            (find_median_range(exact), np.median(values)),
            (find_deviation_range(exact, len(values)), np.std(values)),
            (find_deviation_range(exact, len(values) - 1), stats.tstd(values)),
        ):
            assert (found.least, found.most) == pytest.approx((expected, expected), abs=1e-7)


def test_sums_means_and_medians_reach_from_corner_to_corner(draw: random.Random) -> None:
    for _ in range(100):
        values = drawn(draw)
        every = corners(values)
        for found, of_each in (
            (find_sum_range(ranges(values)), every.sum(axis=1)),
            (find_mean_range(ranges(values)), every.mean(axis=1)),
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
