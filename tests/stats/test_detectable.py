"""How small a difference could be shown: by hand, and by comparisons of simulated runs that differ by just so much."""

from __future__ import annotations

import math
import random

import pytest
from scipy.special import bdtr

from nicbench.stats.compare import MOST_RUNS, POWER, ClaimOutcome, Spread, compare, compare_pairs, find_detectable
from nicbench.stats.intervals import IntervalSpec


def test_the_least_difference_is_that_of_the_formula() -> None:
    """15 and 15 runs, deviation 0.1: t of 28 degrees 2.0484 and 0.8546, from printed tables."""
    found = find_detectable([Spread(0.1, 15), Spread(0.1, 15)], None, 0.95)
    by_hand = (2.0484 + 0.8546) * math.sqrt(math.pi / 2) * 0.1 * math.sqrt(2 / 15)
    assert found.difference == pytest.approx(by_hand, rel=1e-3)
    assert found.change_percent == pytest.approx(100 * (math.exp(by_hand) - 1), rel=1e-3)
    of_pairs = find_detectable([Spread(0.1, 15)], None, 0.95)
    assert of_pairs.difference == pytest.approx(
        (2.1448 + 0.8681) * math.sqrt(math.pi / 2) * 0.1 / math.sqrt(15), rel=1e-3
    )


def test_so_many_runs_show_the_difference_and_one_fewer_do_not() -> None:
    found = find_detectable([Spread(0.1, 5), Spread(0.1, 5)], 0.02, 0.95)
    assert found.runs_for_seen is not None
    for runs, shows in ((found.runs_for_seen, True), (found.runs_for_seen - 1, False)):
        then = find_detectable([Spread(0.1, runs), Spread(0.1, runs)], None, 0.95).difference
        assert then is not None
        assert (then <= 0.02) is shows


def test_what_no_number_of_runs_shows_is_unknown() -> None:
    assert find_detectable([Spread(0.1, 5), Spread(0.1, 5)], 1e-6, 0.95).runs_for_seen is None
    assert find_detectable([Spread(0.1, 5), Spread(0.1, 5)], 0.0, 0.95).runs_for_seen is None
    assert MOST_RUNS == 10_000


def test_too_few_runs_and_runs_that_do_not_differ_are_named() -> None:
    few = find_detectable([Spread(0.1, 3), Spread(0.1, 3)], 5.0, 0.95)
    assert (few.difference, few.runs_for_seen) == (None, 4)
    assert few.note == "so few runs cannot show a difference of any size; 4 runs of each could"
    assert (
        find_detectable([Spread(0.1, 5)], 5.0, 0.95).note
        == "so few runs cannot show a difference of any size; 6 pairs could"
    )
    alike = find_detectable([Spread(0.0, 9), Spread(0.0, 9)], 1.0, 0.95)
    assert alike.difference is alike.runs_for_seen is None
    assert alike.note == "the runs do not differ: how small a difference they could show is not known"


@pytest.mark.parametrize("paired", [False, True])
def test_a_difference_of_that_size_is_shown_about_as_often_as_it_says(
    paired: bool, draw: random.Random, record_property: pytest.RecordProperty
) -> None:
    """80 % by the formula; between 62 and 94 %, or by chance in one of a million sessions."""
    sets, runs, spread = 300, 15, 0.05
    sides = [Spread(spread * math.sqrt(2), runs)] if paired else [Spread(spread, runs), Spread(spread, runs)]
    least = find_detectable(sides, None, 0.95).difference
    assert least is not None
    shown = 0
    for _ in range(sets):
        first, second = ([draw.lognormvariate(middle, spread) for _ in range(runs)] for middle in (least, 0.0))
        found = (compare_pairs if paired else compare)(("a", first), ("b", second), IntervalSpec(seed=5))
        shown += found.claim.shown is ClaimOutcome.YES
    record_property("shown", f"a difference of the least size was shown in {shown} of {sets}, of {POWER:.0%} foreseen")
    assert next(count for count in range(sets) if bdtr(count, sets, 0.62) > 1e-6) <= shown
    assert shown <= next(count for count in range(sets) if 1 - bdtr(count, sets, 0.94) < 1e-6)
