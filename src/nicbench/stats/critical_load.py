"""Estimates the critical load from trials at several loads: two models of loss, and Bayesian inference on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nicbench.core.base import Frozen

Numbers = NDArray[np.float64]

LEAST_SCATTER, MOST_SCATTER = 0.02, 1.0
_PARAMETERS = 3
_ENOUGH = 0.5
# Points have moved far enough once the accepted share adds up to this; it takes ten rounds at a fifth accepted.
_MOVES_WANTED, _MOST_MOVES = 2.0, 30
_STEPS = (1.0, 0.3, 0.1)
_BEST_STEP = 2.38 / np.sqrt(2.0 * _PARAMETERS)
_JITTER = 1e-9
_HALVINGS = 30
_EXTREME = 40.0

# Loss models: two curves that a DUT's loss may follow as the load rises.
#
# Both are those of PLRsearch (draft-vpolak-bmwg-plrsearch-03, "Fitting Functions"): increasing and convex, with two
# parameters in frames per second. ``mrr`` is the rate at which frames are forwarded at loads far above it, ``spread``
# the range of loads over which the loss sets in. ``stretch`` is the integral of the logistic function, with an
# exponential tail below ``mrr``; ``erf`` is the double integral of the Gaussian function, and falls off faster. All
# values are logarithms, because a loss of interest may be one frame in many millions, and a tail is far smaller still.


LossModel = Callable[[Numbers, Numbers, Numbers], Numbers]
"""Maps load, mrr and spread, which are broadcast, to the natural logarithm of the frames lost per second."""

# The load is then known to 1e-12 of ``mrr``; asked for and told are loads of nine digits.
_MODEL_HALVINGS = 42
# Below this exp(x) is so small that log(1 + exp(x)) is exp(x) to the last digit.
_NOTHING = -40.0
# From here on the first terms of the asymptotic series are exact, and the closed form loses its digits.
_FAR = 30.0


def stretch(load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """The logistic model: ``r = a (1 + exp(-m/a)) log((exp(b/a) + exp(m/a)) / (1 + exp(m/a)))``, without loss of
    digits.
    """
    centre, reached = mrr / spread, load / spread
    # The logarithm's argument less 1: (exp(b/a) - 1) / (1 + exp(m/a)).
    above = reached + np.log(-np.expm1(-reached)) - np.logaddexp(0.0, centre)
    lost = np.where(above < _NOTHING, above, np.log(np.logaddexp(0.0, np.maximum(above, _NOTHING))))
    return np.asarray(np.log(spread) + np.log1p(np.exp(-centre)) + lost)


def erf(load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """The Gaussian model: r = a (i((m-b)/a) - i(m/a)) / (2 Phi(sqrt(2) m/a)), where i is the integral of erfc."""
    start = mrr / spread
    reached, none = _log_integral((mrr - load) / spread), _log_integral(start)
    grown = reached + np.log(-np.expm1(np.minimum(none - reached, -1e-300)))
    # 2 Phi(x sqrt(2)) = 2 - erfc(x)
    return np.asarray(np.log(spread) + grown - np.log(2.0) - np.log1p(-0.5 * erfc(start)))


MODELS: Mapping[str, LossModel] = MappingProxyType({"stretch": stretch, "erf": erf})


def log_loss_ratio(model: LossModel, load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """Returns the natural logarithm of the share of the offered frames that is lost; at most 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(0.0, model(load, mrr, spread) - np.log(load)))


def critical_load(model: LossModel, mrr: Numbers, spread: Numbers, loss_ratio: float) -> Numbers:
    """Finds the load at which this share is lost; 0 where the model loses more than that at any load."""
    wanted = np.log(loss_ratio)
    low = np.zeros_like(mrr)
    # Far above mrr what is lost is what exceeds it, less a part of the spread, which is at most mrr itself.
    high = 4.0 * mrr / (1.0 - loss_ratio)
    for _ in range(_MODEL_HALVINGS):
        middle = 0.5 * (low + high)
        below = log_loss_ratio(model, middle, mrr, spread) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _log_integral(x: Numbers) -> Numbers:
    """Returns the logarithm of the integral of erfc from ``x`` on: ``exp(-x²)/sqrt(pi) - x erfc(x)``."""
    # On both sides of 0 by the same function, which is most of the work.
    near = np.minimum(np.abs(x), _FAR)
    scaled = scaled_erfc(near)
    # The asymptotic series of that, from the one of erfc (DLMF 7.12.1).
    far = np.maximum(x, _FAR)
    series = (1.0 - 1.5 / far**2 * (1.0 - 2.5 / far**2)) / (2.0 * np.sqrt(np.pi) * far**2)
    right = -np.square(np.maximum(x, 0.0)) + np.log(np.where(x > _FAR, series, 1.0 / np.sqrt(np.pi) - near * scaled))
    negative = np.minimum(x, 0.0)
    falling = np.exp(-np.square(negative))
    left = np.log(falling / np.sqrt(np.pi) - negative * (2.0 - falling * scaled))
    return np.asarray(np.where(x > 0.0, right, left))


# Bayesian inference by importance sampling, with seeded random numbers.
#
# As in PLRsearch (draft-vpolak-bmwg-plrsearch-03) there is a posterior over the parameters of a loss model, which
# yields the average and the deviation of the load at which a given share of the frames is lost. The priors are the
# draft's: ``mrr`` has a Lomax distribution of shape 1 on the scale of the maximum load, ``spread`` is mrr to a uniform
# power.
#
# It differs from the draft in two ways. First, the draft takes a trial's losses for Poisson distributed about the
# model, so that with a million lost frames the model would have to be right to one in a thousand. No DUT follows a
# model that closely, and far from the critical load such a misfit says nothing about it. Here the losses may deviate
# from the model by a relative amount that is the same at all loads: the losses of a trial are Poisson distributed about
# a gamma distributed mean (the negative binomial distribution). Its relative deviation, the ``scatter``, is a third
# parameter, estimated with the others. Second, the draft's proposal is one Gaussian, which misses a posterior of two
# parts or a narrow ridge. Here a cloud of points follows the posterior from one trial to the next (iterated batch
# importance sampling; Chopin 2002). A trial changes the points' weights; the likelihood of a surprising trial is
# applied in parts. Before few points bear all the weight, the points are drawn again and moved (Metropolis steps along
# differences of other points; ter Braak 2006).


class CriticalLoad(Frozen):
    """The estimate by one model, in frames per second; ``lower`` and ``upper`` bound the credible interval.

    ``scatter`` is the relative deviation of the losses from the model, from trial to trial, beyond chance.
    """

    average_frames_per_s: float
    deviation_frames_per_s: float
    lower_frames_per_s: float
    upper_frames_per_s: float
    scatter: float


class Posterior:
    """The posterior of one model over all trials added so far. The same trials and seed give the same answer."""

    def __init__(self, model: LossModel, scale_frames_per_s: float, points: int, random: np.random.Generator) -> None:
        self._model = model
        self._scale = scale_frames_per_s
        self._random = random
        # Logits of the parameters' quantiles: their prior is logistic.
        self._points = random.logistic(size=(points - points % 2, _PARAMETERS))
        self._logs = np.zeros(len(self._points))
        self._trials = np.empty((0, 4))

    def add(self, load_frames_per_s: float, offered: int, lost: int, weight: float = 1.0) -> None:
        """Adds one trial; ``weight`` is 1 for an undisturbed trial and less for a disturbed one."""
        if not offered:
            return
        before, new = self._trials, np.array([[load_frames_per_s, offered, lost, weight]])
        applied = 0.0
        while applied < 1.0:
            likelihood = self._log_likelihood(self._points, new)
            part = _largest_part(self._logs, likelihood, 1.0 - applied)
            self._logs = self._logs + part * likelihood
            applied = 1.0 if part >= 1.0 - applied else applied + part
            if _effective_size(_normalise(self._logs)) <= _ENOUGH * len(self._points) * 1.01:
                partly_applied = new * [1.0, 1.0, 1.0, applied]
                self._move(np.concatenate([before, partly_applied]))
        self._trials = np.concatenate([before, new])

    def critical_load(self, loss_ratio: float, coverage: float) -> CriticalLoad:
        """Estimates the load that loses this share of the frames, with the interval that holds ``coverage`` of the
        posterior.
        """
        mrr, spread, scatter = self._parameters(self._points)
        weights = _normalise(self._logs)
        loads = critical_load(self._model, mrr, spread, loss_ratio)
        average = float(weights @ loads)
        lower, upper = _middle_interval(loads, weights, coverage)
        return CriticalLoad(
            average_frames_per_s=average,
            deviation_frames_per_s=float(np.sqrt(weights @ np.square(loads - average))),
            lower_frames_per_s=lower,
            upper_frames_per_s=upper,
            scatter=float(np.exp(weights @ np.log(scatter))),
        )

    def _parameters(self, points: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Returns mrr, spread and scatter of each point."""
        within = np.clip(points, -_EXTREME, _EXTREME)
        mrr = 1.0 + self._scale * np.exp(within[:, 0])
        shares = 1.0 / (1.0 + np.exp(-within[:, 1:]))
        return mrr, mrr ** shares[:, 0], LEAST_SCATTER * (MOST_SCATTER / LEAST_SCATTER) ** shares[:, 1]

    def _log_likelihood(self, points: Numbers, trials: Numbers) -> Numbers:
        """Returns the log likelihood of these trials at each point, by the negative binomial distribution."""
        mrr, spread, scatter = (column[:, None] for column in self._parameters(points))
        load, offered, lost, weight = trials.T
        log_mean = np.log(offered) + log_loss_ratio(self._model, load[None, :], mrr, spread)
        shape = scatter**-2.0
        # log(1 + mean / shape)
        more = np.logaddexp(0.0, log_mean - np.log(shape))
        each = (
            log_gamma(lost + shape)
            - log_gamma(shape)
            - log_gamma(lost + 1.0)
            + lost * (log_mean - np.log(shape) - more)
            - shape * more
        )
        summed = each @ weight
        return np.where(np.isfinite(summed), summed, -1e300)

    def _log_density(self, points: Numbers, trials: Numbers) -> Numbers:
        prior = -np.sum(np.logaddexp(0.0, points) + np.logaddexp(0.0, -points), axis=1)
        return np.asarray(prior + self._log_likelihood(points, trials))

    def _move(self, trials: Numbers) -> None:
        """Draws the points again by their weights, and moves them until they differ."""
        count, half = len(self._points), len(self._points) // 2
        self._points = self._points[_resample(_normalise(self._logs), self._random)]
        self._random.shuffle(self._points)
        self._logs = np.zeros(count)
        density = self._log_density(self._points, trials)
        moved = 0.0
        for _ in range(_MOST_MOVES):
            for mine, others in ((slice(0, half), slice(half, count)), (slice(half, count), slice(0, half))):
                proposed = self._points[mine] + self._steps(self._points[others])
                reached = self._log_density(proposed, trials)
                taken = np.log(self._random.random(half)) < reached - density[mine]
                self._points[mine] = np.where(taken[:, None], proposed, self._points[mine])
                density[mine] = np.where(taken, reached, density[mine])
                moved += taken.mean() / 2.0
            if moved >= _MOVES_WANTED:
                return

    def _steps(self, others: Numbers) -> Numbers:
        """Proposes steps along the differences of two other points, which have the posterior's scale and direction."""
        count = len(others)
        one = self._random.integers(count, size=count)
        two = (one + self._random.integers(1, count, size=count)) % count
        length = _BEST_STEP * self._random.choice(_STEPS, size=count)
        noise = _JITTER * self._random.standard_normal((count, _PARAMETERS))
        return np.asarray(length[:, None] * (others[one] - others[two]) + noise)


def _largest_part(logs: Numbers, likelihood: Numbers, rest: float) -> float:
    """Finds the largest part of the remaining likelihood that leaves enough points with weight."""
    wanted = min(_ENOUGH * len(logs), 0.9 * _effective_size(_normalise(logs)))
    if _effective_size(_normalise(logs + rest * likelihood)) >= wanted:
        return rest
    low, high = 0.0, rest
    for _ in range(_HALVINGS):
        part = 0.5 * (low + high)
        enough = _effective_size(_normalise(logs + part * likelihood)) >= wanted
        low, high = (part, high) if enough else (low, part)
    # The part is above 0, so that the loop ends.
    return max(low, 1e-12)


def _normalise(logs: Numbers) -> Numbers:
    """Returns weights that add up to 1."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _effective_size(weights: Numbers) -> float:
    """Returns the effective sample size of weighted points (Kish)."""
    return float(1.0 / np.sum(np.square(weights)))


def _resample(weights: Numbers, random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Draws points by systematic resampling: each point as often as its weight says, to within one."""
    count = len(weights)
    at = (random.random() + np.arange(count)) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), at), count - 1)


def _middle_interval(values: Numbers, weights: Numbers, coverage: float) -> tuple[float, float]:
    """Returns the quantiles that enclose the middle ``coverage`` of the weight."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    tail = (1.0 - coverage) / 2.0
    lower, upper = np.searchsorted(reached, [tail, 1.0 - tail])
    last = len(values) - 1
    return float(values[order][min(lower, last)]), float(values[order][min(upper, last)])


# Gamma and error functions of arrays, which NumPy lacks; tests compare with SciPy's.


def log_gamma(x: Numbers) -> Numbers:
    """Returns the logarithm of the gamma function of numbers above 0, by Stirling's series (DLMF 5.11.1)."""
    near = x < 8.0
    far = np.where(near, x + 8.0, x)
    inverse = 1.0 / (far * far)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188))))
    found = np.asarray((far - 0.5) * np.log(far) - far + 0.5 * math.log(2.0 * math.pi) + series / far)
    if near.any():
        small = x[near]
        found[near] -= np.log(math.prod(small + more for more in range(8)))
    return found


def scaled_erfc(x: Numbers) -> Numbers:
    """Returns exp(x²) erfc(x) of numbers from 0 on, by a Chebyshev series of its logarithm."""
    t = 2.0 / (2.0 + x)
    return np.asarray(t * np.exp(np.polynomial.chebyshev.chebval(2.0 * t - 1.0, _SCALED_ERFC)))


def erfc(x: Numbers) -> Numbers:
    """Returns the complementary error function."""
    right = np.exp(-np.square(x)) * scaled_erfc(np.abs(x))
    return np.asarray(np.where(x < 0.0, 2.0 - right, right))


_SCALED_ERFC = (
    *(-0.651326859890854717, 0.64196979235649026, 0.0194764732041858363, -0.00956151478680863164),
    *(-9.46595344482036866e-4, 3.66839497852761452e-4, 4.25233248069077716e-5, -2.02785781125342432e-5),
    *(-1.62429000464702551e-6, 1.3036558355805232e-6, 1.56264417220661432e-8, -8.52380959149265425e-8),
    *(6.5290544390988515e-9, 5.05934349555146894e-9, -9.91364156493033087e-10, -2.27365122293183586e-10),
    *(9.6467911020155268e-11, 2.39403808303911474e-12, -6.8860275264975534e-12, 8.94487927309072572e-13),
    *(3.13092139934295808e-13, -1.12708223613672524e-13, 3.81090525518923206e-16, 7.10609761360923699e-15),
    *(-1.5230282014571043e-15, -9.457494571291234e-17, 1.21023718922427899e-16, -2.81666308774717697e-17),
)
"""log(exp(x²) erfc(x) / t) in Chebyshev polynomials of 2 t - 1, where t = 2 / (2 + x)."""
