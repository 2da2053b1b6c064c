"""Two shapes that a DUT's loss may take as the load rises, and the load at which they lose a given share. Pure.

Both are those of PLRsearch (draft-vpolak-bmwg-plrsearch-03, "Fitting Functions"): increasing and convex, with two
parameters in frames per second: ``mrr``, the rate at which frames are forwarded at loads far above it, and ``spread``,
over how much load the loss sets in. ``stretch`` is the logistic function integrated, with an exponential tail below
``mrr``; ``erf`` is the Gaussian function integrated twice, and falls off faster. Everything is a logarithm, because a
loss of interest may be one frame in many millions, and a tail is far smaller still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
LossModel = Callable[[Numbers, Numbers, Numbers], Numbers]
"""Load, mrr and spread, which are broadcast, to the natural logarithm of the frames lost per second."""

_HALVINGS = 60
# Below this exp(x) is so small that log(1 + exp(x)) is exp(x) to the last digit.
_NOTHING = -40.0
# From here on the first terms of the asymptotic series are exact, and the closed form loses its digits.
_FAR = 30.0


def stretch(load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """The logistic one: ``r = a (1 + exp(-m/a)) log((exp(b/a) + exp(m/a)) / (1 + exp(m/a)))``, with no digit lost."""
    centre, reached = mrr / spread, load / spread
    # The logarithm's argument less 1: (exp(b/a) - 1) / (1 + exp(m/a)).
    above = reached + np.log(-np.expm1(-reached)) - np.logaddexp(0.0, centre)
    lost = np.where(above < _NOTHING, above, np.log(np.logaddexp(0.0, np.maximum(above, _NOTHING))))
    return np.asarray(np.log(spread) + np.log1p(np.exp(-centre)) + lost)


def erf(load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """The Gaussian one: r = a (i((m-b)/a) - i(m/a)) / (2 Phi(sqrt(2) m/a)), where i is the integral of erfc."""
    from scipy.special import log_ndtr  # here, and below: who estimates no critical load needs none of it

    start = mrr / spread
    reached, none = _log_integral((mrr - load) / spread), _log_integral(start)
    grown = reached + np.log(-np.expm1(np.minimum(none - reached, -1e-300)))
    # 1 + erf(x) = 2 Phi(x sqrt(2))
    return np.asarray(np.log(spread) + grown - np.log(2.0) - log_ndtr(start * np.sqrt(2.0)))


MODELS: Mapping[str, LossModel] = MappingProxyType({"stretch": stretch, "erf": erf})


def log_loss_ratio(model: LossModel, load: Numbers, mrr: Numbers, spread: Numbers) -> Numbers:
    """Natural logarithm of the share of the offered frames that is lost; never above that of all of them."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(0.0, model(load, mrr, spread) - np.log(load)))


def critical_load(model: LossModel, mrr: Numbers, spread: Numbers, loss_ratio: float) -> Numbers:
    """The load at which this share is lost; 0 where a shape loses more than that at any load."""
    wanted = np.log(loss_ratio)
    low = np.zeros_like(mrr)
    # Far above mrr what is lost is what exceeds it, less a part of the spread, which is at most mrr itself.
    high = 4.0 * mrr / (1.0 - loss_ratio)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = log_loss_ratio(model, middle, mrr, spread) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _log_integral(x: Numbers) -> Numbers:
    """Logarithm of the integral of erfc from ``x`` on: ``exp(-x²)/sqrt(pi) - x erfc(x)``."""
    from scipy.special import erfc, erfcx

    near = np.clip(x, 0.0, _FAR)
    scaled = 1.0 / np.sqrt(np.pi) - near * erfcx(near)
    # The asymptotic series of that, from the one of erfc (DLMF 7.12.1).
    far = np.maximum(x, _FAR)
    series = (1.0 - 1.5 / far**2 * (1.0 - 2.5 / far**2)) / (2.0 * np.sqrt(np.pi) * far**2)
    right = -np.square(np.maximum(x, 0.0)) + np.log(np.where(x > _FAR, series, scaled))
    negative = np.minimum(x, 0.0)
    left = np.log(np.exp(-np.square(negative)) / np.sqrt(np.pi) - negative * erfc(negative))
    return np.asarray(np.where(x > 0.0, right, left))
