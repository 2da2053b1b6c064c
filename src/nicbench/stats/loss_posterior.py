"""What trials at several loads say of the critical load: Bayesian inference by importance sampling. Pure, and seeded.

As in PLRsearch (draft-vpolak-bmwg-plrsearch-03) there is a posterior over the parameters of a loss model, and from it
the average and the deviation of the load at which a given share of the frames is lost. The priors are the draft's:
``mrr`` has a Lomax distribution of shape 1 on the scale of the maximum load, ``spread`` is mrr to a uniform power.

In two things it differs. The draft takes a trial's losses for Poisson distributed about the model, so that of a million
lost frames the model would have to be right to one in a thousand; no DUT is one of two curves to that degree, and far
from the critical load that says nothing of it. Here the model may be wrong, and the DUT may waver, by a share that is
the same at all loads: the losses of a trial are Poisson distributed about a gamma distributed mean (the negative
binomial distribution), and its relative deviation, the ``scatter``, is a third parameter, found with the others.
And the draft's proposal is one Gaussian, which misses a posterior of two parts, or a narrow ridge. Here a cloud of
points follows the posterior from one trial to the next (iterated batch importance sampling; Chopin 2002): a trial
changes the points' weights, a surprising one bit by bit, and before few points bear all the weight they are drawn
again and moved (Metropolis steps along differences of other points; ter Braak 2006).
"""

from __future__ import annotations

import numpy as np

from nicbench.model.base import Frozen
from nicbench.stats.loss_models import LossModel, Numbers, critical_load, log_loss_ratio

LEAST_SCATTER, MOST_SCATTER = 0.02, 1.0
_PARAMETERS = 3
_ENOUGH = 0.5
# As long as a move is taken by a fifth of the points, each has been moved three times or so.
_MOVES_WANTED, _MOST_MOVES = 2.0, 30
_STEPS = (1.0, 0.3, 0.1)
_BEST_STEP = 2.38 / np.sqrt(2.0 * _PARAMETERS)
_JITTER = 1e-9
_HALVINGS = 30
_EXTREME = 40.0


class CriticalLoad(Frozen):
    """The posterior of one model, in frames per second. ``lower`` and ``upper`` hold the middle of it.

    ``scatter`` is by which share losses differ from the model, from trial to trial, beyond what chance does.
    """

    average_frames_per_s: float
    deviation_frames_per_s: float
    lower_frames_per_s: float
    upper_frames_per_s: float
    scatter: float


class Posterior:
    """Of one model, over all trials that it was told of. The same trials and the same seed give the same answer."""

    def __init__(self, model: LossModel, scale_frames_per_s: float, points: int, random: np.random.Generator) -> None:
        self._model = model
        self._scale = scale_frames_per_s
        self._random = random
        # Logits of the parameters' quantiles: their prior is logistic.
        self._points = random.logistic(size=(points - points % 2, _PARAMETERS))
        self._logs = np.zeros(len(self._points))
        self._trials = np.empty((0, 4))

    def add(self, load_frames_per_s: float, offered: int, lost: int, weight: float = 1.0) -> None:
        """One more trial; ``weight`` is what it counts beside an undisturbed one."""
        if not offered:
            return
        before, new = self._trials, np.array([[load_frames_per_s, offered, lost, weight]])
        told = 0.0
        while told < 1.0:
            likelihood = self._log_likelihood(self._points, new)
            part = _largest_part(self._logs, likelihood, 1.0 - told)
            self._logs = self._logs + part * likelihood
            told = 1.0 if part >= 1.0 - told else told + part
            if _effective(_normal(self._logs)) <= _ENOUGH * len(self._points) * 1.01:
                so_far = new * [1.0, 1.0, 1.0, told]
                self._move(np.concatenate([before, so_far]))
        self._trials = np.concatenate([before, new])

    def critical_load(self, loss_ratio: float, coverage: float) -> CriticalLoad:
        """Where this share of the frames is lost, and the interval that holds so much of the posterior."""
        mrr, spread, scatter = self._parameters(self._points)
        weights = _normal(self._logs)
        loads = critical_load(self._model, mrr, spread, loss_ratio)
        average = float(weights @ loads)
        lower, upper = _middle(loads, weights, coverage)
        return CriticalLoad(
            average_frames_per_s=average,
            deviation_frames_per_s=float(np.sqrt(weights @ np.square(loads - average))),
            lower_frames_per_s=lower,
            upper_frames_per_s=upper,
            scatter=float(np.exp(weights @ np.log(scatter))),
        )

    def _parameters(self, points: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """mrr, spread and scatter of each point."""
        within = np.clip(points, -_EXTREME, _EXTREME)
        mrr = 1.0 + self._scale * np.exp(within[:, 0])
        shares = 1.0 / (1.0 + np.exp(-within[:, 1:]))
        return mrr, mrr ** shares[:, 0], LEAST_SCATTER * (MOST_SCATTER / LEAST_SCATTER) ** shares[:, 1]

    def _log_likelihood(self, points: Numbers, trials: Numbers) -> Numbers:
        """Of these trials, at each point: the negative binomial distribution, in logarithms."""
        from scipy.special import gammaln  # here: who estimates no critical load needs none of it

        mrr, spread, scatter = (column[:, None] for column in self._parameters(points))
        load, offered, lost, weight = trials.T
        log_mean = np.log(offered) + log_loss_ratio(self._model, load[None, :], mrr, spread)
        shape = scatter**-2.0
        # log(1 + mean / shape)
        more = np.logaddexp(0.0, log_mean - np.log(shape))
        each = (
            gammaln(lost + shape)
            - gammaln(shape)
            - gammaln(lost + 1.0)
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
        self._points = self._points[_drawn(_normal(self._logs), self._random)]
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
        """Along the difference of two other points, which is as long and lies as the posterior does."""
        count = len(others)
        one = self._random.integers(count, size=count)
        two = (one + self._random.integers(1, count, size=count)) % count
        length = _BEST_STEP * self._random.choice(_STEPS, size=count)
        noise = _JITTER * self._random.standard_normal((count, _PARAMETERS))
        return np.asarray(length[:, None] * (others[one] - others[two]) + noise)


def _largest_part(logs: Numbers, likelihood: Numbers, rest: float) -> float:
    """How much of the rest of a trial's likelihood leaves enough points with weight."""
    wanted = min(_ENOUGH * len(logs), 0.9 * _effective(_normal(logs)))
    if _effective(_normal(logs + rest * likelihood)) >= wanted:
        return rest
    low, high = 0.0, rest
    for _ in range(_HALVINGS):
        part = 0.5 * (low + high)
        enough = _effective(_normal(logs + part * likelihood)) >= wanted
        low, high = (part, high) if enough else (low, part)
    # More than nothing, so that it ends.
    return max(low, 1e-12)


def _normal(logs: Numbers) -> Numbers:
    """Weights that add up to 1."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _effective(weights: Numbers) -> float:
    """Of so many points of equal weight they are worth (Kish)."""
    return float(1.0 / np.sum(np.square(weights)))


def _drawn(weights: Numbers, random: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Systematic resampling: each point as often as its weight says, to within one."""
    count = len(weights)
    at = (random.random() + np.arange(count)) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), at), count - 1)


def _middle(values: Numbers, weights: Numbers, coverage: float) -> tuple[float, float]:
    """The quantiles on both sides of this share of the weight."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    tail = (1.0 - coverage) / 2.0
    lower, upper = np.searchsorted(reached, [tail, 1.0 - tail])
    last = len(values) - 1
    return float(values[order][min(lower, last)]), float(values[order][min(upper, last)])
