"""Drift over a run: what moves is found, chance among many is not, and a test that could show nothing is not made."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from scipy.special import bdtr

from nicbench.stats.compare import Exactness, correct_by_holm, select_worthwhile
from nicbench.stats.drift import MOST_GROUPED, find_drifts, mann_kendall, sens_slope, split_at_changes
from nicbench.stats.sample import Series


def noisy(draw: random.Random, name: str, step: float, n: int = 15) -> Series:
    return Series(name, [100.0 + step * run + draw.uniform(-1, 1) for run in range(n)])


def test_holm_has_the_values_of_r() -> None:
    """p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and of ties."""
    assert correct_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert correct_by_holm([0.5, 0.5, 0.9]) == (1.0, 1.0, 1.0)
    assert correct_by_holm([]) == ()


def test_tests_that_could_show_nothing_among_the_others_are_left_out() -> None:
    """By hand: at k = 2 two reach 0.05 / 2; of one at 0.05 alone, that one."""
    assert select_worthwhile([0.04, 0.001, 0.02], 0.05) == (False, True, True)
    assert select_worthwhile([0.04, 1.0], 0.05) == (True, False)
    assert select_worthwhile([], 0.05) == ()


def test_what_rises_steadily_is_found_among_forty_with_its_size(draw: random.Random) -> None:
    still = [noisy(draw, f"still {number}", 0.0) for number in range(39)]
    found = find_drifts([*still, noisy(draw, "warm", 1.0)])
    assert found.tests == 40  # five against five runs could show nothing among so many
    assert [drift.name for drift in found.shown if drift.name == "warm"] == ["warm"]
    warm = found.all[-1]
    assert warm.trend_is_shown
    assert warm.thirds is None
    assert (
        warm.note
        == "a difference between thirds could not be shown by 15 values beside so many other tests: not tested"
    )
    assert warm.over_run_percent == pytest.approx(100 * 14 / 107, abs=3)
    assert warm.over_run_lower_percent is not None
    assert warm.over_run_upper_percent is not None
    assert warm.over_run_lower_percent <= warm.over_run_percent <= warm.over_run_upper_percent
    assert warm.thirds_percent == pytest.approx(100 * 10 / 107, abs=3)


def test_of_forty_values_that_do_not_drift_hardly_ever_one_is_called_so(draw: random.Random) -> None:
    """At most one family in twenty; by chance above in one of a million sessions."""
    families = 100
    called = sum(bool(find_drifts([noisy(draw, "still", 0.0, 12) for _ in range(10)]).shown) for _ in range(families))
    assert called <= next(count for count in range(families) if 1 - bdtr(count, families, 0.05) < 1e-6)


def test_sizes_are_in_percent_of_the_median_by_hand() -> None:
    found = find_drifts([Series("a", [float(value) for value in range(95, 107)])]).all[0]
    assert found.slope.estimate == 1.0
    assert found.over_run_percent == pytest.approx(100 * 11 / 100.5)
    assert (found.third, found.thirds_percent) == (4, pytest.approx(100 * 8 / 100.5))


def test_times_that_are_not_even_are_heeded() -> None:
    times = [0.0, 1.0, 2.0, 10.0, 20.0]
    found = find_drifts([Series("a", [100.0 + time for time in times], times)]).all[0]
    assert found.over_run_percent == pytest.approx(100 * 20 / 102)


def test_a_step_between_the_thirds_is_found_by_them() -> None:
    found = find_drifts([Series("a", [100.0, 101.0, 102.0, 101.5, 100.5] * 2 + [90.0, 91.0, 92.0, 91.5, 90.5])]).all[0]
    assert found.thirds_differ
    assert found.thirds_percent == pytest.approx(-100 * 10 / 100.5)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([24.0] * 15, "all values are the same"),
        (
            [],
            "a trend and a difference between thirds could not be shown by 0 values, whatever their order: not tested",
        ),
        (
            [1.0],
            "a trend and a difference between thirds could not be shown by 1 value, whatever their order: not tested",
        ),
        (
            [1.0, 2.0, 3.0, 4.0, None],
            "a trend and a difference between thirds could not be shown by 4 values, whatever their order: not tested",
        ),
        (range(11), "a difference between thirds could not be shown by 11 values, whatever their order: not tested"),
    ],
)
def test_a_test_that_could_show_nothing_is_not_made_and_costs_the_others_nothing(
    values: list[float | None], note: str
) -> None:
    alone, beside = find_drifts([Series("b", range(12))]), find_drifts([Series("a", values), Series("b", range(12))])
    assert beside.all[0].note == note
    assert beside.tests == alone.tests + (1 if len(values) == 11 else 0)


def test_unknown_values_keep_their_place_in_time() -> None:
    gaps = [100.0, None, 102.0, math.nan, 104.0, 105.0]
    found = find_drifts([Series("a", gaps)]).all[0]
    assert found.n == 4
    assert found.slope.estimate == pytest.approx(1.0)
    assert found.over_run_percent == pytest.approx(100 * 5 / 103)


def test_of_a_median_of_zero_no_percentage_is_known() -> None:
    found = find_drifts([Series("a", [-2.0, -1.0, 0.0, 1.0, 2.0])]).all[0]
    assert found.over_run_percent is None
    assert found.trend_is_shown
    assert find_drifts([]).tests == 0


# Trends: every order counted, slopes by hand, and p-values that say what they should.


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
    """Values 0..n - 1 in an order with a given number of more rises than falls."""
    values = [float(value) for value in range(n)]
    inversions = (n * (n - 1) // 2 - s) // 2
    while inversions:
        for place in range(n - 1):
            if inversions and values[place] < values[place + 1]:
                values[place], values[place + 1] = values[place + 1], values[place]
                inversions -= 1
    assert rising_less_falling(values) == s
    return values


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
    assert found.estimate == 2.0
    hourly = sens_slope([0.0, 0.5, 2.0], [1.0, 2.0, 9.0])
    assert hourly.estimate == pytest.approx(4.0)  # of 2, 4, 14 / 3


def test_the_interval_of_a_slope_is_exact() -> None:
    """Of 5 values P(no inversion) is 1 / 120, P(at most one) 5 / 120: at 95 % the ends are the outermost slopes."""
    values = [1.0, 3.0, 2.0, 5.0, 4.0]
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in itertools.combinations(enumerate(values), 2))
    found = sens_slope(range(5), values)
    assert (found.lower, found.upper) == (slopes[0], slopes[-1])
    wider = sens_slope(range(5), values, 0.9)
    assert (wider.lower, wider.upper) == (slopes[1], slopes[-2])


def test_of_four_values_a_slope_has_no_interval() -> None:
    found = sens_slope(range(4), [1.0, 2.0, 3.0, 4.0])
    assert (found.estimate, found.lower, found.upper) == (1.0, None, None)
    assert sens_slope([0.0], [1.0]) is None


def test_the_interval_holds_the_true_slope_as_often_as_it_says(draw: random.Random) -> None:
    """95 % at least, of few values and of many; by chance below in one of a million sessions."""
    sets, held = 300, 0
    for number in range(sets):
        n = 60 if number % 10 == 0 else draw.randint(5, 20)
        found = sens_slope(range(n), [0.3 * place + draw.gauss(0, 1) for place in range(n)])
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


# Where the level of a series changes: at the right value, whatever the unit, the offset and the direction.


def noisy_of_changes(count: int, seed: int, *, step_at: int | None = None, by: float = 0.95) -> list[float]:
    draw = random.Random(seed)
    values = [1.0 + 0.01 * draw.gauss() for _ in range(count)]
    return [value * (by if step_at is not None and place >= step_at else 1.0) for place, value in enumerate(values)]


def test_fewer_than_two_different_values_have_no_change() -> None:
    assert split_at_changes([]) == split_at_changes([3.0]) == split_at_changes([0.0] * 9) == ()


def test_what_is_found_does_not_depend_on_unit_offset_and_direction() -> None:
    values = noisy_of_changes(40, 3, step_at=24)
    found = split_at_changes(values)
    assert found == (24,)
    for other in (
        [value * 1e6 for value in values],
        [value - 1.0 for value in values],
        [-value for value in values],
    ):
        assert split_at_changes(other) == found
    assert split_at_changes(values[::-1]) == (16,)


def test_a_change_in_a_long_series_is_found_at_its_value_and_not_only_near_it() -> None:
    count = 40 * MOST_GROUPED
    found = split_at_changes(noisy_of_changes(count, 5, step_at=4_321, by=0.9))
    assert found == (4_321,)
