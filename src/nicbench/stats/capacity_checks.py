"""Whether a model of stats/capacity.py may be believed: what speaks against it in the very trials it was fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nicbench.stats.capacity import LAPSES, Numbers, Observation, Posterior, Trials, columns_of, predict

LOADS_NEEDED = 3
"""Losses grow along a line that two loads alone do not show."""
FEWEST_TO_JUDGE = 8
"""Of fewer trials no drift and no curve can be told."""
MISFITS_BY_CHANCE = 1e-4
CONTRADICTS = 1e-4
MUCH_LIKELIER = 8.0
UNLIKELY = -5.0
"""The log likelihood of passes and failures that no model need have, and for each trial half a unit more."""
_LEAST = 1e-12
_MOST_GROWTH = 60.0


def contradicts_forwarding(observations: Sequence[Observation], posterior: Posterior) -> bool:
    """Returns whether trials do not fail as the model ``FORWARDED`` says: what came back is no critical load.

    Two signs: trials that fail lose too little (of normally distributed critical loads few lie just below the load
    offered), or passes and failures are too unlikely.
    """
    from scipy.special import chdtrc, ndtr  # imported here, as it loads slowly

    trials = columns_of(observations, "forwarded")
    means, deviations = predict(trials, posterior)
    known = ~trials.passed & ~np.isnan(trials.critical)
    if known.any():
        reached = ndtr((trials.loads - means)[known] / deviations[known])
        below = ndtr((trials.critical - means)[known] / deviations[known])
        # A frame is lost or not: a loss below the resolution is none that could be told.
        chances = np.clip((reached - below) / np.maximum(reached, _LEAST), 1e-6, 1.0)
        near = np.abs(trials.loads - means)[known] < 10.0 * deviations[known]
        statistic = float(-2.0 * np.log(chances[near]).sum())
        if near.sum() > 1 and chdtrc(2.0 * float(near.sum()), statistic) < CONTRADICTS:
            return True
    return _fits(trials, posterior) < UNLIKELY - 0.5 * len(observations)


def grows_with_load(observations: Sequence[Observation], losses: Posterior, passed: Posterior) -> bool:
    """Returns whether the losses near the knee are enough to follow, and trials pass as they say."""
    trials = columns_of(observations, "lost")
    lossy = (trials.lost > 0) & ~np.isnan(trials.lost)
    if np.unique(trials.loads[lossy]).size < LOADS_NEEDED:
        return False
    means, _ = predict(trials, losses)
    growth = np.minimum((trials.loads - means) / losses.scatter, _MOST_GROWTH)
    half = (2.0**losses.misfit - 1.0) / losses.misfit
    log_pass = -np.log1p(losses.misfit * half * np.exp(growth)) / losses.misfit
    log_fail = np.log(-np.expm1(np.minimum(log_pass, -_LEAST)))
    fits = float(np.maximum(np.where(trials.passed, log_pass, log_fail), math.log(LAPSES)).sum())
    return _fits(trials, passed) - fits <= MUCH_LIKELIER


def _fits(trials: Trials, one: Posterior) -> float:
    """Returns the log likelihood of passes and failures alone, at the middle of a posterior."""
    from scipy.special import log_ndtr  # imported here, as it loads slowly

    means, spread = predict(trials, one)
    z = np.where(trials.passed, means - trials.loads, trials.loads - means) / spread
    return float(np.maximum(log_ndtr(z), math.log(LAPSES)).sum())


def find_misfit(observations: Sequence[Observation], posterior: Posterior) -> str | None:
    """Describes a way in which the trials do not follow the model; None where they do, or are too few to tell."""
    from scipy.stats import f, kendalltau  # imported here, as it loads slowly

    trials = columns_of(observations, "forwarded")
    known = ~trials.passed & ~np.isnan(trials.critical)
    if known.sum() < FEWEST_TO_JUDGE:
        return None
    means, deviations = predict(trials, posterior)
    left = (trials.critical - means)[known] / deviations[known]
    if kendalltau(np.arange(len(left)), left).pvalue < MISFITS_BY_CHANCE:
        return "the rate drifts from trial to trial"
    shares = trials.shares[known]
    if np.unique(shares).size > 3:
        straight = _squares(np.vander(shares, 2), left)
        curved = _squares(np.vander(shares, 3), left)
        freedom = len(left) - 3
        ratio = (straight - curved) / max(curved / freedom, 1e-12)
        if f.sf(ratio, 1, freedom) < MISFITS_BY_CHANCE:
            return "the rate does not fall in a straight line with the share of the core that others use"
    return None


def _squares(design: Numbers, values: Numbers) -> float:
    return float(np.square(values - design @ np.linalg.lstsq(design, values, rcond=None)[0]).sum())
