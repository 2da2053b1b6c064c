"""Latency distributions in bins: no frame is lost, and each is in the bin of its value."""

from __future__ import annotations

import math

from nicbench.stats.latency import bin_counts, histogram_of
from nicbench.store.samples import decode


def test_frames_are_counted_in_the_bin_of_their_latency() -> None:
    counted = [(1, 3), (999, 1), (1_000, 5), (1_258, 2), (20_000, 100), (90_000_000_000, 7)]
    first, counts = bin_counts(decode(histogram_of(counted)))
    assert first == 0
    assert sum(counts) == 118
    assert {number: count for number, count in enumerate(counts) if count} == {0: 3, 29: 1, 30: 7, 43: 100, 109: 7}


def test_each_power_of_the_step_begins_a_bin() -> None:
    for number in range(10, 105):
        least = math.ceil(10 ** (number / 10))
        slot = decode(histogram_of([(least, 1)])).get_highest_equivalent_value(least) + 1
        assert bin_counts(decode(histogram_of([(slot, 1)])))[0] == number


def test_values_below_a_nanosecond_count_as_one_and_no_frames_have_no_bins() -> None:
    assert bin_counts(decode(histogram_of([(0, 4)]))) == (0, [4])
    assert bin_counts(decode(histogram_of([]))) == (0, [])
