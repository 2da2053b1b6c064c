"""Latency apart: frames in bins of how long they took, and frames that a neighbour on a DUT's core may have delayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.core.lists import without_none
from nicbench.core.quantity import Seconds
from nicbench.core.reading import Times, sum_of_known
from nicbench.core.round import RequestLatency
from nicbench.core.table import Column, FurtherTable, ImportColumn
from nicbench.core.trial import Latency
from nicbench.methods._round_figures import mean
from nicbench.methods.base import Values
from nicbench.stats.latency import add_histograms, counts_above, frames_above, percentiles_ns, slowest_ns, split_by_core

# The long tail: how many frames, or messages, took how long, in bins, and how many were slower than each bound.
#
# The bins are those of a published report on two 25 Gb/s adapters (2018), which counted 100 million frames at line
# rate.


BINS_S: Final = (10e-6, 20e-6, 40e-6, 60e-6, 80e-6, 100e-6, 120e-6)
SCALED_TO_FRAMES: Final = 100_000_000


def _require_rising(bounds_s: tuple[float, ...]) -> tuple[float, ...]:
    bounds_ns = [_ns(bound_s) for bound_s in bounds_s]
    if bounds_ns[0] < 1 or any(lower >= upper for lower, upper in pairwise(bounds_ns)):
        why = "bounds of latency bins must rise, from 1 ns up"
        raise PydanticCustomError("quantity", "{why}", {"why": why, "accepted": "for example [10 us, 20 us, 40 us]"})
    return bounds_s


Bins = Annotated[tuple[Seconds, ...], Field(min_length=1, max_length=64), AfterValidator(_require_rising)]
"""The upper bounds of the bins; the last bin contains what is slower than all of them."""


def tail_values(latency: Latency | None, bounds_s: tuple[float, ...]) -> dict[str, float | int]:
    """Returns the frames in each bin and outside each bound, counted and scaled; empty without a histogram."""
    bounds_ns = [_ns(bound_s) for bound_s in bounds_s]
    above = frames_above(latency, bounds_ns) if latency is not None else None
    if latency is None or above is None or latency.count == 0:
        return {}
    whole = [latency.count, *above]
    inside = [before - after for before, after in pairwise(whole)]
    counted = {f"bin_to_{bound}_ns": frames for bound, frames in zip(bounds_ns, inside, strict=True)}
    counted[f"bin_over_{bounds_ns[-1]}_ns"] = above[-1]
    counted |= {f"outside_{bound}_ns": frames for bound, frames in zip(bounds_ns, above, strict=True)}
    scale = SCALED_TO_FRAMES / latency.count
    return {
        "timed_frames": latency.count,
        **{f"{name}_frames": frames for name, frames in counted.items()},
        **{f"{name}_per_100_million": frames * scale for name, frames in counted.items()},
    }


TAIL_COLUMNS: Final = (
    ImportColumn("timed_frames", "timed frames", "count", also=("frames timed", "frames")),
    ImportColumn("bin_to_{bound}_ns_frames", "frames to {bound}", "count", also=("to {bound}",)),
    ImportColumn("bin_over_{bound}_ns_frames", "frames over {bound}", "count", also=("over {bound}",)),
    ImportColumn("outside_{bound}_ns_frames", "frames outside {bound}", "count", also=("outside {bound}",)),
)
"""Columns of imported results: frames in the bin that ends at a bound, in the last bin, and outside each bound."""


def scale_tail(values: Mapping[str, object]) -> dict[str, float]:
    """Scales imported counts to 100 million frames; empty where the total number of frames is unknown."""
    timed = values.get("timed_frames")
    if not isinstance(timed, int | float) or timed <= 0:
        return {}
    return {
        f"{name.removesuffix('_frames')}_per_100_million": frames * SCALED_TO_FRAMES / timed
        for name, frames in values.items()
        if name.startswith(("bin_", "outside_")) and isinstance(frames, int | float)
    }


def _ns(bound_s: float) -> int:
    return round(bound_s * 1e9)


MESSAGE_BINS_S: Final = (50e-6, 100e-6, 150e-6, 200e-6, 250e-6)
PERCENTILES: Final = ("50", "99", "99.9")


def merge_requests(parts: Sequence[RequestLatency | None]) -> RequestLatency | None:
    """Merges the latencies of several repetitions; None where one is missing, or they time different things.

    Of several, percentiles are known only where the tool keeps all requests.
    """
    known = without_none(parts)
    if not known or len(known) != len(parts) or len({part.basis for part in known}) > 1:
        return None
    if len(known) == 1 and known[0].histogram is None:
        return known[0]
    histogram = add_histograms([part.histogram for part in known])
    maximum_ns = _extreme(max, [part.maximum_ns for part in known])
    count = sum_of_known(part.count for part in known)
    means = [part.mean_ns for part in known]
    weighed = [part.count * part.mean_ns for part in known if part.count is not None and part.mean_ns is not None]
    rounded = None if maximum_ns is None else round(maximum_ns)
    return RequestLatency(
        basis=known[0].basis,
        count=count,
        minimum_ns=_extreme(min, [part.minimum_ns for part in known]),
        mean_ns=sum(weighed) / count if count and len(weighed) == len(known) else mean(means),
        maximum_ns=maximum_ns,
        stdev_ns=mean(part.stdev_ns for part in known),
        percentiles_ns={} if histogram is None else dict(percentiles_ns(histogram, maximum_ns=rounded)),
        histogram=histogram,
    )


def _extreme(pick: Callable[[Sequence[float]], float], values: Sequence[float | None]) -> float | None:
    """Returns the extreme of the values; None where one is missing."""
    known = without_none(values)
    return pick(known) if len(known) == len(values) else None


def time_values(name: str, parts: Sequence[Times]) -> Values:
    """Returns percentiles over all times of the parts; unknown without any."""
    maximum_ns = max((part.maximum_ns for part in parts), default=None)
    joined = add_histograms([part.histogram for part in parts]) if parts else None
    found = {} if joined is None else percentiles_ns(joined, maximum_ns=maximum_ns)
    return {f"{name}_p50_ns": found.get("50"), f"{name}_p99_ns": found.get("99"), f"{name}_maximum_ns": maximum_ns}


def latency_values(latency: RequestLatency | None) -> Values:
    """Returns the latencies of a probe; all unknown without one."""
    if latency is None:
        return {"latency_mean_ns": None, "latency_maximum_ns": None}
    return {
        "latency_mean_ns": latency.mean_ns,
        **{f"latency_p{name.replace('.', '_')}_ns": latency.percentiles_ns.get(name) for name in PERCENTILES},
        "latency_maximum_ns": latency.maximum_ns,
        "latency_basis": latency.basis,
        "timed_messages": latency.count,
    }


def message_tail_values(latency: RequestLatency | None, bounds_s: Sequence[float]) -> Values:
    """Returns the messages in each bin and outside each bound; empty where the probe kept no samples."""
    if latency is None or latency.histogram is None or not latency.count or latency.maximum_ns is None:
        return {}
    bounds_ns = [round(bound_s * 1e9) for bound_s in bounds_s]
    above = counts_above(latency.histogram, latency.maximum_ns, bounds_ns)
    inside = [before - after for before, after in pairwise((latency.count, *above))]
    return {
        "timed_messages": latency.count,
        **{f"bin_to_{bound}_ns_messages": count for bound, count in zip(bounds_ns, inside, strict=True)},
        f"bin_over_{bounds_ns[-1]}_ns_messages": above[-1],
        **{f"outside_{bound}_ns_messages": count for bound, count in zip(bounds_ns, above, strict=True)},
    }


# The slowest of several requests, for whoever waits for all of them.


_PROBABILITIES: Final = {"50": 0.5, "99": 0.99}

SlowestOf = Annotated[
    tuple[Annotated[int, Field(ge=2, le=1_000_000)], ...],
    Field(
        max_length=8,
        description="`[10, 100, 1000]`: the time within which the slowest of 10, 100 and 1000 arrives, in half of all "
        "cases and in 99 %, computed from the distribution of single times.",
    ),
]
"""Numbers of frames or requests that are waited for together."""


def slowest_values(latency: Latency | RequestLatency | None, numbers: Sequence[int]) -> dict[str, int | None]:
    """Returns the median and p99 of the slowest of each of these numbers; empty without a histogram."""
    histogram = None if latency is None else latency.histogram
    if histogram is None:
        return {}
    return {
        _slowest(number, percentile): slowest_ns(histogram, number, probability)
        for number in numbers
        for percentile, probability in _PROBABILITIES.items()
    }


def slowest_table(rows: Sequence[Column], values: frozenset[str], what: str) -> tuple[FurtherTable, ...]:
    """Returns the table of results that have such ``values``; ``what`` is what is waited for."""
    numbers = sorted(int(name.split("_")[2]) for name in values if name.startswith("slowest_of_") and "_p50_" in name)
    if not numbers:
        return ()
    columns = [
        Column(_slowest(number, percentile), f"p{percentile}", group=f"Slowest of {number:,}", is_optional=True)
        for number in numbers
        for percentile in _PROBABILITIES
    ]
    return (
        FurtherTable(
            title=f"The slowest of several {what}",
            caption=f"Computed from the times of single {what}, as if these were independent: a percentile of their "
            "slowest is a higher one of each. – where too few were timed.",
            columns=(*rows, *columns),
        ),
    )


def _slowest(number: int, percentile: str) -> str:
    return f"slowest_of_{number}_p{percentile}_ns"


# Latency in two groups: frames that had the DUT's core to themselves, and those that a neighbour may have delayed.


_PERCENTILES: Final = ("50", "99", "99.9")
_SHARED_PERCENT: Final = "latency_shared_core_percent"


def by_core_values(latency: Latency | None) -> dict[str, float | int | None]:
    """Returns the percentiles of both groups; empty without samples, or where no sample found the core shared."""
    apart = split_by_core(latency) if latency is not None else None
    if apart is None or apart.shared_count == 0:
        return {}
    return {
        _SHARED_PERCENT: 100 * apart.shared_count / (apart.shared_count + apart.own_count),
        **{_name("own", percentile): apart.own_ns.get(percentile) for percentile in _PERCENTILES},
        **{_name("shared", percentile): apart.shared_ns.get(percentile) for percentile in _PERCENTILES},
    }


def by_core_table(size: Column, values: frozenset[str]) -> tuple[FurtherTable, ...]:
    """Returns the table of the results that have such ``values``; empty where no neighbour was seen."""
    if _SHARED_PERCENT not in values:
        return ()
    columns = [
        Column(_name(core, percentile), f"p{percentile}", group=heading, is_optional=True)
        for core, heading in (("own", "Dedicated core"), ("shared", "Core shared"))
        for percentile in _PERCENTILES
    ]
    return (
        FurtherTable(
            title="Latency with and without a neighbour on the core",
            caption=(
                "Of the frames above, those under way while the DUT's physical core was shared with another "
                "hyperthread or guest, and the others."
            ),
            columns=(size, Column(_SHARED_PERCENT, "Frames, core shared", form="of_frames"), *columns),
        ),
    )


def _name(core: str, percentile: str) -> str:
    return f"latency_{core}_core_p{percentile.replace('.', '_')}_ns"
