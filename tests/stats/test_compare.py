"""Two configurations compared: what is claimed, what is not, and that no side, unit, order or gap bends it."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr
from tests.commands import run_captured

from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.compare import (
    MOST_RUNS,
    POWER,
    ClaimOutcome,
    Comparison,
    Effect,
    Exactness,
    Magnitude,
    Spread,
    cliffs_delta,
    compare,
    compare_pairs,
    fewest_runs,
    find_detectable,
    mann_whitney,
    signed_ranks,
    smallest_p,
)

ASKED = IntervalSpec(seed=2022)
SUMS = Path(__file__).parents[2] / "src/nicbench/importing/reference/data" / "frametest_r750_2022_sums.csv"


def published(direction: str, configuration: str, instances: int) -> list[float]:
    """The sums of frame rates of the 15 runs, as printed."""
    with SUMS.open(encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["direction"], row["configuration"], row["instances"]) == (direction, configuration, str(instances))
        ]
    return [float(row["fps_sum"]) for row in sorted(rows, key=lambda row: int(row["run"]))]


def of_study(direction: str, instances: int) -> Comparison:
    sides = [(name, published(direction, name, instances)) for name in ("1x100", "4x25")]
    return compare(sides[0], sides[1], ASKED)


def ends(found: Comparison) -> tuple[float, float]:
    assert found.effect.lower is not None
    assert found.effect.upper is not None
    return found.effect.lower, found.effect.upper


def numbers(record: Any) -> list[float]:
    """Every number of a record, those within it too."""
    if dataclasses.is_dataclass(record):
        return [number for field in dataclasses.fields(record) for number in numbers(getattr(record, field.name))]
    return [record] if isinstance(record, float) else []


def test_of_the_published_study_the_single_port_reads_faster_with_ten_instances() -> None:
    found = of_study("read", 10)
    assert (found.claim.shown, found.claim.higher, found.claim.lower) == (ClaimOutcome.YES, "1x100", "4x25")
    assert found.effect.estimate == pytest.approx(234.0 / 189.2)
    assert found.test.statistic == 225.0  # every run above every other
    assert found.dominance.delta == 1.0


def test_of_the_published_study_two_instances_write_alike() -> None:
    found = of_study("write", 2)
    assert found.claim.shown is ClaimOutcome.TOO_ALIKE
    assert found.claim.higher is None
    assert found.claim.better_of(higher_is_better=True) is None
    assert of_study("write", 4).claim.shown is ClaimOutcome.INTERVAL_HOLDS


def test_a_difference_that_does_not_exist_is_claimed_of_at_most_one_in_twenty(draw: random.Random) -> None:
    """The promise of the page, of few runs too; by chance above it in one of a million sessions."""
    sets, claimed, pairs_claimed = 300, 0, 0
    for _ in range(sets):
        n = draw.randint(3, 8)
        first, second = ([round(draw.gauss(100, 2)) for _ in range(n)] for _ in range(2))
        claimed += compare(("a", first), ("b", second), ASKED).claim.shown is ClaimOutcome.YES
        pairs_claimed += compare_pairs(("a", first), ("b", second), ASKED).claim.shown is ClaimOutcome.YES
    most = next(count for count in range(sets) if 1 - bdtr(count, sets, 0.05) < 1e-6)
    assert max(claimed, pairs_claimed) <= most


def test_pairs_show_what_a_drift_common_to_both_hides() -> None:
    drift = [100.0 * 1.1**run for run in range(10)]
    first = [1.03 * value * (1 + (-1) ** run * 0.002) for run, value in enumerate(drift)]
    assert compare(("a", first), ("b", drift), ASKED).claim.shown is ClaimOutcome.INTERVAL_HOLDS
    paired = compare_pairs(("a", first), ("b", drift), ASKED)
    assert (paired.claim.shown, paired.claim.higher) == (ClaimOutcome.YES, "a")
    assert paired.effect.estimate == pytest.approx(1.03, rel=1e-3)


def test_three_runs_never_show_a_difference_and_four_can() -> None:
    three = compare(("a", [1.0, 1.1, 1.2]), ("b", [9.0, 9.1, 9.2]), ASKED)
    assert three.claim.shown is ClaimOutcome.TOO_FEW
    four = compare(("a", [1.0, 1.1, 1.2, 1.3]), ("b", [9.0, 9.1, 9.2, 9.3]), ASKED)
    assert (four.claim.shown, four.claim.higher) == (ClaimOutcome.YES, "b")
    assert compare_pairs(("a", [1.0] * 5), ("b", [2.0] * 5), ASKED).claim.shown is ClaimOutcome.TOO_FEW


def test_an_interval_that_leaves_out_one_is_not_enough() -> None:
    """Twelve runs above and three far below five others: the medians differ, and the ranks do not show it."""
    first = [*(10 + run / 100 for run in range(12)), 1.0, 1.1, 1.2]
    found = compare(("a", first), ("b", [9.0, 9.1, 9.2, 9.3, 9.4]), ASKED)
    assert ends(found)[0] > 1.05
    assert found.test.p == pytest.approx(816 / 15504)  # of C(20, 5) deals
    assert found.claim.shown is ClaimOutcome.TEST_DOES_NOT
    assert found.claim.higher is None


def test_values_of_zero_are_compared_by_their_difference() -> None:
    dropped = compare(("a", [0.0] * 6), ("b", [90.0, 100.0, 110.0, 120.0, 95.0, 99.0]), ASKED)
    assert dropped.kind is Effect.DIFFERENCE
    assert dropped.claim.better_of(higher_is_better=False) == "a"
    pairs = compare_pairs(("a", [0.0] * 6), ("b", [90.0, 100.0, 110.0, 120.0, 95.0, 99.0]), ASKED)
    assert (pairs.kind, pairs.effect.estimate) == (Effect.PAIRED_DIFFERENCE, -99.5)


def test_unknown_runs_are_counted_and_take_their_pair_with_them() -> None:
    alone = compare(("a", [1.0, None, 3.0]), ("b", [math.nan, None, 3.0]), ASKED)
    assert (alone.first.sample.n, alone.first.sample.unknown, alone.second.sample.n) == (2, 1, 1)
    assert alone.claim.shown is ClaimOutcome.NO_INTERVAL
    pairs = compare_pairs(("a", [1.0, None, 3.0]), ("b", [2.0, 5.0, 3.0]), ASKED)
    assert (pairs.second.sample.n, pairs.second.sample.unknown) == (2, 1)
    with pytest.raises(ValueError, match="pairs have two runs each; there are 1 and 2"):
        compare_pairs(("a", [1.0]), ("b", [1.0, 2.0]), ASKED)


_RUNS = st.lists(st.none() | st.floats() | st.floats(0.9, 1.1) | st.sampled_from([0.0, 1.0, 24.0]), max_size=9)


@settings(max_examples=100)
@given(first=_RUNS, second=_RUNS)
def test_whatever_is_compared_no_number_is_nan_and_nothing_fails(
    first: list[float | None], second: list[float | None]
) -> None:
    found = [compare(("a", first), ("b", second), ASKED)]
    if len(first) == len(second):
        found.append(compare_pairs(("a", first), ("b", second), ASKED))
    for one in found:
        assert all(math.isfinite(number) for number in numbers(one))
        assert (one.claim.higher is None) is (one.claim.shown is not ClaimOutcome.YES)
        assert (one.effect.lower is None) is bool(one.claim.shown is ClaimOutcome.NO_INTERVAL)


_POSITIVE = st.lists(st.floats(1e-3, 1e6).map(lambda value: float(f"{value:.4g}")), min_size=2, max_size=9)


@settings(max_examples=40)
@given(first=_POSITIVE, second=_POSITIVE, order=st.randoms(use_true_random=False))
def test_sides_units_and_order_do_not_matter(first: list[float], second: list[float], order: random.Random) -> None:
    found, turned = compare(("a", first), ("b", second), ASKED), compare(("b", second), ("a", first), ASKED)
    assert ends(found) == (pytest.approx(1 / ends(turned)[1]), pytest.approx(1 / ends(turned)[0]))
    assert found.claim.shown is turned.claim.shown
    assert found.claim.higher == turned.claim.higher
    scaled = compare(("a", [8.0 * value for value in first]), ("b", [8.0 * value for value in second]), ASKED)
    assert ends(scaled) == pytest.approx(ends(found))
    mixed = compare(("a", order.sample(first, len(first))), ("b", order.sample(second, len(second))), ASKED)
    assert mixed == found


def test_reading_the_statistics_loads_no_scipy() -> None:
    """It takes longer to load than all they compute; who needs it loads it then."""
    names = "compare, drift, intervals, sample, wording"
    code = f"import sys; from nicbench.stats import {names}; print('scipy' in sys.modules)"
    found = run_captured([sys.executable, "-c", code])
    assert found.stdout == "False\n"


# Rank tests and Cliff's delta: printed examples, every outcome counted, and the guarantee of an exact test.


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


# How small a difference could be shown: by hand, and by comparisons of simulated runs that differ by just so much.


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
