"""Trends: every order counted, slopes by hand, and p-values that say what they should."""

from __future__ import annotations

import itertools
import random

import pytest
from scipy.special import bdtr

from nicbench.stats.compare import Exactness
from nicbench.stats.drift import mann_kendall, sens_slope


def rising_less_falling(values: tuple[float, ...] | list[float]) -> int:
    return sum((b > a) - (b < a) for a, b in itertools.combinations(values, 2))


def test_s_and_p_are_those_of_every_order_also_with_ties(draw: random.Random) -> None:
    for _ in range(25):
        values = [draw.randrange(draw.randint(1, 6)) for _ in range(draw.randint(1, 6))]
        found, seen = mann_kendall(values), rising_less_falling(values)
        orders = [abs(rising_less_falling(order)) for order in itertools.permutations(values)]
        assert found.statistic == seen
        assert found.p == pytest.approx(sum(order >= abs(seen) for order in orders) / len(orders)), values
        assert found.smallest_p == pytest.approx(sum(order == max(orders) for order in orders) / len(orders))


def test_a_table_of_printed_probabilities_is_met() -> None:
    """Kendall's exact table, as in Gilbert 1987, table A18: P(S >= 16) of 8 values 0.031, P(S >= 23) of 10 values
    0.023.
    """
    for s, n, p in ((16, 8, 0.031), (23, 10, 0.023), (10, 5, 0.0083)):
        assert mann_kendall(with_s(n, s)).p == pytest.approx(2 * p, abs=0.001)


def with_s(n: int, s: int) -> list[float]:
    """Values 0..n - 1 in an order that has so many more rises than falls."""
    values = [float(value) for value in range(n)]
    inversions = (n * (n - 1) // 2 - s) // 2
    while inversions:
        for place in range(n - 1):
            if inversions and values[place] < values[place + 1]:
                values[place], values[place + 1] = values[place + 1], values[place]
                inversions -= 1
    assert rising_less_falling(values) == s
    return values


def test_reversed_time_turns_the_sign_and_keeps_p(draw: random.Random) -> None:
    values = [draw.randrange(8) for _ in range(15)]
    one, other = mann_kendall(values), mann_kendall(values[::-1])
    assert (one.statistic, one.p) == (-other.statistic, pytest.approx(other.p))


def test_many_values_are_approximated_and_it_is_said() -> None:
    found = mann_kendall([float(value % 7) for value in range(60)])
    assert (found.exactness, found.smallest_p) == (Exactness.APPROXIMATE, None)
    assert mann_kendall([1.0] * 60).smallest_p == 1.0


def test_values_without_order_show_a_trend_as_rarely_as_they_should(draw: random.Random) -> None:
    sets = 1000
    found = sum(mann_kendall([draw.randrange(9) for _ in range(draw.randint(5, 15))]).p <= 0.05 for _ in range(sets))
    assert found <= next(count for count in range(sets) if 1 - bdtr(count, sets, 0.05) < 1e-6)


def test_the_slope_is_the_median_of_all_slopes_and_one_wild_value_does_not_move_it() -> None:
    found = sens_slope(range(7), [10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 1e6])
    assert found is not None
    assert found.estimate == 2.0
    hourly = sens_slope([0.0, 0.5, 2.0], [1.0, 2.0, 9.0])
    assert hourly is not None
    assert hourly.estimate == pytest.approx(4.0)  # of 2, 4, 14 / 3


def test_the_interval_of_a_slope_is_exact() -> None:
    """Of 5 values P(no inversion) is 1 / 120, P(at most one) 5 / 120: at 95 % the ends are the outermost slopes."""
    values = [1.0, 3.0, 2.0, 5.0, 4.0]
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(enumerate(values), 2))
    found = sens_slope(range(5), values)
    assert found is not None
    assert (found.lower, found.upper) == (slopes[0], slopes[-1])
    wider = sens_slope(range(5), values, 0.9)
    assert wider is not None
    assert (wider.lower, wider.upper) == (slopes[1], slopes[-2])


def test_of_four_values_a_slope_has_no_interval() -> None:
    found = sens_slope(range(4), [1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert (found.estimate, found.lower, found.upper) == (1.0, None, None)
    assert sens_slope([0.0], [1.0]) is None


def test_the_interval_holds_the_true_slope_as_often_as_it_says(draw: random.Random) -> None:
    """95 % at least, of few values and of many; by chance below in one of a million sessions."""
    sets, held = 300, 0
    for number in range(sets):
        n = 60 if number % 10 == 0 else draw.randint(5, 20)
        found = sens_slope(range(n), [0.3 * place + draw.gauss(0, 1) for place in range(n)])
        assert found is not None
        assert found.lower is not None
        assert found.upper is not None
        held += found.lower <= 0.3 <= found.upper
    assert held >= next(count for count in range(sets) if bdtr(count, sets, 0.94) > 1e-6)


@pytest.mark.parametrize("times", [[0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 1.0, 1.0]])
def test_times_that_do_not_rise_are_refused(times: list[float]) -> None:
    with pytest.raises(ValueError, match="a time for each value"):
        sens_slope(times, [1.0, 2.0, 3.0])


def test_nothing_has_no_trend() -> None:
    with pytest.raises(ValueError, match="needs values"):
        mann_kendall([])
