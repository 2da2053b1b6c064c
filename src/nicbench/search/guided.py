"""Every trial guides, and only a full and even one decides: the default search.

The first trial is a short flood, and the rate that came back is the first guess. Loads just below and just above the
guess settle a DUT with a sharp limit. Where a trial contradicts the guess, the rates that later trials forwarded give a
better one, the losses near the knee do (``guided.py``), or steps double until the answer is enclosed; then halving ends
the search on any DUT. ``_recording.py`` confirms both ends, ``_zones.py`` makes the answer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nicbench.search._recording import DrivenSearch, dead_probe, share_sent
from nicbench.search._zones import Decision, Zones, forwarded_rate
from nicbench.search.base import CLOSE, Goal, Limits, Measure, Outcome, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Guesses where a long trial would just meet a goal, from the growth of the loss near the knee; never a bound.
#
# Near its knee a DUT's loss grows by a factor with each step of the load, over decades, or in proportion to the load
# above the one where it begins. Both curves are fitted to the counts of all trials there by Poisson regression, so
# that trials without loss count too, and the likelier one is used. Short trials then show how far down a long one has
# to go, without a long trial at each step.


NEAR_THE_KNEE = 1e-3
"""Trials with a greater loss ratio lie above the capacity, where the loss follows another line."""
HALF_A_FRAME = 0.5
"""The expected loss, in frames, of a long trial at the load guessed for a goal without loss."""
MISFIT = 0.1
"""The error of the line itself, as the relative variance of a count: from ten lost frames on, more add little."""
SIGNIFICANT_DEVIATIONS = 3.0
"""How many standard deviations above 0 the growth must be: a loss that occurs at any load has no knee."""
LOADS_NEEDED = 3
CLEARLY = 1.0
"""How much greater the logarithm of the likelihood of a linear growth must be than that of an exponential one."""
STEPS = 50
LONGEST_STEP = 3.0
ONSETS = 400
"""The number of loads that are tried as the one where a linear loss begins."""


class _Counts(NamedTuple):
    """The trials near the knee; a place is a load, in precisions above a scale."""

    places: NDArray[np.float64]
    lost: NDArray[np.float64]
    frames: NDArray[np.float64]

    def misfit(self, expected: NDArray[np.float64]) -> float:
        """Returns how badly these expectations explain the counts, as the logarithm of a likelihood, negated."""
        import numpy as np

        shape = 1.0 / MISFIT  # a negative binomial distribution: Poisson about a mean that is off by the misfit
        expected = np.maximum(expected, 1e-9)
        likelihood = self.lost * np.log(expected / (shape + expected)) - shape * np.log1p(expected / shape)
        return -float(likelihood.sum())


def guess_knee(samples: Sequence[Sample], goal: Goal, limits: Limits) -> float | None:
    """Guesses the knee in frames per second; ``None`` where losses do not grow with the load, or too few were seen."""
    ratio = max(NEAR_THE_KNEE, 2 * goal.loss_ratio)
    near = [sample for sample in samples if sample.counts.loss_ratio <= ratio]
    lossy = [sample.load_frames_per_s for sample in near if sample.counts.failed]
    if len(set(lossy)) < LOADS_NEEDED:
        return None
    scale = statistics.median(lossy)
    counts = _count(near, scale, limits)
    lowest = counts if goal.loss_ratio else _count(_nearest(near), scale, limits)
    line = _fit_line(counts)
    if line is None:
        return None
    level, growth = line
    wanted = max(goal.loss_ratio, HALF_A_FRAME / (scale * limits.longest_trial_s))
    place = (math.log(wanted) - level) / growth
    linear = _fit_onset(lowest)
    if linear is not None and linear.misfit + CLEARLY < _misfit_of(line, lowest):
        place = linear.onset + wanted / linear.growth
    return scale * (1.0 + limits.precision * place)


def _nearest(samples: Sequence[Sample]) -> list[Sample]:
    """Returns the trials up to the lowest few loads that lost: further up the loss may follow another line."""
    lossy = sorted({sample.load_frames_per_s for sample in samples if sample.counts.failed})
    highest = lossy[: 2 * LOADS_NEEDED][-1]
    return [sample for sample in samples if sample.load_frames_per_s <= highest]


def _count(samples: Sequence[Sample], scale: float, limits: Limits) -> _Counts:
    import numpy as np

    loads = np.array([sample.load_frames_per_s for sample in samples])
    lost = np.array([sample.counts.failed for sample in samples], dtype=float)
    frames = np.array([sample.counts.offered for sample in samples], dtype=float)
    return _Counts((loads / scale - 1.0) / limits.precision, lost, frames)


def _misfit_of(line: tuple[float, float], counts: _Counts) -> float:
    import numpy as np

    level, growth = line
    return counts.misfit(counts.frames * np.exp(np.minimum(0.0, level + growth * counts.places)))


class _Linear(NamedTuple):
    """A loss ratio that grows by ``growth`` with each precision of load above ``onset``."""

    onset: float
    growth: float
    misfit: float


def _fit_onset(counts: _Counts) -> _Linear | None:
    """Finds the most likely loss ratio = growth * (place - onset); None where no trial lost."""
    import numpy as np

    lossy = counts.places[counts.lost > 0]
    lowest, highest = float(lossy.min()), float(lossy.max())
    reach = 2.0 * (highest - lowest) + 2.0
    best: _Linear | None = None
    for below in np.linspace(0.0, 1.0, ONSETS + 1)[1:]:
        onset = lowest - reach * float(below) ** 2
        above = np.maximum(0.0, counts.places - onset)
        weighed = counts.frames * above
        growth = float(counts.lost.sum() / weighed.sum())
        for _ in range(3):
            trust = 1.0 / (1.0 + MISFIT * growth * weighed)
            growth = float((trust * counts.lost).sum() / (trust * weighed).sum())
        misfit = counts.misfit(growth * weighed)
        if best is None or misfit < best.misfit:
            best = _Linear(onset, growth, misfit)
    return best


def _fit_line(counts: _Counts) -> tuple[float, float] | None:
    """Finds the most likely log(loss ratio) = level + growth * place; None unless the growth is clearly positive."""
    import numpy as np

    places, lost, frames = counts
    design = np.column_stack([np.ones(len(places)), places])
    line = np.array([math.log(lost.sum() / frames.sum()), 0.0])
    for _ in range(STEPS):
        expected = frames * np.exp(np.minimum(0.0, design @ line))
        trust = 1.0 / (1.0 + MISFIT * expected)
        slope = design.T @ (trust * (lost - expected))
        curvature = design.T @ (design * (trust * expected)[:, None])
        try:
            change = np.linalg.solve(curvature, slope)
        except np.linalg.LinAlgError:
            return None
        line += change * min(1.0, LONGEST_STEP / max(1e-12, float(np.abs(change).max())))
        if float(np.abs(change).max()) < 1e-6:
            uncertainty = math.sqrt(np.linalg.inv(curvature)[1, 1])
            return (float(line[0]), float(line[1])) if line[1] > SIGNIFICANT_DEVIATIONS * uncertainty else None
    return None


FLOOD_S = 0.3
BELOW, ABOVE = 0.25, 0.7
"""The distance of the next loads from the guess, in precisions: a pass and a failure there are less than one apart."""
WIDE = 4.0
"""Above this ratio of ends the middle is geometric, because precision is relative."""
CREEP = 0.25
"""Where guesses come down little by little, a step is at least this part of the gap."""
NEARBY = 1.05
"""That is, with two failures up to this factor above it."""
STEEPEST = 0.5
"""The highest growth of the rate with the load that a guess follows."""
STEP, RARE_STEP = 2.0, 4.0
"""Steps grow by these factors: the second where they have a long way to go."""
FEW_FRAMES = 10
"""A loss of fewer frames may come at any load."""
FARTHER = 8.0
"""The next load above all rates that came back is as many times farther above them with each load that passes there."""
NEARLY = 4.0
"""A gap of fewer precisions is halved."""
ALIKE = 0.6
"""Losses that fall by less than to this part from one load to the next may come at any load."""


class Guided(DrivenSearch):
    """A flood first, then loads close to the rate that came back."""

    kind = "guided"
    how = "every trial guides, and only a full and even one decides: the default search."

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
    """Returns the load that a DUT would just carry by the two trials nearest to the knee that were too much for it: the
    rate that came back may fall with an overload, or grow with the load.
    """
    told = sorted(
        (sample.sent_frames_per_s, rate)
        for sample in samples
        if sample.may_fail and (rate := forwarded_rate(sample, zones.goal, limits)) is not None
    )
    if not told:
        return None
    load, rate = told[0]
    for other, more in told[1:]:
        if other > load * (1.0 + limits.precision):
            slope = min(STEEPEST, (more - rate) / (other - load))
            return (rate - slope * load) / (1.0 - slope)
    return rate


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
    full = [vote for vote in zones.votes if vote.sample.duration_s >= limits.trial_duration_s]
    passed = [vote.load_frames_per_s for vote in full if vote.decision is Decision.PASS]
    failed = sum(vote.load_frames_per_s <= min(passed, default=math.inf) for vote in full) - len(passed[:1])
    is_rare = len(slight) > 1 and all(one.counts.failed < FEW_FRAMES for one in slight)
    step = precision * (RARE_STEP if is_rare else STEP) ** max(0, failed - 1)
    if len(slight) > 1 and _is_alike(*sorted(slight, key=lambda one: one.sent_frames_per_s)[:2]):
        step = 0.5  # a loss at any load, or one that grows slowly: half the load tells them apart
    knee = guess_knee(_of_the_dut(samples), zones.goal, limits)
    if knee is not None and 0.5 * upper < knee < upper:
        return min(knee, upper * (1.0 - precision))
    rates = [vote.sample.forwarded_frames_per_s for vote in full if passed and vote.sample.counts.received]
    stepped = min(upper, *rates, math.inf) * (1.0 - min(0.5, step))
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
        return min(knee, upper - CREEP * (upper - lower))
    if guess is None:
        return middle
    if sum(one.counts.failed > 0 and lower < one.sent_frames_per_s <= NEARBY * upper for one in samples) > 2:
        guess = min(guess, upper - CREEP * (upper - lower))
    passed = [vote for vote in zones.votes if vote.decision is Decision.PASS and vote.load_frames_per_s <= lower]
    asked = [vote.sample.load_frames_per_s * share_sent(samples) for vote in passed]
    least = max(lower * (1.0 + BELOW * precision), *asked)
    for load in (guess * (1.0 + ABOVE * precision), guess * (1.0 - BELOW * precision)):
        if least < load < upper * (1.0 - BELOW * precision):
            return load
    if zones.highest_pass is None or zones.highest_pass.load_frames_per_s > lower * (1.0 + CLOSE):
        return middle
    # Above all that passed, and all that came back: further up with every pass that comes near.
    top = max(rate for one in samples if (rate := forwarded_rate(one, zones.goal, limits)) is not None)
    if top > max(asked):
        near_top = sum(load > top * (1.0 - precision) for load in asked)
        return min(middle, top * (1.0 + ABOVE * precision * STEP ** near_top))
    return min(middle, lower + max(precision * lower, FARTHER * (max(asked) - top)))
