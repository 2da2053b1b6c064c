"""Every trial guides, and only a full and even one decides: the default search.

The first trial is a short flood, and the rate that came back is the first guess. Loads just below and just above the
guess settle a DUT with a sharp limit. Where a trial contradicts the guess, the rates that later trials forwarded give a
better one, the losses near the knee do (``_curve.py``), or steps double until the answer is enclosed; then halving ends
the search on any DUT. ``_recording.py`` confirms both ends, ``_zones.py`` makes the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nicbench.search._curve import NEAR_THE_KNEE, guess_knee
from nicbench.search._recording import DrivenSearch, dead_probe
from nicbench.search._zones import Zones, forwarded_rate
from nicbench.search.base import CLOSE, Goal, Limits, Measure, Outcome, Sample

FLOOD_S = 0.3
BELOW, ABOVE = 0.25, 0.7
"""The distance of the next loads from the guess, in precisions: a pass and a failure there are less than one apart."""
WIDE = 4.0
"""Above this ratio of ends the middle is geometric, because precision is relative."""
NEARLY = 4.0
"""A gap of fewer precisions is halved."""
ALIKE = 0.6
"""Losses that fall by less than to this part from one load to the next may come at any load."""


class Guided(DrivenSearch):
    """A flood first, then loads close to the rate that came back."""

    kind = "guided"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base does; the flood is at most as long as a trial."""
        self.flood_s = min(FLOOD_S, limits.trial_duration_s)
        return super().run(measure, goals, limits)

    def choose(
        self, zones: Zones, gap: tuple[float | None, float | None], samples: Sequence[Sample], limits: Limits
    ) -> float:
        lower, upper = gap
        if upper is None:
            return _above(zones, lower, samples, limits)
        if lower is None:
            return _below(zones, upper, samples, limits)
        return _inside(zones, lower, upper, samples, limits)


def _guess(zones: Zones, samples: Sequence[Sample], limits: Limits) -> float | None:
    """Returns the rate that came back in the trial nearest to the knee that was too much for the DUT."""
    told = [
        (sample.sent_frames_per_s, rate)
        for sample in samples
        if sample.may_fail and (rate := forwarded_rate(sample, zones.goal, limits)) is not None
    ]
    return min(told)[1] if told else None


def _above(zones: Zones, lower: float | None, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load above every trial that decides: the highest, or close to what came back of an open one."""
    guess = _guess(zones, samples, limits)
    if guess is None or guess < (lower or 0.0):
        return limits.maximum_load_frames_per_s
    return guess * (1.0 - BELOW * limits.precision if lower is None else 1.0 + ABOVE * limits.precision)


def _below(zones: Zones, upper: float, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load below every trial that failed."""
    if all(not sample.counts.received for sample in samples):
        return dead_probe(limits)
    precision, guess = limits.precision, _guess(zones, samples, limits)
    slight = [sample for sample in _of_the_dut(samples) if 0.0 < sample.counts.loss_ratio <= NEAR_THE_KNEE]
    failed = sum(sample.duration_s >= limits.trial_duration_s for sample in samples)
    step = precision * 2.0 ** max(0, failed - 1)
    if len(slight) > 1 and _is_alike(*sorted(slight, key=lambda one: one.sent_frames_per_s)[:2]):
        step = 0.5  # a loss at any load, or one that grows slowly: half the load tells them apart
    knee = guess_knee(_of_the_dut(samples), zones.goal, limits)
    if knee is not None and 0.5 * upper < knee < upper:
        return min(knee, upper * (1.0 - precision))
    stepped = upper * (1.0 - min(0.5, step))
    return stepped if guess is None else min(guess * (1.0 - BELOW * precision), stepped)


def _of_the_dut(samples: Sequence[Sample]) -> list[Sample]:
    """Returns the trials whose losses are more than the tester's pauses explain, and those without."""
    return [
        one
        for one in samples
        if not one.counts.failed or (one.may_fail and one.counts.failed > one.held_up_share * one.counts.intended)
    ]


def _is_alike(lower: Sample, upper: Sample) -> bool:
    """Returns whether the losses at the lower of two loads are at least as frequent as at the upper."""
    few = min(lower.counts.failed, upper.counts.failed) < 5
    return not few and lower.counts.loss_ratio >= ALIKE * upper.counts.loss_ratio


def _inside(zones: Zones, lower: float, upper: float, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load between a pass and a failure."""
    precision = limits.precision
    middle = math.sqrt(lower * upper) if upper > WIDE * lower else (lower + upper) / 2.0
    if upper <= lower * (1.0 + NEARLY * precision):
        return middle
    guess = _guess(zones, samples, limits)
    near = [sample for sample in _of_the_dut(samples) if lower < sample.sent_frames_per_s <= upper * (1.0 + CLOSE)]
    knee = guess_knee(near, zones.goal, limits)
    if knee is not None and lower * (1.0 + precision) < knee < upper * (1.0 - precision):
        return knee
    if guess is None:
        return middle
    above, below = guess * (1.0 + ABOVE * precision), guess * (1.0 - BELOW * precision)
    if lower * (1.0 + BELOW * precision) < above < upper * (1.0 - BELOW * precision):
        return above
    if lower * (1.0 + BELOW * precision) < below < upper * (1.0 - BELOW * precision):
        return below
    if guess > lower:
        return middle
    passed = sum(guess <= sample.sent_frames_per_s <= lower * (1.0 + CLOSE) for sample in samples)
    return min(middle, lower * (1.0 + precision * 4.0 ** max(1, passed)))
