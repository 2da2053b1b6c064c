"""Why a strict goal may have its rate far below what the DUT carries: a rare loss that occurs at any load.

For example, a burst from elsewhere every few minutes is found by the long trials at every load. So no load without loss
can be confirmed, and the search ends wherever a trial passes by luck: an answer, but one that needs an explanation.
"""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.search._curve import NEAR_THE_KNEE, grows_with_load
from nicbench.search._interval import Bounds, read
from nicbench.search.base import Goal, Limits, Sample

TOLERANCES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
HITS_NEEDED = 2
CLEARLY = 4
"""How many precisions the rate must rise by when a little loss is tolerated."""


def explain_rare_loss(samples: Sequence[Sample], goal: Goal, bounds: Bounds, limits: Limits) -> str | None:
    """Describes a loss that occurs at any load, and the goal that would find the rate; None where there is none."""
    if bounds.upper is None:
        return None
    for tolerance in TOLERANCES:
        if tolerance <= goal.loss_ratio:
            continue
        tolerant = Goal(name=goal.name, loss_ratio=tolerance)
        rate = read(samples, tolerant, limits).bounds.lower
        if rate is None or rate.frames_per_s < bounds.upper.frames_per_s * (1.0 + CLEARLY * limits.precision):
            continue
        below = [one for one in samples if one.load_frames_per_s <= rate.frames_per_s and tolerant.passed_by(one)]
        hit = [sample for sample in below if not goal.passed_by(sample)]
        near = [one for one in samples if one in below or one.counts.loss_ratio <= NEAR_THE_KNEE]
        if len(hit) < HITS_NEEDED or grows_with_load(near, limits):
            continue
        most = max(sample.counts.failed for sample in hit)
        return (
            f"{len(hit)} of {len(below)} trials up to {rate.frames_per_s:.0f} frames/s lost frames, {most} at most and "
            "no more at higher loads than at lower ones: a loss that comes at any load, not what the DUT can carry; "
            f"with {tolerance * 100:g} % tolerated, {rate.frames_per_s:.0f} frames/s pass"
        )
    return None
