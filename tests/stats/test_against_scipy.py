"""The same arithmetic in another's hands: drawn samples, our figures against those of scipy.stats."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy  # its `stats` load when they are used: slowly

from nicbench.stats.bootstrap import IntervalSpec, bootstrap_mean, difference_of_medians
from nicbench.stats.compare import mann_whitney, signed_ranks
from nicbench.stats.drift import mann_kendall, sens_slope


def normal(draw: random.Random, n: int, middle: float = 0.0) -> list[float]:
    return [draw.gauss(middle, 1.0) for _ in range(n)]


def test_mann_whitney_exact_without_ties_and_approximate_with_them(draw: random.Random) -> None:
    for m, n in ((3, 9), (15, 15), (30, 28)):
        first, second = normal(draw, m), normal(draw, n, 0.5)
        found, theirs = mann_whitney(first, second), scipy.stats.mannwhitneyu(first, second, method="exact")
        assert (found.statistic, found.p) == (theirs.statistic, pytest.approx(theirs.pvalue))
    first, second = ([float(draw.randrange(20)) for _ in range(80)] for _ in range(2))
    found, theirs = mann_whitney(first, second), scipy.stats.mannwhitneyu(first, second, method="asymptotic")
    assert (found.statistic, found.p) == (theirs.statistic, pytest.approx(theirs.pvalue))


def test_signed_ranks_exact_and_approximate(draw: random.Random) -> None:
    differences = normal(draw, 17, 0.3)
    assert signed_ranks(differences).p == pytest.approx(scipy.stats.wilcoxon(differences, method="exact").pvalue)
    many = [float(draw.randint(-3, 9)) for _ in range(90)]
    theirs = scipy.stats.wilcoxon(many, zero_method="pratt", correction=True, method="asymptotic")
    assert signed_ranks(many).p == pytest.approx(theirs.pvalue)


def test_trend_and_slope(draw: random.Random) -> None:
    values = normal(draw, 20)
    assert mann_kendall(values).p == pytest.approx(scipy.stats.kendalltau(range(20), values, method="exact").pvalue)
    found = sens_slope(range(20), values)
    assert found.estimate == pytest.approx(scipy.stats.theilslopes(values).slope)


def test_intervals_differ_by_the_draws_alone(draw: random.Random) -> None:
    """Of 25 and 30 values, 10,000 resamples on either side: within 12 % of the width."""
    first, second = normal(draw, 25, 10.0), normal(draw, 30, 9.0)

    def difference(one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(np.median(one, axis=axis) - np.median(other, axis=axis))

    asked = IntervalSpec(seed=3)
    pairs = [
        (bootstrap_mean(first, asked), scipy.stats.bootstrap((first,), np.mean, n_resamples=9999, rng=4)),
        (
            difference_of_medians(first, second, asked),
            scipy.stats.bootstrap((first, second), difference, n_resamples=9999, rng=4),
        ),
    ]
    for found, theirs in pairs:
        low, high = theirs.confidence_interval
        assert (found.lower, found.upper) == (
            pytest.approx(low, abs=0.12 * (high - low)),
            pytest.approx(high, abs=0.12 * (high - low)),
        )
