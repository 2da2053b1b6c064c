"""Guesses where a long trial would just meet a goal, from the growth of the loss near the knee; never a bound.

Near its knee a DUT's loss grows by a factor with each step of the load, over decades, or in proportion to the load
above the one where it begins. Both curves are fitted to the counts of all trials there by Poisson regression, so
that trials without loss count too, and the likelier one is used. Short trials then show how far down a long one has
to go, without a long trial at each step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nicbench.search.base import Goal, Limits, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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


def of_the_dut(samples: Sequence[Sample]) -> list[Sample]:
    """Returns the trials whose losses are more than the tester's pauses explain, and those without."""
    return [
        one
        for one in samples
        if not one.counts.failed or (one.may_fail and one.counts.failed > one.held_up_share * one.counts.intended)
    ]
