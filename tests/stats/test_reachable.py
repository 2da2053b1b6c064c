"""The intervals that published statistics are held against, by trying what lies in them."""

from __future__ import annotations

import random
import statistics
from fractions import Fraction
from itertools import product

from .reachable import Reach, average_reach, deviation_reach, median_reach, sum_reach

TENTH = Fraction(1, 10)
SEED = 1862


def test_of_a_sum_an_average_and_a_median_by_hand() -> None:
    values = [Fraction(1), Fraction(2), Fraction(6)]
    assert sum_reach(values, TENTH) == Reach(Fraction("8.85"), Fraction("9.15"))
    assert average_reach(values, TENTH) == Reach(Fraction("2.95"), Fraction("3.05"))
    assert median_reach(values, TENTH) == Reach(Fraction("1.95"), Fraction("2.05"))


def test_a_deviation_by_hand() -> None:
    """Of a and b it is half their distance: of 1 and 3, off by 0.05 each, from 0.95 to 1.05."""
    reach = deviation_reach([Fraction(1), Fraction(3)], TENTH)
    assert reach == Reach(Fraction("0.95") ** 2, Fraction("1.05") ** 2, is_squared=True)


def test_inputs_that_may_be_equal_reach_a_deviation_of_nothing() -> None:
    assert deviation_reach([Fraction("25.1"), Fraction("25.2")], TENTH).lowest == 0
    assert deviation_reach([Fraction(25)], TENTH) == Reach(Fraction(0), Fraction(0), is_squared=True)


def test_nothing_within_the_inputs_leaves_the_interval_and_its_ends_are_reached() -> None:
    generator = random.Random(SEED)
    for _ in range(40):
        values = [Fraction(generator.randrange(100, 110), 10) for _ in range(generator.randrange(1, 5))]
        reach = deviation_reach(values, TENTH)
        offsets = [Fraction(step, 40) for step in (-2, -1, 0, 1, 2)]
        tried = [
            statistics.pvariance([value + offset for value, offset in zip(values, moved, strict=True)])
            for moved in product(offsets, repeat=len(values))
        ]
        assert reach.lowest <= min(tried), f"seed {SEED}: {values}"
        assert reach.highest == max(tried), f"seed {SEED}: {values}"
        assert min(tried) - reach.lowest < Fraction(1, 1000), f"seed {SEED}: {values}"


def test_what_is_printed_is_held_to_half_a_unit_of_its_own() -> None:
    reach = Reach(Fraction("2.00"), Fraction("2.10"))
    assert reach.holds(Fraction("2.15"), TENTH)
    assert not reach.holds(Fraction("2.2"), TENTH)
    assert reach.holds(Fraction("1.95"), TENTH)
    assert not reach.holds(Fraction("1.9"), TENTH)
    assert not Reach(Fraction(0), Fraction(0), is_squared=True).holds(Fraction("-1.0"), TENTH)
