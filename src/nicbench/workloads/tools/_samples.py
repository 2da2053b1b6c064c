"""From latencies of single requests, as tools keep them, to a distribution: ends, mean, histogram, percentiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, pstdev

from nicbench.model.round import Basis, RequestLatency
from nicbench.stats.latency import histogram_of, percentiles_ns
from nicbench.workloads.base import WorkloadError

NANOSECONDS_PER_MICROSECOND = 1000


def latency_of(samples_us: Sequence[float], basis: Basis, tool: str) -> RequestLatency:
    """The distribution of latencies in microseconds; WorkloadError where there is none, or one is no latency."""
    if not samples_us:
        raise WorkloadError(f"{tool} kept no latency of any request")
    least, most = min(samples_us), max(samples_us)
    if not math.isfinite(math.fsum(samples_us)) or least <= 0:
        raise WorkloadError(f"{tool} kept a latency of {least:g} us")
    counted = Counter(round(one * NANOSECONDS_PER_MICROSECOND) for one in samples_us)
    histogram = histogram_of(sorted(counted.items()))
    maximum_ns = most * NANOSECONDS_PER_MICROSECOND
    return RequestLatency(
        basis=basis,
        count=len(samples_us),
        minimum_ns=least * NANOSECONDS_PER_MICROSECOND,
        mean_ns=fmean(samples_us) * NANOSECONDS_PER_MICROSECOND,
        maximum_ns=maximum_ns,
        stdev_ns=pstdev(samples_us) * NANOSECONDS_PER_MICROSECOND,
        percentiles_ns=dict(percentiles_ns(histogram, maximum_ns=round(maximum_ns))),
        histogram=histogram,
    )
