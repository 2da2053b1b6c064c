"""Why a strict goal has its rate far below what the DUT carries: a rare loss that comes at any load. Pure.

A burst from elsewhere once in some minutes is found by the long trials at every load, so there is no load without loss
that could be confirmed, and the search ends wherever luck lets a trial pass: an answer, but one to be explained.
"""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.search._curve import grows_with_load
from nicbench.search._interval import Bounds, read
from nicbench.search.base import Goal, Limits, Sample

TOLERANCES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
HITS_NEEDED = 2
CLEARLY = 4
"""How many precisions the rate must rise by, for the little that is tolerated then."""


def rare_loss(samples: Sequence[Sample], goal: Goal, bounds: Bounds, limits: Limits) -> str | None:
    """What the losses look like and which goal would find the rate; None where they are no riddle."""
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
        if len(hit) < HITS_NEEDED or grows_with_load(below, limits):
            continue
        most = max(sample.counts.failed for sample in hit)
        return (
            f"{len(hit)} of {len(below)} trials up to {rate.frames_per_s:.0f} frames/s lost frames, {most} at most and "
            "no more at higher loads than at lower ones: a loss that comes at any load, not what the DUT can carry; "
            f"with {tolerance * 100:g} % tolerated, {rate.frames_per_s:.0f} frames/s pass"
        )
    return None
