"""The long tail: how many frames took how long, in bins, and how many were slower than each bound.

The bins are those of a published report on two 25 Gb/s adapters (2018), which counted 100 million frames at line rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from nicbench.model.import_table import ImportColumn
from nicbench.model.quantity import Seconds
from nicbench.model.trial import Latency
from nicbench.stats.latency import frames_above

BINS_S: Final = (10e-6, 20e-6, 40e-6, 60e-6, 80e-6, 100e-6, 120e-6)
SCALED_TO_FRAMES: Final = 100_000_000


def _rising(bounds_s: tuple[float, ...]) -> tuple[float, ...]:
    bounds_ns = [_ns(bound_s) for bound_s in bounds_s]
    if bounds_ns[0] < 1 or any(lower >= upper for lower, upper in pairwise(bounds_ns)):
        why = "bounds of latency bins must rise, from 1 ns up"
        raise PydanticCustomError("quantity", "{why}", {"why": why, "accepted": "for example [10 us, 20 us, 40 us]"})
    return bounds_s


Bins = Annotated[tuple[Seconds, ...], Field(min_length=1, max_length=64), AfterValidator(_rising)]
"""The upper bounds of the bins; the last bin is what is slower than all of them."""


def tail_values(latency: Latency | None, bounds_s: tuple[float, ...]) -> dict[str, float | int]:
    """Frames in each bin and outside each bound, as they were counted and scaled; nothing without a histogram."""
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
    ImportColumn(value="timed_frames", name="timed frames", quantity="count", also=("frames timed", "frames")),
    ImportColumn(value="bin_to_{bound}_ns_frames", name="frames to {bound}", quantity="count", also=("to {bound}",)),
    ImportColumn(
        value="bin_over_{bound}_ns_frames", name="frames over {bound}", quantity="count", also=("over {bound}",)
    ),
    ImportColumn(
        value="outside_{bound}_ns_frames", name="frames outside {bound}", quantity="count", also=("outside {bound}",)
    ),
)
"""Of imported results: frames in the bin that ends at a bound, in the last one beyond all, and outside each bound."""


def scaled_tail(values: Mapping[str, object]) -> dict[str, float]:
    """Imported counts scaled to 100 million frames; nothing where it is not known of how many they are."""
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
