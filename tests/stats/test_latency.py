"""Latency distributions from histograms, against plain sorting."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from nicbench.core.trial import Latency, SharedCore
from nicbench.stats.latency import (
    DIGITS,
    HIGHEST_NS,
    LOWEST_NS,
    add_histograms,
    add_percentiles,
    bin_counts,
    frames_above,
    histogram_of,
    merge,
    percentiles_ns,
    split_by_core,
)
from nicbench.store.samples import decode

GOLDEN = json.loads((Path(__file__).parent / "golden/hdr_histogram.json").read_text())


def encoded(values: list[int]) -> str:
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for value in values:
        histogram.record_value(value)
    text = histogram.encode()
    return text.decode("ascii")


def latency(values: list[int], *, source: str = "software", uncertainty_ns: float | None = 50.0) -> Latency:
    return Latency(
        source=source,
        resolution_ns=1.0,
        uncertainty_ns=uncertainty_ns,
        count=len(values),
        minimum_ns=min(values),
        mean_ns=sum(values) / len(values),
        maximum_ns=max(values),
        histogram=encoded(values),
    )


@pytest.fixture
def values(draw: random.Random) -> list[int]:
    return [int(draw.lognormvariate(9.0, 1.0)) + 1 for _ in range(20_000)]


def test_percentiles_agree_with_sorting_within_three_digits(values: list[int]) -> None:
    ordered = sorted(values)
    known = percentiles_ns(encoded(values))
    for name, value in known.items():
        rank = math.ceil(len(ordered) * Fraction(name) / 100)  # the smallest value that so many do not exceed
        assert value == pytest.approx(ordered[rank - 1], rel=0.001)


@pytest.mark.parametrize("case", GOLDEN["histograms"], ids=lambda case: f"{case['frames']} frames")
def test_every_percentile_is_that_of_another_implementation(case: dict[str, Any]) -> None:
    """The package that we decode with takes the nearest rank, others the next: a tail that is a rank too short."""
    found = percentiles_ns(case["histogram"])
    assert found == {name: case["values_ns"][name] for name in found}


@pytest.mark.parametrize(
    ("count", "highest"),
    [(1, None), (2, "50"), (100, "99"), (1_000, "99.9"), (9_999, "99.9"), (10_000, "99.99"), (1_000_000, "99.9999")],
)
def test_a_percentile_above_which_no_frame_lies_is_absent(count: int, highest: str | None) -> None:
    known = percentiles_ns(encoded([1_000] * count))
    assert (list(known)[-1] if known else None) == highest


def test_no_percentile_exceeds_the_exact_maximum() -> None:
    measured = add_percentiles(latency([10_000_001] * 200))
    assert measured.percentiles_ns == {"50": 10_000_001, "90": 10_000_001, "99": 10_000_001}


def test_without_a_histogram_there_are_no_percentiles() -> None:
    bare = latency([1_000]).replace(histogram=None)
    assert add_percentiles(bare).percentiles_ns == {}


def test_merging_streams_is_as_if_they_had_been_one(values: list[int]) -> None:
    merged = merge([latency(values[:5_000]), latency(values[5_000:])])
    whole = add_percentiles(latency(values))
    assert merged.mean_ns == pytest.approx(whole.mean_ns)
    assert merged.replace(mean_ns=0.0, histogram=None) == whole.replace(mean_ns=0.0, histogram=None)


def test_what_is_unknown_of_one_stream_is_unknown_of_all() -> None:
    merged = merge([latency([5]), latency([6], uncertainty_ns=None).replace(histogram=None)])
    assert merged.uncertainty_ns is None
    assert merged.histogram is None
    assert merged.percentiles_ns == {}


def test_nothing_merged_is_nothing() -> None:
    assert merge([]) is None


def test_latencies_of_different_clocks_are_not_merged() -> None:
    with pytest.raises(ValueError, match=r"different clocks.*scheduled and tsc, software and tsc"):
        merge([latency([5]), latency([5], source="scheduled")])
    by_card = latency([5]).replace(received_by="card")
    with pytest.raises(ValueError, match=r"different clocks.*software and card, software and tsc"):
        merge([latency([5]), by_card])


def test_frames_that_came_before_they_were_sent_are_counted_over_all_streams() -> None:
    parts = [latency([5]).replace(negative=n, negative_maximum_ns=10 * n) for n in (1, 3)]
    merged = merge(parts)
    assert (merged.negative, merged.negative_maximum_ns) == (4, 30)


@pytest.mark.parametrize("text", ["", "not base64 at all", "SElTVA=="])
def test_what_is_no_histogram_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not an HdrHistogram"):
        percentiles_ns(text)


def test_frames_above_bounds_are_counted_as_sorting_counts_them(values: list[int]) -> None:
    bounds = [1_000, 5_000, 8_192, 20_000, 10**9]
    counted = frames_above(latency(values), bounds)
    assert counted is not None
    for bound, above in zip(bounds, counted, strict=True):
        surely, perhaps = (sum(1 for value in values if value > limit) for limit in (bound * 1.001, bound))
        assert surely <= above <= perhaps
    assert counted[-1] == 0


def test_the_exact_maximum_decides_where_the_histogram_is_coarse() -> None:
    assert frames_above(latency([1_000_001, 1_000_003]), [1_000_003]) == (0,)
    assert frames_above(latency([5]).replace(histogram=None), [1]) is None


def test_frames_of_a_shared_core_are_told_from_the_others(values: list[int]) -> None:
    shared, own = values[:2_000], values[2_000:]
    whole = latency(values).replace(shared_core=SharedCore(count=2_000, histogram=encoded(shared)))
    apart = split_by_core(whole)

    assert (apart.own_count, apart.shared_count) == (len(own), 2_000)
    assert apart.own_ns == percentiles_ns(encoded(own), maximum_ns=max(values))
    assert apart.shared_ns == percentiles_ns(encoded(shared), maximum_ns=max(values))


def test_of_streams_the_frames_of_a_shared_core_are_added_up_where_each_knows_them() -> None:
    one = latency([5, 6]).replace(shared_core=SharedCore(count=1, histogram=encoded([5])))
    none = latency([7]).replace(shared_core=SharedCore(count=0, histogram=encoded([])))
    merged = merge([one, none])

    assert merged.shared_core == SharedCore(count=1, histogram=encoded([5]))
    unknown = merge([one, latency([7])])
    assert unknown.shared_core is None
    assert split_by_core(unknown) is None


def test_times_beyond_those_of_network_frames_keep_their_values_when_they_are_added_up() -> None:
    late = histogram_of([(200 * 10**9, 50), (490 * 10**9, 50)], highest_ns=3600 * 10**9)
    added = add_histograms([late, histogram_of([(10**9, 1)])])
    assert added is not None
    found = percentiles_ns(added)
    assert found["50"] == pytest.approx(200e9, rel=1e-3)
    assert found["90"] == pytest.approx(490e9, rel=1e-3)


# Latency distributions in bins: no frame is lost, and each is in the bin of its value.


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
