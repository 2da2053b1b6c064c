"""How far the share of slow looks of a trial may be believed, for the model of stats/capacity.py.

A share comes from a limited number of looks. A line fitted to shares that are not exact is too flat. So each share is
drawn to the mean of those like it, by the part of their variance that looks explain (regression calibration; Fuller:
Measurement Error Models, 1987, section 1.2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SPELL_S = 0.001
"""How long a core stays as it is, about: quiet spells last 7 to 20 ms on shared machines, and slow ones 1 to 3 ms."""
APART = 3.0
"""A gap of more than so many standard errors of the looks separates two groups of shares."""
LEVELS = (0.5, 0.1, 0.3, 0.7, 0.9)
"""The middles of five equally likely parts, the middle one first."""
WORTH_TELLING = 0.05
"""Calibrations whose trust in the shares differs by less than this count as one."""

_LEAST = 1e-12


class Calibration(NamedTuple):
    """The shares of the trials and their variances, each of shape (trials,)."""

    shares: Numbers
    variances: Numbers


def effective_looks(looks: int, duration_s: float) -> float:
    """Returns how many looks at random moments would tell as much as these, which come at equal intervals.

    Between looks that are nearer than a spell lasts little is missed. This is the error of a regular sample of a
    process with exponential autocorrelation against its mean over the same time (Cochran: Sampling Techniques, 1977).
    """
    if looks == 0:
        return 0.0
    half = duration_s / looks / (2.0 * SPELL_S)
    return looks / max(1.0 / math.tanh(half) - 1.0 / half, _LEAST)


def calibrate_shares(shares: Numbers, looks: Numbers) -> tuple[Calibration, ...]:
    """Returns equally likely calibrations of the shares, the middle one first; one where looks leave nothing open.

    Shares lie in groups, because programs of others come and go. The distance between two groups does not tell how
    exact the shares within one are, so each group is calibrated alone. A few trials hardly tell how much the shares of
    a group truly differ, so there is more than one calibration.

    Args:
        shares: Of slow looks, of each trial.
        looks: As ``effective_looks`` counts them; 0 where the share is no estimate.
    """
    known = looks > 0
    if not known.any():
        return (Calibration(shares, np.zeros(len(shares))),)
    near = (shares * looks + 0.5) / (looks + 1.0)
    errors = np.where(known, near * (1.0 - near) / np.maximum(looks, 1.0), 0.0)
    groups = _group(shares, errors)
    trusts = np.array([[_trust(shares[group], errors[group], level) for group in groups] for level in LEVELS])
    if np.ptp(trusts, axis=0).max() < WORTH_TELLING:
        trusts = trusts[:1]
    return tuple(_calibrate(shares, errors, groups, of_groups) for of_groups in trusts)


def _group(shares: Numbers, errors: Numbers) -> list[NDArray[np.intp]]:
    order = np.argsort(shares, kind="stable")
    reach = APART * np.sqrt(errors[order][1:] + errors[order][:-1])
    return np.split(order, np.flatnonzero(np.diff(shares[order]) > reach) + 1)


def _trust(shares: Numbers, errors: Numbers, level: float) -> float:
    """Returns a quantile of the part of the variance of a group that is not the error of looks."""
    from scipy.special import chdtri  # imported here, as it loads slowly

    if len(shares) == 1:
        return 1.0
    freedom, error = len(shares) - 1, float(errors.mean())
    between = max(0.0, freedom * float(shares.var(ddof=1)) / float(chdtri(freedom, level)) - error)
    return between / max(between + error, _LEAST)


def _calibrate(shares: Numbers, errors: Numbers, groups: list[NDArray[np.intp]], trusts: Numbers) -> Calibration:
    drawn, variances = shares.copy(), errors.copy()
    for group, trust in zip(groups, trusts, strict=True):
        mean = shares[group].mean()
        drawn[group] = mean + trust * (shares[group] - mean)
        variances[group] *= trust
    return Calibration(np.clip(drawn, 0.0, 1.0), variances)
