"""Intervals by Student's t, of a mean and of a ratio: against closed forms, printed tables and draws."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter

import numpy as np
import pytest
from scipy.special import bdtr

from nicbench.stats.bootstrap import (
    Floats,
    Interval,
    IntervalSpec,
    Method,
    bootstrap_mean,
    bootstrap_median,
    bootstrap_statistic,
    difference_of_medians,
    draw_places,
    middle_places,
    paired_difference,
    paired_ratio,
    ratio_of_medians,
)
from nicbench.stats.intervals import Agreement, RatioInterval, agreement, mean_interval, ratio_interval


def half_width(values: list[float], confidence_ratio: float) -> float:
    found = mean_interval(values, confidence_ratio, 0.05)
    assert found.lower is not None
    assert found.upper is not None
    assert found.mean - found.lower == pytest.approx(found.upper - found.mean, rel=1e-12)
    return found.upper - found.mean


@pytest.mark.parametrize("confidence_ratio", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_two_and_three_values_have_closed_forms(confidence_ratio: float) -> None:
    # One degree of freedom is the Cauchy distribution, two have an algebraic quantile.
    of_two = math.tan(math.pi * confidence_ratio / 2.0)
    assert half_width([10.0, 14.0], confidence_ratio) == pytest.approx(of_two * 2.0, rel=1e-9)
    of_three = confidence_ratio * math.sqrt(2.0 / (1.0 - confidence_ratio**2))
    assert half_width([1.0, 2.0, 3.0], confidence_ratio) == pytest.approx(of_three / math.sqrt(3.0), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "confidence_ratio", "quantile"),
    [(4, 0.95, 3.182), (5, 0.95, 2.776), (10, 0.95, 2.262), (10, 0.99, 3.250), (20, 0.99, 2.861), (31, 0.95, 2.042)],
)
def test_quantiles_are_those_of_printed_tables(n: int, confidence_ratio: float, quantile: float) -> None:
    values = [float(number) for number in range(n)]
    assert half_width(values, confidence_ratio) == pytest.approx(
        quantile * statistics.stdev(values) / math.sqrt(n), rel=2e-4
    )


def test_the_width_is_the_full_width_as_a_share_of_the_mean() -> None:
    # 99 and 101: s = sqrt(2), half width t * s / sqrt(2) = 12.706, full width 25.4 % of 100.
    found = mean_interval([99.0, 101.0], 0.95, 0.26)
    assert found.width_ratio == pytest.approx(0.25412, rel=1e-4)
    assert found.reached
    assert not mean_interval([99.0, 101.0], 0.95, 0.25).reached
    below_zero = mean_interval([-99.0, -101.0], 0.95, 0.26)
    assert below_zero.width_ratio == pytest.approx(found.width_ratio)


def test_what_never_differs_is_known_and_one_value_is_not() -> None:
    assert mean_interval([3.0, 3.0], 0.95, 0.001).reached
    nothing_lost = mean_interval([0.0, 0.0, 0.0], 0.95, 0.05)
    assert (nothing_lost.width_ratio, nothing_lost.reached) == (0.0, True)
    alone = mean_interval([3.0], 0.95, 1.0)
    assert (alone.mean, alone.lower, alone.width_ratio, alone.reached) == (3.0, None, None, False)


def test_of_a_mean_of_zero_no_share_is_known() -> None:
    found = mean_interval([-1.0, 1.0], 0.95, 0.05)
    assert (found.mean, found.width_ratio, found.reached) == (0.0, None, False)
    assert found.upper == pytest.approx(12.7062, rel=1e-5)


def test_so_many_intervals_hold_the_mean_as_the_confidence_says(draw: random.Random) -> None:
    sets = 4000
    holding = 0
    for _ in range(sets):
        found = mean_interval([draw.gauss(10.0, 3.0) for _ in range(4)], 0.9, 0.05)
        assert found.lower is not None
        assert found.upper is not None
        holding += found.lower <= 10.0 <= found.upper
    assert abs(holding / sets - 0.9) < 5 * math.sqrt(0.9 * 0.1 / sets)


def test_the_interval_is_that_of_students_t_of_the_logarithms() -> None:
    """Computed by hand: logarithms 0.1, 0.2, 0.3; mean 0.2, s 0.1, t of 2 degrees of freedom at 95 % 4.302653."""
    found = ratio_interval([(1.0, math.exp(step)) for step in (0.1, 0.2, 0.3)], 0.95)
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert found.ratio == pytest.approx(math.exp(0.2))
    assert (found.lower, found.upper) == (
        pytest.approx(math.exp(0.2 - half), rel=1e-6),
        pytest.approx(math.exp(0.2 + half), rel=1e-6),
    )
    assert found.pairs == 3


def test_pairs_that_lie_far_apart_tell_nothing() -> None:
    found = ratio_interval([(1.0, 1e12), (1e12, 1.0)], 0.9999)
    assert found is not None
    assert agreement(found, 1.0) is Agreement.UNKNOWN


def test_of_fewer_than_two_pairs_there_is_none() -> None:
    assert ratio_interval([(1.0, 1.0)], 0.95) is None


def test_it_holds_the_true_ratio_as_often_as_it_says(draw: random.Random) -> None:
    held = 0
    for _ in range(500):
        pairs = [(draw.lognormvariate(0, 0.1), 1.05 * draw.lognormvariate(0, 0.1)) for _ in range(10)]
        found = ratio_interval(pairs, 0.95)
        held += found is not None and found.lower <= 1.05 <= found.upper
    assert 450 <= held <= 497  # 475 expected, five standard deviations of 4.9 either way


@pytest.mark.parametrize(
    ("lower", "upper", "answer"),
    [
        (0.97, 1.04, Agreement.AGREE),
        (1 / 1.05, 1.05, Agreement.AGREE),
        (1.08, 1.15, Agreement.DISAGREE),
        (0.5, 0.9, Agreement.DISAGREE),
        (0.99, 1.06, Agreement.UNKNOWN),
        (0.9, 1.2, Agreement.UNKNOWN),
        (0.9, 1.0, Agreement.UNKNOWN),
    ],
)
def test_an_interval_within_beside_or_over_the_bound(lower: float, upper: float, answer: Agreement) -> None:
    assert agreement(RatioInterval(1.0, lower, upper, 10), 0.05) is answer


# Intervals by the bootstrap: published examples, every resample counted, draws whose truth is known, corner cases.


ASKED = IntervalSpec(seed=20221)
_SPATIAL = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]
"""Efron and Tibshirani 1993, table 14.1, test A of 26 children."""


def ends(found: Interval) -> tuple[float, float]:
    assert found.lower is not None
    assert found.upper is not None
    return found.lower, found.upper


def variance(table: Floats) -> Floats:
    return np.asarray(table.var(axis=-1), dtype=np.float64)


def test_the_variance_of_the_spatial_test_has_the_published_interval() -> None:
    """Their table 14.2: estimate 171.5, 90 % BCa (115.8, 259.6) of 2000 resamples; the ends vary by some percent."""
    found = bootstrap_statistic(_SPATIAL, variance, IntervalSpec(seed=1, confidence_ratio=0.9))
    assert found.estimate == pytest.approx(171.5, abs=0.05)
    assert found.method is Method.BCA
    assert ends(found) == (pytest.approx(115.8, rel=0.03), pytest.approx(259.6, rel=0.03))


@pytest.mark.parametrize("n", [3, 5, 7])
def test_resampled_medians_are_distributed_as_the_count_of_all_resamples(n: int) -> None:
    """For odd n a median is one of the values; 5 standard deviations, of draws that never change."""
    counted = Counter(sorted(drawn)[n // 2] for drawn in itertools.product(range(n), repeat=n))
    for mirrored in (True, False):
        lower, upper = middle_places(n, 10_000, 3, mirrored=mirrored)
        assert (lower == upper).all()
        for place in range(n):
            share = counted[place] / n**n
            assert np.mean(lower == place) == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 5_000))


def test_an_interval_of_a_median_of_five_is_that_of_all_3125_resamples() -> None:
    """The mid-distribution of all resamples, by whole numbers; bias and acceleration are 0 by symmetry."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    counted = Counter(sorted(drawn)[2] for drawn in itertools.product(values, repeat=5))
    below = [(sum(counted[v] for v in values if v < value) + counted[value] / 2) / 3125 for value in values]
    lower, upper = ends(bootstrap_median(values, ASKED))
    assert lower == pytest.approx(float(np.interp(0.025, below, values)), abs=0.05)
    assert upper == pytest.approx(float(np.interp(0.975, below, values)), abs=0.05)


def test_the_same_seed_gives_the_same_digits_and_these_draws_never_change() -> None:
    values = [235.1, 236.0, 230.2, 229.9, 234.4, 235.6, 233.3]
    assert bootstrap_median(values, ASKED) == bootstrap_median(values, ASKED)
    assert bootstrap_median(values, ASKED) != bootstrap_median(values, IntervalSpec(seed=20222))
    assert next(draw_places(5, 100, 7))[0].tolist() == [1, 2, 4, 3, 1]


def test_changed_sides_of_pairs_give_exactly_the_inverse(draw: random.Random) -> None:
    for n in (2, 7, 10):
        pairs = [(draw.lognormvariate(3, 0.3), draw.lognormvariate(3, 0.3)) for _ in range(n)]
        one, other = (ends(paired_ratio(given, ASKED)) for given in (pairs, [(b, a) for a, b in pairs]))
        assert one == (pytest.approx(1 / other[1], rel=1e-9), pytest.approx(1 / other[0], rel=1e-9))


def test_of_pairs_what_changes_for_both_alike_falls_out() -> None:
    drifting = [(1.1 * 10.0**step, 10.0**step) for step in range(8)]
    assert ends(paired_ratio(drifting, ASKED)) == (pytest.approx(1.1), pytest.approx(1.1))
    lower, upper = ends(ratio_of_medians([a for a, _ in drifting], [b for _, b in drifting], ASKED))
    assert lower < 0.01
    assert upper > 100


def test_intervals_hold_the_truth_as_often_as_they_say(
    draw: random.Random, record_property: pytest.RecordProperty
) -> None:
    """Of 95 % asked, 91 % at least: what falls below does so by chance in one of a million sessions."""
    sets, held = 400, Counter[str]()
    for _ in range(sets):
        first, second = ([draw.lognormvariate(5.0, 0.1) for _ in range(15)] for _ in range(2))
        held["median"] += bool(bootstrap_median(first, ASKED).holds(math.exp(5.0)))
        held["ratio"] += bool(ratio_of_medians(first, second, ASKED).holds(1.0))
        held["paired"] += bool(paired_ratio(list(zip(first, second, strict=True)), ASKED).holds(1.0))
        held["difference"] += bool(difference_of_medians(first, second, ASKED).holds(0.0))
    record_property("shown", f"95 % intervals of 15 runs held the truth, of {sets}: {dict(held)}")
    least = next(count for count in range(sets) if bdtr(count, sets, 0.91) > 1e-6)
    assert min(held.values()) >= least, held


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (bootstrap_median([], ASKED), "no value is known"),
        (bootstrap_median([None, math.nan], ASKED), "no value is known"),
        (bootstrap_mean([3.0], ASKED), "one value alone says nothing of how it varies"),
        (ratio_of_medians([1.0], [2.0, 3.0], ASKED), "one value alone says nothing of how it varies"),
        (ratio_of_medians([1.0, 2.0], [], ASKED), "no value is known"),
        (ratio_of_medians([1.0, 2.0], [0.0, 3.0], ASKED), "a ratio needs values above 0"),
        (paired_ratio([(1.0, 2.0), (-1.0, 2.0)], ASKED), "a ratio needs values above 0"),
        (ratio_of_medians([1e150, 1e150], [1e-300, 1e-300], ASKED), "the ratio is beyond what can be computed with"),
        (paired_ratio([(1.0, None), (1.0, 2.0)], ASKED), "one value alone says nothing of how it varies"),
    ],
)
def test_where_there_is_no_interval_the_reason_is_named(found: Interval, note: str) -> None:
    assert (found.lower, found.upper, found.method, found.notes) == (None, None, Method.NONE, (note,))


def test_values_that_never_differ_have_an_interval_without_width_and_a_note() -> None:
    found = ratio_of_medians([24.0] * 15, [24.0] * 15, ASKED)
    assert (found.estimate, *ends(found)) == (1.0, 1.0, 1.0)
    assert found.notes == ("no resample differs: the spread of the values shows nothing of chance",)


def test_two_values_are_no_basis_and_the_note_says_how_little_they_hold() -> None:
    found = bootstrap_median([1.0, 2.0], ASKED)
    assert ends(found) == (1.0, 2.0)
    assert found.notes == ("2 values: even their full range contains the median with a confidence of at most 50 %",)
    assert bootstrap_median([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ASKED).notes == ()


def test_a_correction_that_cannot_be_computed_is_named() -> None:
    one_sided = bootstrap_statistic([1.0, 2.0, 3.0], lambda table: np.asarray(table.max(axis=-1) * 0.0 + 9.0), ASKED)
    assert one_sided.notes[0].startswith("no resample differs")
    flat = bootstrap_median([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.5], ASKED)
    assert flat.method is Method.BCA
    assert flat.notes == ("no value by itself moves the estimate: corrected for bias alone, the acceleration is 0",)

    def different_values(table: Floats) -> Floats:
        """The whole sample has more different values than any resample."""
        return np.array([float(len(set(row.tolist()))) for row in table])

    found = bootstrap_statistic([float(value) for value in range(40)], different_values, ASKED)
    assert found.method is Method.PERCENTILE
    assert found.notes == ("every resample lies on one side of the estimate: the bias cannot be corrected",)


def test_an_acceleration_beyond_measure_leaves_the_percentile() -> None:
    """One value far above the others, draws nearly all below the estimate, a confidence far into the tail."""

    def less_of_repeated(table: Floats) -> Floats:
        """Resamples repeat values; the sample itself, and all but one of it, do not."""
        distinct = np.array([len(set(row.tolist())) == len(row) for row in table])
        return np.asarray(table.var(axis=-1) * np.where(distinct, 1.0, 0.3), dtype=np.float64)

    values = [*(place * 1e-6 for place in range(60)), 1000.0]
    found = bootstrap_statistic(values, less_of_repeated, IntervalSpec(seed=1, confidence_ratio=0.9999999))
    assert found.method is Method.PERCENTILE
    assert found.notes == ("the acceleration is too strong for this confidence: neither bias nor skew is corrected",)


def test_a_difference_is_of_values_that_have_no_ratio() -> None:
    found = difference_of_medians([0.0] * 6, [3.0, 4.0, 5.0, 5.0, 6.0, 7.0], ASKED)
    assert found.estimate == -5.0
    assert not found.holds(0.0)
    assert paired_difference([(0.0, 3.0), (0.0, 4.0), (1.0, 6.0)], ASKED).estimate == -4.0


@pytest.mark.parametrize(
    "wrong", [{"confidence_ratio": 1.0}, {"confidence_ratio": 0.0}, {"resamples": 102}, {"resamples": 4}]
)
def test_what_cannot_be_asked_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"a confidence is|resamples come"):
        IntervalSpec(seed=1, **wrong)  # type: ignore[arg-type]


def test_samples_of_many_values_are_drawn_in_blocks() -> None:
    blocks = [block.shape for block in draw_places(20_000, 400, 1)]
    assert sum(rows for rows, _ in blocks) == 400
    assert max(rows for rows, _ in blocks) == 200
