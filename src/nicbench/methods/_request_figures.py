"""From the probes of repeated rounds to one latency: percentiles, extremes, and the bins of the long tail. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

from nicbench.methods._round_figures import loads_of, mean, probes_of
from nicbench.methods.base import Values
from nicbench.model.round import Figures, RequestLatency, Round
from nicbench.stats.latency import counted_in, histogram_of, percentiles_ns

PERCENTILES = ("50", "90", "99", "99.9", "99.99")


def probed(rounds: Sequence[Round]) -> list[Figures | None]:
    """What the probe of each round said; nothing of a round whose load failed, for that was none under load."""
    return [
        None if any(outcome.failure for _, outcome in loads_of(one)) else next(iter(probes_of(one)))[1].figures
        for one in rounds
    ]


def latency_values(figures: Sequence[Figures | None]) -> Values:
    """All repetitions together: percentiles of all requests where the tool keeps them, else the mean of its own lists.

    Everything is None where a repetition has none.
    """
    parts = [one.latency if one else None for one in figures]
    known = [part for part in parts if part is not None]
    complete = bool(known) and len(known) == len(parts)
    used = known if complete else []
    percentiles = _percentiles(used)
    counts = [part.count for part in used]
    return {
        "latency_minimum_ns": _extreme(min, [part.minimum_ns for part in used]),
        "latency_mean_ns": _weighted(used),
        **{f"latency_p{name.replace('.', '_')}_ns": percentiles.get(name) for name in PERCENTILES},
        "latency_maximum_ns": _extreme(max, [part.maximum_ns for part in used]),
        "latency_deviation_ns": mean(part.stdev_ns for part in used),
        "requests": sum(count or 0 for count in counts) if used and None not in counts else None,
        "basis": ", ".join(dict.fromkeys(part.basis for part in used)) or None,
    }


def tail_of(figures: Sequence[Figures | None], bounds_ns: Sequence[int]) -> list[tuple[int, int | None, int, float]]:
    """From, up to (None: without end), how many requests, and their share; nothing where a tool keeps no samples."""
    whole = _merged([one.latency for one in figures if one and one.latency])
    if whole is None or len([one for one in figures if one and one.latency]) < len(figures):
        return []
    counted = counted_in(whole)
    total = sum(count for _, count in counted)
    edges = [0, *bounds_ns, math.inf]
    bins = []
    for lower, upper in pairwise(edges):
        count = sum(count for value, count in counted if lower < value <= upper)
        bins.append((int(lower), None if math.isinf(upper) else int(upper), count, count / total if total else 0.0))
    return bins


def _percentiles(parts: Sequence[RequestLatency]) -> dict[str, float]:
    whole = _merged(parts)
    if whole is not None:
        most = _extreme(max, [part.maximum_ns for part in parts])
        found = percentiles_ns(whole, maximum_ns=None if most is None else round(most))
        return {name: float(value) for name, value in found.items()}
    means = {name: mean(part.percentiles_ns.get(name) for part in parts) for name in PERCENTILES}
    return {name: value for name, value in means.items() if value is not None}


def _merged(parts: Sequence[RequestLatency]) -> str | None:
    """One histogram of all; None where one has none."""
    texts = [part.histogram for part in parts]
    if not texts or any(text is None for text in texts):
        return None
    return histogram_of(chain.from_iterable(counted_in(text) for text in texts if text is not None))


def _weighted(parts: Sequence[RequestLatency]) -> float | None:
    """Over all requests where their number is known, else over the repetitions."""
    counts, means = [part.count for part in parts], [part.mean_ns for part in parts]
    if not parts or any(value is None for value in (*counts, *means)):
        return mean(means)
    return sum((count or 0) * (value or 0.0) for count, value in zip(counts, means, strict=True)) / sum(
        count or 0 for count in counts
    )


def _extreme(pick: Callable[[Sequence[float]], float], values: Sequence[float | None]) -> float | None:
    """None where one is missing or there is none."""
    known = [value for value in values if value is not None]
    return pick(known) if known and len(known) == len(values) else None
