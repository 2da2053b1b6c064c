"""Estimates the load that half of all trials carry, from trials that passed or failed at loads of any height.

A trial has a critical load, the highest at which it would have met its goal. Its logarithm is taken for normally
distributed about ``log(rate) + log(1 - slope * share) + exponent * log(clock)``. ``share`` is the share of the looks at
the DUT's core that found the core slow, 0 where nobody looked. ``clock`` is that of the core, relative to the one for
which the rate is stated; the exponent is 1 for a DUT that its core limits. For one that something else limits slope and
exponent are 0. Which of the two it is, the trials tell. A trial that passed tells that its critical load is not below
the load offered (censored). What a trial that failed tells depends on the model:

- ``forwarded``: its critical load, because what came back is what the DUT could carry (Tobit: Econometrica 26, 1958).
  It needs the fewest trials, and holds for a DUT with a sharp knee; stats/capacity_checks.py finds those without;

- ``lost``, of goals without loss: the frames lost, which grow by a factor of e with each width of the knee;

- ``passed``: only that its critical load is below the load offered (probit, as for a dose and its response).

The parameters are integrated on a grid that follows the likelihood (``fit``). Their prior is flat in rate and slope,
and nearly so in the logarithm of the scatter, which makes the interval of uncensored trials Student's t interval: the
correction for small samples is built in. Two things keep the interval honest:

- a share is known from a number of looks. It is calibrated (stats/capacity_shares.py), or the slope would come out too
  flat. The variance that remains enters that of the trial, and the likelihood is summed over all calibrations;

- some trials lose frames for a reason of their own (``LAPSES``), and a trial far beyond the knee tells its critical
  load less exactly than one near it (``MISFITS``), by a share of the distance that is estimated as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nicbench.stats.capacity_shares import Calibration, calibrate_shares

Numbers = NDArray[np.float64]
Model = Literal["forwarded", "lost", "passed"]

LAPSES = 0.02
"""The share of the trials that lose frames at any load."""
MISFITS = (0.0, 0.003, 0.03, 0.3)
"""By which share of its distance from the load offered a critical load may be wrong."""
NEAR_THE_KNEE = 1e-3
"""The loss ratio up to which losses grow exponentially with the load; above, a DUT is at its capacity."""
MOST_LOST = 50
"""Frames lost up to which losses grow so: over a wider range of loads the growth itself changes."""
DISPERSIONS = (1e-3, 0.1, 0.5, 2.0)
"""By how much the losses of trials vary beyond chance: the relative variance of their mean."""
WIDEST_KNEE = 0.1
STEEPEST = 0.7
"""The largest slope: of a core that is shared all the time three tenths are left, where a half to two thirds are usual.
"""
SCATTER = (1e-5, 0.3)
CAUTION = 0.2
"""The power of the scatter by which its prior grows: among passes a few failures that agree by chance look exact."""
LEAST_SHARE = 0.002
"""Where no core was slow for a larger share than this, there is no slope to estimate."""
CORE_LIMITS = 0.5
"""The chance, before any trial, that the core limits the rate."""
EVEN = 0.5
LEAST_CHANGE = 1e-3
"""Clocks that differ by no more than this, relatively, are the same."""
HEAVY = 0.05
"""A loss from which on a DUT is at its capacity, whatever the shape of its knee."""

_REFINEMENTS = 4
_HALF = (0.0, 1e-4, 2e-3, 0.01, 0.025, 0.05, 0.1, 0.18, 0.28, 0.38, 0.47)
_RATE_LEVELS = np.array([*_HALF, *(1.0 - level for level in reversed(_HALF))])
_SCATTER_LEVELS = np.array([0.0, 0.01, 0.06, 0.2, 0.4, 0.6, 0.8, 0.94, 0.99, 1.0])
_SLOPE_LEVELS = np.array([0.0, 2e-3, 0.02, 0.08, 0.2, 0.4, 0.6, 0.8, 0.92, 0.98, 0.998, 1.0])
_OUTLIER_DENSITY = 1.0
_LEAST = 1e-12
_MOST_GROWTH = 60.0


@dataclass(frozen=True)
class Observation:
    """One trial. ``critical_load`` is None where it passed, or nothing came back. ``resolution`` is relative."""

    load: float
    critical_load: float | None
    passed: bool
    lost: int = 0
    loss_ratio: float = 0.0
    share: float = 0.0
    looks: float = 0.0
    """As ``effective_looks`` counts them; 0 where the share is no estimate."""
    clock: float = 1.0
    """Of the DUT's core, relative to the clock for which the rate is stated."""
    resolution: float = 0.0
    weight: float = 1.0


@dataclass(frozen=True)
class Posterior:
    """What is known of the parameters: points of a grid, with weights that add up to 1."""

    log_rates: Numbers
    slopes: Numbers
    scatters: Numbers
    weights: Numbers
    exponents: Numbers
    """1 where the core limits the rate, 0 where something else does."""
    misfit: float
    """The likeliest of ``MISFITS``."""

    def rate(self, level: float, share: float = 0.0, clock: float = 1.0) -> float:
        """Returns the quantile of the rate, at a share of slow looks and a relative clock."""
        shifts = np.log1p(-self.slopes * share) + self.exponents * math.log(clock)
        return math.exp(_quantile(self.log_rates + shifts, self.weights, level))

    @cached_property
    def core_limits(self) -> float:
        """The probability that the core limits the rate."""
        return float(self.weights[self.exponents > EVEN].sum())

    @cached_property
    def likely_rate(self) -> float:
        """The median rate if the core limits it, or if it does not: of the two what the trials rather say."""
        likely = (self.exponents > EVEN) == (self.core_limits > EVEN)
        return math.exp(_quantile(self.log_rates, self.weights * likely / self.weights[likely].sum(), 0.5))

    def slope(self, level: float) -> float:
        """Returns the quantile of the slope."""
        return _quantile(self.slopes, self.weights, level)

    @cached_property
    def likely_slope(self) -> float:
        """The median slope where the core rather limits the rate than not, else 0."""
        if self.core_limits <= EVEN:
            return 0.0
        return _quantile(self.slopes, self.weights * (self.exponents > EVEN) / self.core_limits, 0.5)

    @cached_property
    def scatter(self) -> float:
        """The median of the deviation of the trials' critical loads, relative."""
        return math.exp(_quantile(np.log(self.scatters), self.weights, 0.5))


class _Kind(NamedTuple):
    """Kinds of DUTs and of trials, one in each row, between which the likelihood decides."""

    misfits: Numbers
    exponents: Numbers
    priors: Numbers
    shares: Numbers
    """Of shape (kinds, trials), like ``variances``."""
    variances: Numbers

    @classmethod
    def all_of(cls, misfits: Numbers, calibrations: tuple[Calibration, ...], *, by_core: bool) -> _Kind:
        """Returns each misfit of a DUT that its core does not limit, and of one that it does by each calibration."""
        of_core = calibrations if by_core else ()
        rows = [(0.0, 1.0 - CORE_LIMITS, calibrations[0])]
        rows += [(1.0, CORE_LIMITS / len(of_core), calibration) for calibration in of_core]
        return cls(
            np.tile(misfits, len(rows)),
            *(np.repeat([row[field] for row in rows], len(misfits)) for field in (0, 1)),
            *(np.repeat([row[2][field] for row in rows], len(misfits), axis=0) for field in (0, 1)),
        )


@dataclass(frozen=True)
class Trials:
    """Observations as columns."""

    loads: Numbers
    critical: Numbers
    """NaN where it is not known."""
    passed: NDArray[np.bool_]
    calibrations: tuple[Calibration, ...]
    """Of the shares of slow looks, equally likely; the middle one first."""
    resolutions: Numbers
    weights: Numbers
    lost: Numbers
    """NaN far beyond the knee."""
    log_clocks: Numbers

    @property
    def log_clock(self) -> float:
        """The clock about which the rate is estimated, so that rate and exponent hardly depend on each other."""
        return float(self.log_clocks.mean())

    @property
    def share(self) -> float:
        """The share about which the rate is estimated, so that rate and slope hardly depend on each other."""
        return float(self.shares.mean())

    @property
    def shares(self) -> Numbers:
        """The shares of slow looks, in the middle calibration."""
        return self.calibrations[0].shares

    @property
    def usual_log_loss(self) -> float:
        """The logarithm of the frames lost in a usual trial near the knee, of those that lost any."""
        lossy = self.lost[self.lost > 0.0]
        return float(np.log(lossy).mean()) if lossy.size else 0.0


def fit(observations: Sequence[Observation], lowest: float, highest: float, model: Model = "forwarded") -> Posterior:
    """Integrates the likelihood of the observations, for a rate between ``lowest`` and ``highest``."""
    trials = columns_of(observations, model)
    sloped = bool(trials.shares.max() > LEAST_SHARE)
    floor = max(SCATTER[0], float(np.median(trials.resolutions)))
    misfits = np.array({"forwarded": MISFITS, "lost": DISPERSIONS, "passed": (0.0,)}[model])
    clocked = bool(np.ptp(trials.log_clocks) > LEAST_CHANGE or abs(trials.log_clock) > LEAST_CHANGE)
    kinds = _Kind.all_of(misfits, trials.calibrations, by_core=sloped or clocked)
    exponents = kinds.exponents
    widest = SCATTER[1] if model == "forwarded" else WIDEST_KNEE
    noises = np.linspace(math.log(min(floor, widest / 2.0)), math.log(widest), len(_SCATTER_LEVELS))
    rates = np.linspace(math.log(lowest), math.log(highest), len(_RATE_LEVELS))
    slopes = np.linspace(0.0, STEEPEST, len(_SLOPE_LEVELS)) if sloped else np.zeros(2)
    # At first the likelihood counts as that of a single trial, or a coarse grid would lose a narrow peak.
    parts = np.concatenate([np.geomspace(1.0 / len(observations), 1.0, _REFINEMENTS), np.ones(_REFINEMENTS - 1)])
    for part in parts:
        rate_nodes, slope_nodes = _middles(rates), _middles(slopes)
        rate_cells, slope_cells, scatters = np.diff(rates), np.diff(slopes), np.exp(_middles(noises))
        likelihood = _log_likelihood_of_losses if model == "lost" else _log_likelihood
        logs = likelihood(trials, rate_nodes, slope_nodes, scatters, kinds, (rate_cells, slope_cells))
        logs += _log_likelihood_of_capacity(observations, trials, slope_nodes, kinds)[None, :, None, :]
        logs += np.log(kinds.priors) + CAUTION * np.log(scatters)[:, None]
        weights = np.exp(part * (logs - logs.max())) * rate_cells[:, None, None, None]
        weights *= (slope_cells if sloped else np.ones(1))[None, :, None, None] * np.diff(noises)[:, None]
        weights /= weights.sum()
        rates = _refine(rates, weights.sum(axis=(1, 2, 3)), _RATE_LEVELS)
        slopes = _refine(slopes, weights.sum(axis=(0, 2, 3)), _SLOPE_LEVELS) if sloped else slopes
        noises = _refine(noises, weights.sum(axis=(0, 1, 3)), _SCATTER_LEVELS)
    shape = weights.shape
    exponent_grid = np.broadcast_to(exponents, shape)
    slope_grid = slope_nodes[:, None, None] * exponent_grid
    rate_grid = rate_nodes[:, None, None, None] - np.log1p(-slope_grid * trials.share)
    rate_grid = rate_grid - exponent_grid * trials.log_clock
    if model == "lost":
        lossless = np.log((np.exp2(kinds.misfits) - 1.0) / kinds.misfits) - trials.usual_log_loss
        rate_grid = rate_grid + scatters[:, None] * lossless
    return Posterior(
        log_rates=np.broadcast_to(rate_grid, shape).ravel(),
        slopes=slope_grid.ravel(),
        scatters=np.broadcast_to(scatters[None, None, :, None], shape).ravel(),
        weights=weights.ravel(),
        exponents=exponent_grid.ravel(),
        misfit=float(kinds.misfits[int(weights.sum(axis=(0, 1, 2)).argmax())]),
    )


def predict(trials: Trials, posterior: Posterior) -> tuple[Numbers, Numbers]:
    """Returns mean and deviation of each trial's critical load, in logarithms, at the middle of the posterior."""
    slope, scatter = posterior.likely_slope, posterior.scatter
    means = math.log(posterior.likely_rate) + np.log1p(-slope * trials.shares)
    means = means + (posterior.core_limits > EVEN) * trials.log_clocks
    noise = trials.calibrations[0].variances * (slope / (1.0 - slope * trials.shares)) ** 2
    return means, np.sqrt(scatter**2 + noise + trials.resolutions**2)


def columns_of(observations: Sequence[Observation], model: Model) -> Trials:
    """Returns the observations as columns; critical loads only where the model knows them."""
    calibrations = calibrate_shares(
        np.array([one.share for one in observations]), np.array([one.looks for one in observations], dtype=float)
    )
    critical = [
        math.log(one.critical_load) if one.critical_load and model == "forwarded" and not one.passed else math.nan
        for one in observations
    ]
    return Trials(
        loads=np.log([one.load for one in observations]),
        critical=np.array(critical),
        passed=np.array([one.passed for one in observations]),
        calibrations=calibrations,
        resolutions=np.array([one.resolution for one in observations]),
        weights=np.array([one.weight for one in observations]),
        lost=np.array([one.lost if _is_near_the_knee(one) else math.nan for one in observations]),
        log_clocks=np.log([one.clock for one in observations]),
    )


def _is_near_the_knee(one: Observation) -> bool:
    return one.loss_ratio < NEAR_THE_KNEE and one.lost <= MOST_LOST


def _log_likelihood(
    trials: Trials,
    rates: Numbers,
    slopes: Numbers,
    scatters: Numbers,
    kinds: _Kind,
    cells: tuple[Numbers, Numbers],
) -> Numbers:
    """Returns the log likelihood on the grid, its axes in the order of the arguments.

    The width of a cell counts as scatter, so that a coarse grid does not miss a narrow peak.
    """
    from scipy.special import log_ndtr  # imported here, as it loads slowly

    exponents = kinds.exponents
    steepness = (slopes[:, None] * exponents)[..., None]
    left = 1.0 - steepness * kinds.shares
    shifts = np.log(left) - np.log1p(-steepness * trials.share)
    shifts = shifts + exponents[:, None] * (trials.log_clocks - trials.log_clock)
    known = ~np.isnan(trials.critical)
    distances = np.where(known, trials.loads - np.nan_to_num(trials.critical), 0.0)
    cell = cells[1][:, None, None] * exponents[:, None] * (kinds.shares - trials.share)
    fixed = kinds.variances * (steepness / left) ** 2 + trials.resolutions**2 + cell**2 / 12.0
    variances = fixed[:, None] + scatters[:, None, None] ** 2 + kinds.misfits[:, None] ** 2 * distances**2
    deviations = np.sqrt(variances + cells[0][:, None, None, None, None] ** 2 / 12.0)
    means = rates[:, None, None, None, None] + shifts[:, None]
    means = np.broadcast_to(means, deviations.shape)
    total = np.zeros(deviations.shape[:4])
    exact = known & ~trials.passed
    if exact.any():
        z = (trials.critical[exact] - means[..., exact]) / deviations[..., exact]
        density = np.exp(-0.5 * z * z) / (deviations[..., exact] * math.sqrt(2.0 * math.pi))
        logs = np.log((1.0 - LAPSES) * density + LAPSES * _OUTLIER_DENSITY)
        total += logs @ trials.weights[exact]
    if trials.passed.any():
        z = (means[..., trials.passed] - trials.loads[trials.passed]) / deviations[..., trials.passed]
        total += log_ndtr(z) @ trials.weights[trials.passed]
    failed = ~known & ~trials.passed
    if failed.any():
        z = (trials.loads[failed] - means[..., failed]) / deviations[..., failed]
        chances = np.exp(log_ndtr(z))
        total += np.log(LAPSES + (1.0 - LAPSES) * chances) @ trials.weights[failed]
    return total


def _log_likelihood_of_losses(
    trials: Trials,
    rates: Numbers,
    slopes: Numbers,
    widths: Numbers,
    kinds: _Kind,
    cells: tuple[Numbers, Numbers],
) -> Numbers:
    """Returns the log likelihood where losses grow by a factor of e with each width of the knee.

    They are Poisson distributed about a gamma distributed mean. ``rates`` are the loads at which as much is lost as in
    a usual trial near the knee: about them the width of the knee says little, which a grid follows best.
    """
    from scipy.special import gammaln  # imported here, as it loads slowly

    near = ~np.isnan(trials.lost)
    lost, loads, shares = trials.lost[near], trials.loads[near], kinds.shares[:, near]
    clocks = (trials.log_clocks - trials.log_clock)[near]
    steepness = (slopes[:, None] * kinds.exponents)[..., None]
    shifts = np.log1p(-steepness * shares) - np.log1p(-steepness * trials.share) + kinds.exponents[:, None] * clocks
    blur = np.hypot(widths[None, :], cells[0][:, None] / math.sqrt(12.0))[:, None, :, None, None]
    shape = (1.0 / kinds.misfits)[:, None]
    beyond = (loads - rates[:, None, None, None, None] - shifts[:, None]) / blur
    log_mean = trials.usual_log_loss + np.minimum(beyond, _MOST_GROWTH)
    more = np.logaddexp(0.0, log_mean - np.log(shape))
    each = gammaln(lost + shape) - gammaln(shape) - gammaln(lost + 1.0)
    each = each + lost * (log_mean - np.log(shape) - more) - shape * more
    return np.asarray(np.logaddexp(math.log1p(-LAPSES) + each, math.log(LAPSES) - 10.0) @ trials.weights[near])


def _log_likelihood_of_capacity(
    observations: Sequence[Observation], trials: Trials, slopes: Numbers, kinds: _Kind
) -> Numbers:
    """Returns what heavily overloaded trials tell of the core where their own critical loads do not count."""
    none = np.zeros((len(slopes), len(kinds.exponents)))
    if none.size == 1 or not np.isnan(trials.critical).all():
        return none
    heavy = [
        number
        for number, one in enumerate(observations)
        if one.critical_load and not one.passed and one.critical_load < one.load * (1.0 - HEAVY)
    ]
    if len(heavy) < 3:
        return none
    critical = np.log([observations[number].critical_load or math.nan for number in heavy])
    left = critical - np.log1p(-(slopes[:, None] * kinds.exponents)[..., None] * kinds.shares[:, heavy])
    left = left - kinds.exponents[:, None] * trials.log_clocks[heavy]
    deviation = np.square(left - left.mean(axis=-1, keepdims=True)).sum(axis=-1)
    return np.asarray(-0.5 * (len(heavy) - 1) * np.log(deviation + len(heavy) * SCATTER[0] ** 2))


def _middles(edges: Numbers) -> Numbers:
    return np.asarray((edges[1:] + edges[:-1]) / 2.0)


def _refine(edges: Numbers, weights: Numbers, levels: Numbers) -> Numbers:
    """Returns the edges of new cells over the same range, narrow where the weight is."""
    reached = np.concatenate([[0.0], np.cumsum(weights)])
    # A little weight everywhere keeps the edges apart.
    reached = reached / reached[-1] + 1e-9 * np.linspace(0.0, 1.0, len(edges))
    return np.asarray(np.interp(levels * reached[-1], reached, edges))


def _quantile(values: Numbers, weights: Numbers, level: float) -> float:
    """Returns the quantile of weighted values, each of which stands for its neighbourhood."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) - weights[order] / 2.0
    return float(np.interp(level, reached, values[order]))
