"""Latency distributions: percentiles, merging, and frames above a bound, from HdrHistogram V2 in base64.

The histogram keeps three digits; exact minimum and maximum are stored beside it and take precedence.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from hdrh.histogram import HdrHistogram

from nicbench.core.base import Frozen
from nicbench.core.lists import without_none
from nicbench.core.trial import Latency, SharedCore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


PERCENTILES = ("50", "90", "99", "99.9", "99.99", "99.999", "99.9999")
_SHARES: Final = {name: (Fraction(name) / 100).as_integer_ratio() for name in PERCENTILES}
LOWEST_NS, HIGHEST_NS, DIGITS = 1, 2**40 - 2**36, 3
"""The range and precision with which the engine records: 1 ns to 1030 s with three digits."""


def percentiles_ns(histogram: str, *, maximum_ns: int | None = None) -> dict[str, int]:
    """Returns the percentiles that this many frames show, by nearest rank: the value of frame ceil(share * count).

    A percentile above which not even one frame lies is omitted: it would only repeat the maximum.
    """
    return _percentiles_of(_decode(histogram), maximum_ns)


def _percentiles_of(decoded: Any, maximum_ns: int | None) -> dict[str, int]:
    count = decoded.get_total_count()
    slots, frames = _recorded_slots(decoded)
    up_to = list(accumulate(frames))
    known = {}
    for name, (share, whole) in _SHARES.items():
        if count * (whole - share) >= whole:
            # Not by the package, which rounds the rank to the nearest frame instead of up.
            value = _value_of(decoded, slots[bisect_left(up_to, -(-count * share // whole))])
            known[name] = value if maximum_ns is None else min(value, maximum_ns)
    return known


def slowest_ns(histogram: str, of: int, probability: float) -> int | None:
    """Returns the time within which the slowest of independent requests is answered with this probability.

    All of them are within a time t with F(t) to the power of their number, ``of``; so it is the percentile of the
    probability's root. None where not even one recorded value lies above it.
    """
    decoded = _decode(histogram)
    count, share = decoded.get_total_count(), probability ** (1.0 / of)
    if count * (1.0 - share) < 1.0:
        return None
    slots, counts = _recorded_slots(decoded)
    return _value_of(decoded, slots[bisect_left(list(accumulate(counts)), math.ceil(count * share))])


def add_histograms(histograms: Sequence[str | None]) -> str | None:
    """Adds up histograms; None where one of them is unknown."""
    counts: Counter[int] = Counter()
    for histogram in histograms:
        if histogram is None:
            return None
        counts.update(dict(value_counts(histogram)))
    return histogram_of(sorted(counts.items()), highest_ns=max(HIGHEST_NS, *counts, HIGHEST_NS))


def frames_above(latency: Latency, bounds_ns: Sequence[int]) -> tuple[int, ...] | None:
    """Counts the frames that took longer than each bound; None without a histogram."""
    if latency.histogram is None:
        return None
    return counts_above(latency.histogram, latency.maximum_ns, bounds_ns)


def counts_above(histogram: str, maximum_ns: float, bounds_ns: Sequence[int]) -> tuple[int, ...]:
    """Counts the recorded values above each bound.

    The histogram keeps three digits: values less than 0.1 % above a bound may count as within it.
    """
    decoded = _decode(histogram)
    recorded = [
        (decoded.get_value_from_index(slot), frames) for slot, frames in zip(*_recorded_slots(decoded), strict=True)
    ]
    return tuple(
        0 if maximum_ns <= bound_ns else sum(count for lowest_ns, count in recorded if lowest_ns > bound_ns)
        for bound_ns in bounds_ns
    )


def add_percentiles(latency: Latency) -> Latency:
    """Returns the latency with percentiles computed from its histogram, where it has one.

    Raises ValueError where the histogram holds another number of frames than the latency counts.
    """
    if latency.histogram is None:
        return latency
    decoded = _decode(latency.histogram)
    if decoded.get_total_count() != latency.count:
        raise ValueError(f"{latency.count} latencies are counted, and their histogram has {decoded.get_total_count()}")
    return latency.replace(percentiles_ns=_percentiles_of(decoded, latency.maximum_ns))


def merge(parts: Sequence[Latency]) -> Latency | None:
    """Merges the latencies of several streams or trials; None for an empty list.

    Raises ValueError where they were stamped in different ways.
    """
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0] if parts[0].percentiles_ns else add_percentiles(parts[0])
    sources = sorted({(part.source, part.received_by) for part in parts})
    if len(sources) > 1:
        both = ", ".join(f"{sent} and {received}" for sent, received in sources)
        raise ValueError(f"latencies from different clocks cannot be merged: {both}")
    count = sum(part.count for part in parts)
    merged = Latency(
        source=sources[0][0],
        received_by=sources[0][1],
        resolution_ns=_greatest([part.resolution_ns for part in parts]),
        uncertainty_ns=_greatest([part.uncertainty_ns for part in parts]),
        negative=sum(part.negative for part in parts),
        negative_maximum_ns=max(part.negative_maximum_ns for part in parts),
        count=count,
        minimum_ns=min(part.minimum_ns for part in parts),
        mean_ns=math.fsum(part.mean_ns * part.count for part in parts) / count,
        maximum_ns=max(part.maximum_ns for part in parts),
        histogram=add_histograms([part.histogram for part in parts]),
        sample_of=_sample_of(parts),
        shared_core=_merge_shared([part.shared_core for part in parts]),
    )
    return add_percentiles(merged)


class LatencyByCore(Frozen):
    """Percentiles of the frames of a latency: with the DUT's core to itself, and while a neighbour shared it."""

    own_count: int
    own_ns: dict[str, int]
    shared_count: int
    shared_ns: dict[str, int]


def split_by_core(latency: Latency) -> LatencyByCore | None:
    """Returns the percentiles of the frames apart; None where nobody looked at the DUT's core."""
    if latency.shared_core is None or latency.histogram is None:
        return None
    own = Counter(dict(value_counts(latency.histogram)))
    own.subtract(dict(value_counts(latency.shared_core.histogram)))
    return LatencyByCore(
        own_count=latency.count - latency.shared_core.count,
        own_ns=percentiles_ns(histogram_of(sorted((+own).items())), maximum_ns=latency.maximum_ns),
        shared_count=latency.shared_core.count,
        shared_ns=percentiles_ns(latency.shared_core.histogram, maximum_ns=latency.maximum_ns),
    )


def _decode(histogram: str) -> Any:
    try:
        decoded = HdrHistogram.decode(histogram)
    except Exception as problem:  # base64, zlib and the package itself share no base of their errors
        raise ValueError(f"not an HdrHistogram V2 in base64: {problem!r}") from problem
    if decoded is None:
        raise ValueError("not an HdrHistogram V2 in base64")
    return decoded


def _recorded_slots(decoded: Any) -> tuple[list[int], list[int]]:
    """Returns the slots that are not empty, rising, and their counts; the package visits empty slots too."""
    import numpy as np  # imported here, as most uses of methods need no histogram

    counts = np.ctypeslib.as_array(decoded.counts)
    slots = np.flatnonzero(counts)
    return slots.tolist(), counts[slots].tolist()


def _value_of(decoded: Any, slot: int) -> int:
    """Returns the greatest value of a slot."""
    return int(decoded.get_highest_equivalent_value(decoded.get_value_from_index(slot)))


def _merge_shared(parts: Sequence[SharedCore | None]) -> SharedCore | None:
    """Adds up the frames that a neighbour may have delayed; None where nobody looked in one of the parts."""
    known = without_none(parts)
    histogram = add_histograms([part.histogram for part in known])
    if len(known) < len(parts) or histogram is None:
        return None
    return SharedCore(count=sum(part.count for part in known), histogram=histogram)


def histogram_of(counted: Iterable[tuple[int, int]], highest_ns: int = HIGHEST_NS) -> str:
    """Builds a histogram from latencies in nanoseconds up to ``highest_ns``, each with its number of frames."""
    whole = HdrHistogram(LOWEST_NS, highest_ns, DIGITS)
    for latency_ns, frames in counted:
        whole.record_value(min(max(latency_ns, LOWEST_NS), highest_ns), frames)
    return _text(whole)


def value_counts(histogram: str) -> tuple[tuple[int, int], ...]:
    """Returns the values of a histogram, in its own unit, with their counts; ValueError where it is not a histogram."""
    decoded = _decode(histogram)
    slots, counts = _recorded_slots(decoded)
    return tuple((_value_of(decoded, slot), count) for slot, count in zip(slots, counts, strict=True))


def _text(histogram: Any) -> str:
    encoded = histogram.encode()
    return encoded.decode("ascii") if isinstance(encoded, bytes) else str(encoded)


def _sample_of(parts: Sequence[Latency]) -> int | None:
    """Returns the number of frames that the sampled ones stand for; None where every frame was timed."""
    if all(part.sample_of is None for part in parts):
        return None
    return sum(part.count if part.sample_of is None else part.sample_of for part in parts)


def _greatest(values: Sequence[float | None]) -> float | None:
    """Returns the greatest value; None where one of them is unknown."""
    known = without_none(values)
    return max(known) if known and len(known) == len(values) else None


# Latency distributions in few bins, for a picture of many of them: ten to a decade, as decibels have. Pure.


BINS_PER_DECADE: Final = 10
"""Bin k holds the values from 10^(k/10) up to 10^((k+1)/10) nanoseconds, of which neighbours differ by 26 %."""
_ROUNDING: Final = 1e-9
"""The logarithm of a bin's own bound may come out as much too small."""


def bin_counts(histogram: HdrHistogram) -> tuple[int, list[int]]:
    """Returns the number of the first bin that is not empty, and the counts from there to the last; (0, []) of none.

    Values below 1 ns count as 1 ns.
    """
    import numpy as np  # imported here, as most who read a journal draw nothing

    counts = np.ctypeslib.as_array(histogram.counts)
    slots = np.flatnonzero(counts)
    if not len(slots):
        return 0, []
    bins = _bin_of_slots(histogram.counts_len, histogram.sub_bucket_half_count_magnitude, histogram.unit_magnitude)
    found = bins[slots]
    first = int(found[0])  # slots rise, and so do their bins
    summed: NDArray[Any] = np.bincount(found - first, weights=counts[slots])
    return first, [int(count) for count in summed]


@lru_cache(maxsize=8)
def _bin_of_slots(slots: int, half_magnitude: int, unit_magnitude: int) -> NDArray[np.int64]:
    """Returns the bin of each slot by its lowest value; all histograms of one range and precision share them."""
    import numpy as np

    index = np.arange(slots)
    bucket = (index >> half_magnitude) - 1
    within = (index & ((1 << half_magnitude) - 1)) + np.where(bucket < 0, 0, 1 << half_magnitude)
    values = np.ldexp(within.astype(float), np.maximum(bucket, 0) + unit_magnitude)
    found: NDArray[np.int64] = np.floor(BINS_PER_DECADE * np.log10(np.maximum(values, 1.0)) + _ROUNDING).astype(int)
    return found
