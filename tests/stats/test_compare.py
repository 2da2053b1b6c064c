"""Two configurations compared: what is claimed, what is not, and that no side, unit, order or gap bends it."""

from __future__ import annotations

import csv
import dataclasses
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr

from nicbench.stats.compare import ClaimOutcome, Comparison, Effect, compare, compare_pairs
from nicbench.stats.intervals import IntervalSpec

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
    assert found.test is not None
    assert found.test.statistic == 225.0  # every run above every other
    assert found.dominance is not None
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
    assert found.test is not None
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
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
