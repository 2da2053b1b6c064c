"""Summaries of repeated numbers."""

from __future__ import annotations

import random

import pytest

from nicbench.stats.summary import ratio_of_medians, relative_spread, summarise


def test_a_series_is_summarised_with_the_deviation_of_the_population() -> None:
    summary = summarise([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (summary.n, summary.mean, summary.median, summary.minimum, summary.maximum) == (8, 5.0, 4.5, 2.0, 9.0)
    assert summary.standard_deviation == 2.0


def test_of_nothing_everything_is_unknown_but_the_count() -> None:
    summary = summarise([])
    assert summary.n == 0
    assert summary.mean is None
    assert relative_spread([]) is None


def test_the_spread_is_relative_to_the_median() -> None:
    assert relative_spread([90.0, 100.0, 105.0]) == pytest.approx(0.15)


def test_the_interval_of_a_ratio_is_the_same_for_the_same_seed_and_holds_the_ratio() -> None:
    ours, theirs = [95.0, 97.0, 96.0, 99.0, 94.0], [100.0, 101.0, 98.0, 100.5, 99.0]
    one, two = (ratio_of_medians(ours, theirs, seed=5) for _ in range(2))
    assert one == two
    assert one.ratio == 0.96
    assert one.lower <= one.ratio <= one.upper


def test_the_interval_holds_the_true_ratio_about_as_often_as_it_says(draw: random.Random) -> None:
    held = 0
    for number in range(200):
        ours = [draw.gauss(95.0, 3.0) for _ in range(15)]
        theirs = [draw.gauss(100.0, 3.0) for _ in range(15)]
        interval = ratio_of_medians(ours, theirs, seed=number, resamples=500)
        held += interval.lower <= 0.95 <= interval.upper
    assert held >= 170


@pytest.mark.parametrize(("ours", "theirs"), [([], [1.0]), ([1.0], []), ([1.0], [0.0])])
def test_a_ratio_of_nothing_or_to_nothing_is_refused(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="a ratio needs"):
        ratio_of_medians(ours, theirs, seed=1)
