"""Sentences on comparisons and drift: what they tell a reader, and that none claims more than was found."""

from __future__ import annotations

import random

import pytest

from nicbench.core.units import Quantity, figures, format_alike, percent, probability
from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.compare import ClaimOutcome, Comparison, compare, compare_pairs
from nicbench.stats.drift import find_drifts
from nicbench.stats.sample import Series
from nicbench.stats.wording import arithmetic, could_show, drift_sentence, drift_summary, sentence

ASKED = IntervalSpec(seed=1)
RATES = Quantity("sum of frame rates", "frames/s", higher_is_better=True, adjective="fast")
LATENCY = Quantity("median latency", "µs", higher_is_better=False)
DROPPED = Quantity("dropped frames", "frames", higher_is_better=False)
PORT = [235.0, 234.6, 235.2, 234.1, 233.8, 235.5, 234.9, 234.4]
BOND = [190.1, 188.0, 192.3, 189.5, 187.2, 191.4, 190.8, 186.9]


def of(first: list[float], second: list[float]) -> Comparison:
    return compare(("1x100", list(first)), ("4x25", list(second)), ASKED)


def test_a_difference_that_is_shown_is_said_with_its_interval_whichever_side_comes_first() -> None:
    said = "with 10 instances, 1x100 is 1.24 times as fast as 4x25 [1.23, 1.25]"
    assert sentence(of(PORT, BOND), RATES, "with 10 instances") == said
    turned = compare(("4x25", BOND), ("1x100", PORT), ASKED)
    assert sentence(turned, RATES, "with 10 instances") == said


def test_its_arithmetic_is_shown() -> None:
    assert arithmetic(of(PORT, BOND), RATES) == (
        "median 234.8 frames/s of 8 runs of 1x100; median 189.8 frames/s of 8 runs of 4x25; ratio of medians (1x100 "
        "over 4x25) 1.24, 95 % BCa bootstrap interval of 10,000 resamples (seed 1) [1.23, 1.25]; Mann-Whitney U 64, "
        "p = 0.0002 (two-sided, exact); Cliff's delta 1.00 [0.51, 1.00], large"
    )


def test_no_difference_is_said_with_the_interval_that_holds_one_and_the_runs_it_needs() -> None:
    first, second = [48.0, 47.1, 49.0, 48.4, 47.5, 48.8], [48.1, 47.0, 49.3, 48.6, 47.2, 49.1]
    found = of(first, second)
    assert sentence(found, RATES, "with 2 instances") == (
        "with 2 instances, the medians of 1x100 and 4x25 (48.20 and 48.35 frames/s) differ, but no difference can be "
        "claimed: the ratio's interval [0.972, 1.029] holds 1; about 820 runs of each would show it"
    )
    assert could_show(found, RATES) == (
        "runs that vary as these would show a difference of 4.1 % or more with a probability of 80 %; to show the "
        "one seen, about 820 runs of each are needed"
    )


def test_without_a_word_for_better_the_sentence_says_which_is_higher_and_which_is_better() -> None:
    assert sentence(of(PORT, BOND), LATENCY) == (
        "1x100 has 1.24 times the median latency of 4x25 [1.23, 1.25], and 4x25 is the better"
    )
    neutral = Quantity("share of one port", "")
    assert sentence(of(PORT, BOND), neutral) == "1x100 has 1.24 times the share of one port of 4x25 [1.23, 1.25]"


def test_less_can_be_faster() -> None:
    quick = Quantity("median latency", "µs", higher_is_better=False, adjective="fast")
    assert sentence(of(BOND, PORT), quick) == "1x100 is 1.24 times as fast as 4x25 [1.23, 1.25]"


def test_counts_with_zeros_are_told_apart_by_their_difference() -> None:
    found = of([0.0] * 6, [90.0, 100.0, 110.0, 120.0, 95.0, 99.0])
    assert (
        sentence(found, DROPPED)
        == "4x25 is 99.50 frames above 1x100 in dropped frames [92.55, 114.4], and 1x100 is the better"
    )
    assert "difference of medians (1x100 less 4x25) -99.50 frames" in arithmetic(found, DROPPED)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            [1.0, 2.0, 3.0],
            [11.0, 12.0, 13.0],
            "3 runs and 3 runs are too few to show a difference of any size; about 4 runs of each would show it",
        ),
        (
            [1.0],
            [2.0],
            "there is no interval (one value alone says nothing of how it varies); at least 4 runs of each are needed",
        ),
        ([], [2.0], "there is no interval (no value is known)"),
        (
            [*(10 + run / 100 for run in range(12)), 1.0, 1.1, 1.2],
            [9.0, 9.1, 9.2, 9.3, 9.4],
            (
                "the ratio's interval [1.07, 1.12] leaves out 1, but Mann-Whitney U has p = 0.053, above 0.05; about "
                "1,400 runs of each would show it"
            ),
        ),
        ([24.0] * 9, [24.0] * 9, "all runs gave the same value"),
        ([0.0] * 5, [0.0, 0.0, 0.0, 0.0, 1.0], "too many runs gave the same value"),
    ],
)
def test_why_nothing_is_shown_is_said(first: list[float], second: list[float], said: str) -> None:
    found = of(first, second)
    told = sentence(found, RATES)
    assert told.endswith(f": {said}")
    medians = found.first.sample.median, found.second.sample.median
    equal = None in medians or medians[0] == medians[1]
    assert told.startswith(
        "no difference is shown between 1x100 and 4x25" if equal else "the medians of 1x100 and 4x25"
    )


def test_pairs_are_called_pairs() -> None:
    found = compare_pairs(("a", [1.0, 2.0, 3.0]), ("b", [1.1, 2.3, None]), ASKED)
    assert sentence(found, RATES) == (
        "the medians of a and b (1.500 and 1.700 frames/s) differ, but no difference can be claimed: 2 runs of each "
        "are too few to show a difference of any size; about 6 pairs would show it"
    )
    assert "2 runs of a (1 more unknown)" in arithmetic(found, RATES)
    assert (could_show(found, RATES) or "").endswith("6 pairs could; to show the one seen, about 6 pairs are needed")


def test_no_sentence_claims_what_is_not_shown(draw: random.Random) -> None:
    for _ in range(60):
        first, second = ([draw.gauss(100, 3) for _ in range(draw.randint(2, 9))] for _ in range(2))
        found = of(first, second)
        claims = "as fast" in sentence(found, RATES)
        assert claims is (found.claim.shown is ClaimOutcome.YES)


def test_no_rounding_moves_an_end_onto_no_difference() -> None:
    close = of([1.0001, 1.0002, 1.0003, 1.0004, 1.00041, 1.00045], [1.0, 1.00001, 1.00002, 1.00003, 1.00005, 1.00006])
    assert sentence(close, RATES) == "1x100 is 1.0003 times as fast as 4x25 [1.0001, 1.0004]"
    assert format_alike((1.24, 1.19, 1.31), 1.0) == ("1.24", "1.19", "1.31")
    assert format_alike((1.5, 1.001, 2.0), 1.0) == ("1.500", "1.001", "2.000")
    assert format_alike((1.0, 1.0, 1.0), 1.0) == ("1.00", "1.00", "1.00")
    assert format_alike((1.2341, 1.2342), 1.0) == ("1.2341", "1.2342")


def test_numbers_have_no_exponent_and_no_more_digits_than_they_are_worth() -> None:
    assert [figures(value) for value in (235.12, 14_880_952.0, 0.0123456, 0.0, -3.14159)] == [
        "235.1",
        "14,880,000",
        "0.01235",
        "0",
        "-3.142",
    ]
    assert [probability(p) for p in (1.0, 0.321, 0.0321, 0.00321, 0.0000321)] == [
        "p = 1.00",
        "p = 0.32",
        "p = 0.032",
        "p = 0.0032",
        "p < 0.0001",
    ]
    assert [percent(value) for value in (3.21, -0.0411, 0.0, 123.4)] == ["+3.2 %", "-0.041 %", "0 %", "+123 %"]


def test_drift_is_said_with_its_size_and_how_many_tests_were_made() -> None:
    warm = Series("throughput", [100.0 + run for run in range(15)])
    still = Series("latency", [5.0, 4.9, 5.1, 5.05, 4.95, 5.02, 4.93, 5.08, 4.97, 5.01, 5.04, 4.96, 5.03, 4.99, 4.98])
    found = find_drifts([warm, still, Series("constant", [1.0] * 15), Series("short", [1.0, 2.0])])
    assert drift_summary(found) == (
        "1 of 4 values drifts over the run (4 tests, corrected together by Holm's method at 95 %)"
    )
    assert drift_sentence(found.all[0]) == (
        "throughput: +13 % [+13 %, +13 %] from the first to the last of 15 runs (Mann-Kendall, p < 0.0001 corrected); "
        "+9.3 % from the median of the first 5 runs to that of the last 5 (Mann-Whitney U, p = 0.024 corrected)"
    )
    assert drift_sentence(found.all[1]) == "latency: no drift is shown over 15 runs (-0.40 % by Sen's slope)"
    assert drift_sentence(found.all[2]) == "constant: all values are the same"
    assert drift_sentence(found.all[3]).startswith("short: a trend and a difference between thirds could not be shown")


def test_drift_that_nobody_could_test_is_not_called_absent() -> None:
    assert drift_summary(find_drifts([Series("a", [1.0, 2.0])])) == (
        "whether the only value drifts over the run was not tested: there are too few runs, or they do not differ"
    )
    assert drift_summary(find_drifts([Series("a", [1.0, 3.0, 2.0, 5.0, 1.5, 2.5])])) == (
        "no drift over the run is shown by the only value (1 test, corrected together by Holm's method at 95 %)"
    )
