"""Which load to try next, as a pure function of the samples so far: hints, halving, then confirmation of the bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nicbench.search._interval import Bounds, Load, bounds_of, full_length, is_narrow, loads_of
from nicbench.search.base import CLOSE, Goal, Limits, Sample

WIDE = 4.0
"""Above this ratio of bounds the middle is geometric: rates spread over decades, precision is relative."""


def next_load(samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits, votes_needed: int) -> float | None:
    """The next load to try at full duration, or ``None`` when every goal is settled.

    The goal that tolerates most comes first: its rate repeats best, and its trials tell most about the others. All
    intervals are narrowed before any bound is confirmed, so that a small budget is spent where it tells most.
    """
    used = full_length(samples, limits)
    by_tolerance = sorted(goals, key=lambda goal: -goal.loss_ratio)
    found = [(loads := loads_of(used, goal), bounds_of(loads), goal) for goal in by_tolerance]
    for loads, bounds, goal in found:
        if not is_narrow(bounds, limits):
            return _between(loads, bounds, goal, limits)
    for _, bounds, _ in found:
        unsettled = _unsettled(bounds, votes_needed)
        if unsettled is not None:
            return unsettled.frames_per_s
    return None


def _unsettled(bounds: Bounds, votes_needed: int) -> Load | None:
    """The failure first: a loss for a reason of its own is likelier than a pass by luck."""
    if bounds.upper is not None and bounds.upper.failures < votes_needed:
        return bounds.upper
    if bounds.lower is not None and bounds.lower.passes < votes_needed:
        return bounds.lower
    return None


def _between(loads: Sequence[Load], bounds: Bounds, goal: Goal, limits: Limits) -> float:
    minimum, maximum = limits.minimum_load_frames_per_s, limits.maximum_load_frames_per_s
    if bounds.upper is None:
        return maximum
    upper = bounds.upper.frames_per_s
    if bounds.lower is not None:
        return _inside(bounds.lower, bounds.upper, goal, limits)
    if all(sample.counts.received == 0 for sample in bounds.upper.samples) or _is_close(minimum, upper, limits):
        # Nothing came back, or little is left: the lowest load decides whether there is a rate at all.
        return minimum
    return max(minimum, _below(loads, bounds.upper, goal, limits))


def _is_close(lower: float, upper: float, limits: Limits) -> bool:
    return upper - lower <= 2 * limits.precision * upper * (1.0 + CLOSE)


def _below(loads: Sequence[Load], upper: Load, goal: Goal, limits: Limits) -> float:
    """Nothing has passed yet: the rate the DUT forwarded is the natural guess; below that, steps that double."""
    forwarded = _forwarded(upper, goal) * (1.0 - limits.precision / 2)
    step = min(0.5, limits.precision * 2.0 ** len(loads))
    return min(forwarded, upper.frames_per_s * (1.0 - step))


def _inside(lower: Load, upper: Load, goal: Goal, limits: Limits) -> float:
    """The middle, unless the rate forwarded at ``upper`` says that the step is just above ``lower``: then there."""
    middle = _middle(lower.frames_per_s, upper.frames_per_s)
    just_above = lower.frames_per_s / (1.0 - 0.9 * limits.precision)
    return just_above if just_above < middle and _forwarded(upper, goal) < just_above else middle


def _forwarded(load: Load, goal: Goal) -> float:
    """The load at which the goal would just be met if the DUT forwarded as much as it did at this one."""
    loss_ratio = min(sample.counts.loss_ratio for sample in load.samples)
    return load.frames_per_s * (1.0 - loss_ratio) / (1.0 - goal.loss_ratio)


def _middle(lower: float, upper: float) -> float:
    return math.sqrt(lower * upper) if upper > WIDE * lower else (lower + upper) / 2
