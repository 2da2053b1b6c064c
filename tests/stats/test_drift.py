"""Drift over a run: what moves is found, chance among many is not, and a test that could show nothing is not made."""

from __future__ import annotations

import math
import random

import pytest
from scipy.special import bdtr

from nicbench.stats.compare import correct_by_holm, select_worthwhile
from nicbench.stats.drift import find_drifts
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
    assert found.slope is not None
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
    assert found.slope is not None
    assert found.slope.estimate == pytest.approx(1.0)
    assert found.over_run_percent == pytest.approx(100 * 5 / 103)


def test_of_a_median_of_zero_no_percentage_is_known() -> None:
    found = find_drifts([Series("a", [-2.0, -1.0, 0.0, 1.0, 2.0])]).all[0]
    assert found.over_run_percent is None
    assert found.trend_is_shown
    assert find_drifts([]).tests == 0
