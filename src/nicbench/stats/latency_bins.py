"""Latency distributions in few bins, for a picture of many of them: ten to a decade, as decibels have. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from hdrh.histogram import HdrHistogram
    from numpy.typing import NDArray

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
