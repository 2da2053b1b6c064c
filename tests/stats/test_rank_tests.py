"""Rank tests and Cliff's delta: printed examples, every outcome counted, and the guarantee of an exact test."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
from scipy.special import bdtr

from nicbench.stats.compare import (
    Exactness,
    Magnitude,
    cliffs_delta,
    fewest_runs,
    mann_whitney,
    signed_ranks,
    smallest_p,
)

_CHORIOAMNION = (
    [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
    [1.15, 0.88, 0.90, 0.74, 1.21],
)
"""Hollander and Wolfe 1973, page 69: permeability of the membrane at term and before."""
_DEPRESSION = (
    [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30],
    [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
)
"""Hollander and Wolfe 1973, page 29: Hamilton's scale before and after."""


def pairs_above(first: Sequence[float], second: Sequence[float]) -> float:
    return sum((one > other) + (one == other) / 2 for one in first for other in second)


def p_of_every_deal(first: Sequence[float], second: Sequence[float]) -> float:
    """By dealing the values to the sides in every way."""
    together, m = [*first, *second], len(first)
    expected = m * len(second) / 2
    seen, deals, as_far = abs(pairs_above(first, second) - expected), 0, 0
    for chosen in itertools.combinations(range(len(together)), m):
        others = [value for place, value in enumerate(together) if place not in chosen]
        deals += 1
        as_far += abs(pairs_above([together[place] for place in chosen], others) - expected) >= seen
    return as_far / deals


def test_mann_whitney_has_the_printed_values() -> None:
    """U 35, one-sided p 0.1272 (also R: wilcox.test); SciPy's example: U 17, p 1 / 9."""
    found = mann_whitney(*_CHORIOAMNION)
    assert (found.statistic, found.exactness) == (35.0, Exactness.EXACT)
    assert found.p == pytest.approx(2 * 0.1272, abs=1e-4)
    diabetes = mann_whitney([19, 22, 16, 29, 24], [20, 11, 17, 12])
    assert (diabetes.statistic, diabetes.p) == (17.0, pytest.approx(1 / 9))


def test_signed_ranks_have_the_printed_values() -> None:
    """V 40, one-sided p 0.01953 (also R: wilcox.test, paired)."""
    found = signed_ranks([before - after for before, after in zip(*_DEPRESSION, strict=True)])
    assert (found.statistic, found.exactness) == (40.0, Exactness.EXACT)
    assert found.p == pytest.approx(2 * 0.01953125)


def test_mann_whitney_is_exact_with_ties_too(draw: random.Random) -> None:
    for _ in range(40):
        first, second = ([draw.randrange(4) for _ in range(draw.randint(1, 5))] for _ in range(2))
        found = mann_whitney(first, second)
        assert found.statistic == pairs_above(first, second)
        assert found.p == pytest.approx(p_of_every_deal(first, second)), (first, second)


def test_signed_ranks_are_exact_with_ties_and_zeros(draw: random.Random) -> None:
    for _ in range(40):
        differences = [draw.randint(-2, 2) for _ in range(draw.randint(1, 8))]
        size = [abs(value) for value in differences]
        ranks = [sum(other < one for other in size) + (size.count(one) + 1) / 2 for one in size]
        signed = [(rank, value) for rank, value in zip(ranks, differences, strict=True) if value]
        middle = sum(rank for rank, _ in signed) / 2
        seen = abs(sum(rank for rank, value in signed if value > 0) - middle)
        outcomes = [
            abs(sum(rank for (rank, _), up in zip(signed, ups, strict=True) if up) - middle) >= seen
            for ups in itertools.product((0, 1), repeat=len(signed))
        ]
        assert signed_ranks(differences).p == pytest.approx(sum(outcomes) / len(outcomes)), differences


def test_changed_sides_have_the_same_p_and_the_other_pairs(draw: random.Random) -> None:
    for m, n in ((4, 9), (9, 4), (40, 70)):
        first, second = [draw.randrange(9) for _ in range(m)], [draw.randrange(3, 12) for _ in range(n)]
        one, other = mann_whitney(first, second), mann_whitney(second, first)
        assert one.p == pytest.approx(other.p)
        assert one.statistic + other.statistic == m * n


def test_an_exact_test_finds_what_does_not_exist_as_rarely_as_it_says(draw: random.Random) -> None:
    """At most 5 % of comparisons of equals, with ties; by chance above in one of a million sessions."""
    sets = 1000
    found = sum(
        mann_whitney(*([draw.randrange(7) for _ in range(draw.randint(4, 8))] for _ in range(2))).p <= 0.05
        for _ in range(sets)
    )
    most = next(count for count in range(sets) if 1 - bdtr(count, sets, 0.05) < 1e-6)
    assert found <= most


def test_many_values_are_approximated_and_it_is_said() -> None:
    found = mann_whitney(range(100), range(50, 150))
    assert (found.exactness, found.smallest_p) == (Exactness.APPROXIMATE, None)
    assert found.can_show(1e-9)
    assert mann_whitney(range(3), range(3, 100)).exactness is Exactness.EXACT
    assert signed_ranks(range(-10, 90)).exactness is Exactness.APPROXIMATE


def test_values_that_are_all_the_same_show_nothing() -> None:
    for found in (mann_whitney([1.0] * 5, [1.0] * 5), signed_ranks([0.0] * 9), mann_whitney([1.0] * 90, [1.0] * 90)):
        assert (found.p, found.smallest_p) == (1.0, 1.0)
        assert not found.can_show(0.05)


def test_so_few_runs_that_nothing_could_be_shown_are_known_beforehand() -> None:
    """2 / C(6, 3) = 0.1 and 2 / C(8, 4) = 0.029; of pairs 2 / 2^5 = 0.0625 and 2 / 2^6 = 0.031."""
    assert mann_whitney([1, 2, 3], [4, 5, 6]).p == pytest.approx(0.1) == smallest_p(3, 3)
    assert fewest_runs(0.05, paired=False) == 4
    assert signed_ranks([1, 2, 3, 4, 5]).p == 0.0625 == smallest_p(5)
    assert fewest_runs(0.05, paired=True) == 6
    tied = mann_whitney([0, 0, 0, 0, 0], [0, 0, 0, 0, 1])
    assert not tied.can_show(0.05)
    assert tied.runs_suffice(0.05)


def test_nothing_is_not_tested() -> None:
    with pytest.raises(ValueError, match="values on both sides"):
        mann_whitney([], [1.0])
    with pytest.raises(ValueError, match="a pair"):
        signed_ranks([])


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
