"""Chooses the next trial from the samples so far: narrow the interval, settle the bounds, validate the answer.

A trial lasts ``Limits.trial_duration_s`` until a longer one has something to add: the validation of a lower bound, and,
where that failed, all further bounds below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nicbench.search._curve import guess_knee
from nicbench.search._interval import Load, Reading, find_misleading, is_long, is_narrow, is_validated, read
from nicbench.search.base import CLOSE, Goal, Limits, Sample

WIDE = 4.0
"""Above this ratio of bounds the middle is geometric, because precision is relative."""
FARTHEST = 0.2
"""The share of a load by which the guess of a knee may lie below it."""
_ROUNDED = 1.0 + CLOSE


class TrialRequest(NamedTuple):
    """The next trial to make."""

    load_frames_per_s: float
    duration_s: float


Choose = Callable[[Reading, Sequence[Sample], Limits], float]
"""Returns the load that narrows an open interval: it is what searches differ in."""


def next_trial(
    samples: Sequence[Sample],
    goals: Sequence[Goal],
    limits: Limits,
    votes_needed: int,
    trials_left: int,
    choose: Choose,
) -> TrialRequest | None:
    """Returns the next trial, or ``None`` when every goal is settled and validated.

    The most tolerant goal comes first: its rate repeats best, and its trials are most informative for the others. All
    intervals are narrowed before any bound is confirmed, so that a small budget is spent where it helps most; the rest
    of it goes to validation. Samples above the maximum, which the tester sent once and sends no more, choose nothing.
    """
    samples = [sample for sample in samples if sample.load_frames_per_s <= limits.maximum_load_frames_per_s * _ROUNDED]
    by_tolerance = sorted(goals, key=lambda goal: -goal.loss_ratio)
    readings = [read(samples, goal, limits) for goal in by_tolerance]
    unvalidated = [lower for reading in readings if (lower := _find_unvalidated(reading, limits)) is not None]
    if unvalidated and trials_left <= len({lower.frames_per_s for lower in unvalidated}):
        return TrialRequest(unvalidated[0].frames_per_s, limits.longest_trial_s)
    for reading in readings:
        if not is_narrow(reading.bounds, limits):
            if reading.misled and _is_inside(samples[-1], reading):
                # The short trial passed, so a long one at this load has to confirm it.
                return TrialRequest(samples[-1].load_frames_per_s, limits.longest_trial_s)
            return TrialRequest(choose(reading, samples, limits), limits.trial_duration_s)
    for reading in readings:
        unsettled = _find_unsettled(reading, votes_needed)
        if unsettled is not None:
            # A repeat has to be as long as the trial it repeats, and as the trials that count.
            duration_s = limits.longest_trial_s if reading.misled else unsettled.longest_s
            return TrialRequest(unsettled.frames_per_s, duration_s)
    if unvalidated:
        return TrialRequest(unvalidated[0].frames_per_s, limits.longest_trial_s)
    return None


def _is_inside(sample: Sample, reading: Reading) -> bool:
    """Returns whether a trial lies strictly inside the open interval."""
    lower, upper = reading.bounds.lower, reading.bounds.upper
    above = lower is None or sample.load_frames_per_s > lower.frames_per_s * (1.0 + CLOSE)
    return above and upper is not None and sample.load_frames_per_s < upper.frames_per_s * (1.0 - CLOSE)


def _find_unvalidated(reading: Reading, limits: Limits) -> Load | None:
    lower = reading.bounds.lower
    return None if lower is None or is_validated(lower, reading.goal, limits) else lower


def _find_unsettled(reading: Reading, votes_needed: int) -> Load | None:
    """Returns a bound that lacks votes, the failure first: a loss by chance is likelier than a pass by chance."""
    upper, lower = reading.bounds.upper, reading.bounds.lower
    if upper is not None and upper.failures < votes_needed:
        return upper
    if lower is not None and lower.passes < votes_needed:
        return lower
    return None


def halve(reading: Reading, _samples: Sequence[Sample], limits: Limits, longest_step: float = 0.5) -> float:
    """Bisects with hints: the maximum, then the rate the DUT forwarded there, then the middle of the bounds.

    While nothing passed, no step down is longer than ``longest_step`` unless the DUT forwarded even less.
    """
    minimum, maximum = limits.minimum_load_frames_per_s, limits.maximum_load_frames_per_s
    lower, upper = reading.bounds.lower, reading.bounds.upper
    if upper is None:
        return maximum
    if lower is not None:
        return _inside(lower, upper, reading.goal, limits)
    if all(sample.counts.received == 0 for sample in upper.samples) or _is_close(minimum, upper.frames_per_s, limits):
        # Nothing came back, or the interval is nearly closed: the lowest load decides whether there is a rate at all.
        return minimum
    return max(minimum, _below(reading, upper, limits, longest_step))


def choose_near_knee(reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
    """Chooses as bisection does; where short trials misled, the guessed knee, or a load beside it by a growing step."""
    lower, upper = reading.bounds.lower, reading.bounds.upper
    if not reading.misled or upper is None:
        return halve(reading, samples, limits)
    failures = find_misleading(samples, reading.goal, limits)
    highest = upper.frames_per_s * (1.0 - _step(len(failures), limits))
    knee = guess_knee(samples, reading.goal, limits)
    if lower is None:
        lowest = max(limits.minimum_load_frames_per_s, upper.frames_per_s * (1.0 - FARTHEST))
        if knee is not None and lowest < highest:
            return max(lowest, min(knee, highest))
        # A step is twice as long as the last one, however many loads failed far above.
        last = failures[1] / failures[0] - 1.0 if len(failures) > 1 else limits.precision
        return halve(reading, samples, limits, longest_step=2.0 * max(limits.precision, last))
    passed = sum(1 for load in reading.loads if load.weight > 0 and any(is_long(one, limits) for one in load.samples))
    lowest = lower.frames_per_s * (1.0 + _step(passed, limits))
    # A guess that a long trial has contradicted is worth one more trial beside it, and no second one.
    below, above = 2.0 * limits.precision * (passed == 1), 2.0 * limits.precision * (len(failures) == 1)
    if knee is None or lowest >= highest:
        return halve(reading, samples, limits)
    if not lower.frames_per_s * (1.0 - below) <= knee <= upper.frames_per_s * (1.0 + above):
        return halve(reading, samples, limits)
    return max(lowest, min(knee, highest))


def _step(times: int, limits: Limits) -> float:
    """Returns by which share the next load lies beside a bound after so many long trials on that side."""
    return min(FARTHEST, 0.9 * limits.precision * 2.0 ** max(0, times - 1))


def _is_close(lower: float, upper: float, limits: Limits) -> bool:
    return upper - lower <= 2 * limits.precision * upper * (1.0 + CLOSE)


def _below(reading: Reading, upper: Load, limits: Limits, longest_step: float) -> float:
    """Chooses a load below a failure: the rate that the DUT forwarded, or steps down that double.

    The steps start anew below a load that passed once, as the rate cannot be far.
    """
    tried = 0
    for load in reading.loads:
        tried += not reading.misled or any(is_long(sample, limits) for sample in load.samples)
        if load.passes:
            break
    forwarded = forwarded_frames_per_s(upper, reading.goal) * (1.0 - limits.precision / 2)
    step = min(longest_step, limits.precision * 2.0**tried)
    return min(forwarded, upper.frames_per_s * (1.0 - step))


def _inside(lower: Load, upper: Load, goal: Goal, limits: Limits) -> float:
    """Returns the middle, or a load just above ``lower`` where the rate forwarded at ``upper`` lies there.

    A DUT that collapses under overload forwards less than already passed; the hint is then ignored.
    """
    middle = _middle(lower.frames_per_s, upper.frames_per_s)
    just_above = lower.frames_per_s / (1.0 - 0.9 * limits.precision)
    forwarded = forwarded_frames_per_s(upper, goal)
    says_just_above = lower.frames_per_s * (1.0 - limits.precision) <= forwarded < just_above
    return just_above if says_just_above and just_above < middle else middle


def forwarded_frames_per_s(load: Load, goal: Goal) -> float:
    """Returns the load at which the goal would just be met if the DUT forwarded as much as it did at this one."""
    loss_ratio = min(sample.counts.loss_ratio for sample in load.samples)
    return load.frames_per_s * (1.0 - loss_ratio) / (1.0 - goal.loss_ratio)


def _middle(lower: float, upper: float) -> float:
    return math.sqrt(lower * upper) if upper > WIDE * lower else (lower + upper) / 2
