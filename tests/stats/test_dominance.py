"""Cliff's delta: printed examples, its words, its interval where one side is always above the other."""

from __future__ import annotations

import random

import pytest

from nicbench.stats.dominance import Magnitude, cliffs_delta


def test_delta_has_the_printed_value() -> None:
    """Hogarty and Kromrey, "Using SAS to calculate tests of Cliff's delta", SUGI 24, 1999."""
    found = cliffs_delta([10, 10, 20, 20, 20, 30, 30, 30, 40, 50], [10, 20, 30, 40, 40, 50])
    assert found.delta == pytest.approx(-0.25)
    assert found.magnitude is Magnitude.SMALL


def test_the_interval_is_newcombes_fifth() -> None:
    """R's SingleCaseES prints 0.9166667 and 0.5973406 to 0.9860176 for (delta + 1) / 2; its root is good to 1e-4."""
    found = cliffs_delta([28, 25, 24, 27, 30, 30, 29], [20, 20, 26, 25, 22, 23])
    assert (found.delta + 1) / 2 == pytest.approx(0.9166667)
    assert (found.lower + 1) / 2 == pytest.approx(0.5973406, abs=1e-4)
    assert (found.upper + 1) / 2 == pytest.approx(0.9860176, abs=1e-4)


def test_one_side_always_above_still_leaves_doubt_that_runs_dispel() -> None:
    few, many = (cliffs_delta(range(100, 100 + n), range(n)) for n in (3, 30))
    assert (few.delta, few.upper, many.delta) == (1.0, 1.0, 1.0)
    assert few.lower < 0.05
    assert many.lower > 0.8


def test_equal_sides_have_a_delta_of_zero_in_the_middle_of_its_interval() -> None:
    found = cliffs_delta([1.0] * 5, [1.0] * 5)
    assert found.delta == 0.0
    assert found.lower == pytest.approx(-found.upper)
    assert found.lower < -0.5


def test_changed_sides_turn_the_sign_and_no_unit_or_order_matters(draw: random.Random) -> None:
    first, second = ([draw.randrange(20) for _ in range(n)] for n in (8, 11))
    one, other = cliffs_delta(first, second), cliffs_delta(second, first)
    assert (one.delta, one.lower, one.upper) == pytest.approx((-other.delta, -other.upper, -other.lower))
    assert cliffs_delta([value / 1000 for value in first[::-1]], [value / 1000 for value in second]) == one


@pytest.mark.parametrize(
    ("delta", "word"),
    [
        (0.0, "negligible"),
        (0.146, "negligible"),
        (-0.147, "small"),
        (0.33, "medium"),
        (-0.473, "medium"),
        (0.474, "large"),
    ],
)
def test_words_change_at_the_published_bounds(delta: float, word: str) -> None:
    assert Magnitude.of(delta) == word


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="values on both sides"):
        cliffs_delta([], [1.0])
