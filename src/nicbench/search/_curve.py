"""Guesses where a long trial would just meet a goal, from the growth of the loss near the knee; never a bound.

Near its knee a DUT's loss grows by a factor with each step of the load, over decades. The logarithm of the loss ratio
is assumed to be a straight line, fitted to the counts of all trials there by Poisson regression, so that trials without
loss count too. Short trials then show how far down a long one has to go, without a long trial at each step.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nicbench.search.base import Goal, Limits, Sample

if TYPE_CHECKING:  # NumPy loads slowly, and many commands search nothing
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
STEPS = 50
LONGEST_STEP = 3.0


def guess_knee(samples: Sequence[Sample], goal: Goal, limits: Limits) -> float | None:
    """Guesses the knee in frames per second; ``None`` where losses do not grow with the load, or too few were seen."""
    ratio = max(NEAR_THE_KNEE, 2 * goal.loss_ratio)
    near = [sample for sample in samples if sample.counts.loss_ratio <= ratio]
    lossy = [sample.load_frames_per_s for sample in near if sample.counts.failed]
    if len(set(lossy)) < LOADS_NEEDED:
        return None
    scale = statistics.median(lossy)
    line = _fit_trials(near, scale, limits)
    if line is None:
        return None
    level, growth = line
    wanted = max(goal.loss_ratio, HALF_A_FRAME / (scale * limits.longest_trial_s))
    return scale * (1.0 + limits.precision * (math.log(wanted) - level) / growth)


def grows_with_load(samples: Sequence[Sample], limits: Limits) -> bool:
    """Returns whether these trials show that higher loads lose more."""
    lossy = [sample.load_frames_per_s for sample in samples if sample.counts.failed]
    return bool(lossy) and _fit_trials(samples, statistics.median(lossy), limits) is not None


def _fit_trials(samples: Sequence[Sample], scale: float, limits: Limits) -> tuple[float, float] | None:
    """Fits the line; returns its level at the load ``scale`` and its growth for each precision above that."""
    import numpy as np

    loads = np.array([sample.load_frames_per_s for sample in samples])
    lost = np.array([sample.counts.failed for sample in samples], dtype=float)
    frames = np.array([sample.counts.sent + sample.counts.unsent_backpressure for sample in samples], dtype=float)
    return _fit_line((loads / scale - 1.0) / limits.precision, lost, frames)


def _fit_line(
    places: NDArray[np.float64], lost: NDArray[np.float64], frames: NDArray[np.float64]
) -> tuple[float, float] | None:
    """Finds the most likely log(loss ratio) = level + growth * place; None unless the growth is clearly positive."""
    import numpy as np

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
