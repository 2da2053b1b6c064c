"""The long tail of messages: how many took how long, in bins, and how many were slower than each bound.

The bins are those of a published report on RoCE v2 under congestion (2018), which timed about 10,000 messages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from nicbench.methods.base import Values
from nicbench.model.round import RequestLatency
from nicbench.stats.latency import added, counts_above, percentiles_ns

BINS_S: Final = (50e-6, 100e-6, 150e-6, 200e-6, 250e-6)
PERCENTILES: Final = ("50", "99", "99.9")


def together(parts: Sequence[RequestLatency | None]) -> RequestLatency | None:
    """Several probes as one; None where one is missing, or they do not measure the same (one way, half, whole)."""
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts) or len({part.basis for part in known}) > 1:
        return None
    if len(known) == 1:
        return known[0]
    histogram = added([part.histogram for part in known])
    maxima = [part.maximum_ns for part in known]
    maximum_ns = None if any(one is None for one in maxima) else max(one or 0.0 for one in maxima)
    counts = [part.count for part in known]
    count = None if any(one is None for one in counts) else sum(one or 0 for one in counts)
    means = [(part.mean_ns, part.count) for part in known]
    weighed = [mean_ns * many for mean_ns, many in means if mean_ns is not None and many]
    rounded = None if maximum_ns is None else round(maximum_ns)
    return RequestLatency(
        basis=known[0].basis,
        count=count,
        minimum_ns=min((part.minimum_ns for part in known if part.minimum_ns is not None), default=None),
        mean_ns=math.fsum(weighed) / count if count and len(weighed) == len(known) else None,
        maximum_ns=maximum_ns,
        percentiles_ns={} if histogram is None else dict(percentiles_ns(histogram, maximum_ns=rounded)),
        histogram=histogram,
    )


def latency_values(latency: RequestLatency | None) -> Values:
    """What a probe says; nothing is known without one."""
    if latency is None:
        return {"latency_mean_ns": None, "latency_maximum_ns": None}
    return {
        "latency_mean_ns": latency.mean_ns,
        **{f"latency_p{name.replace('.', '_')}_ns": latency.percentiles_ns.get(name) for name in PERCENTILES},
        "latency_maximum_ns": latency.maximum_ns,
        "latency_basis": latency.basis,
        "timed_messages": latency.count,
    }


def tail_values(latency: RequestLatency | None, bounds_s: Sequence[float]) -> Values:
    """Messages in each bin and outside each bound; nothing where the probe kept no samples."""
    if latency is None or latency.histogram is None or not latency.count or latency.maximum_ns is None:
        return {}
    bounds_ns = [round(bound_s * 1e9) for bound_s in bounds_s]
    above = counts_above(latency.histogram, latency.maximum_ns, bounds_ns)
    inside = [before - after for before, after in pairwise((latency.count, *above))]
    return {
        **{f"bin_to_{bound}_ns_messages": count for bound, count in zip(bounds_ns, inside, strict=True)},
        f"bin_over_{bounds_ns[-1]}_ns_messages": above[-1],
        **{f"outside_{bound}_ns_messages": count for bound, count in zip(bounds_ns, above, strict=True)},
    }
