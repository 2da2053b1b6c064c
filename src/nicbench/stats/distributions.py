"""Quantiles of Student's t and of the beta distribution, tails of binomial and normal numbers.

SciPy has them, but takes a quarter of what is installed, and a second to load; tests compare with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_TINY = 1e-300
_EXACT = 1e-16
_MOST_STEPS = 1_000_000


def share_below(a: float, b: float, x: float) -> float:
    """Returns the regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges quickly below the mean
        return 1.0 - share_below(b, a, 1.0 - x)
    front = math.exp(_log_density(a, b, x) + math.log(x) + math.log1p(-x)) / a
    # Lentz's way: numerators and denominators from the front.
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, _MOST_STEPS):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        ):
            d = 1.0 / _off_zero(1.0 + part * d)
            c = _off_zero(1.0 + part / c)
            fraction *= c * d
        if abs(c * d - 1.0) < _EXACT:
            break
    return front * fraction


def share_quantile(a: float, b: float, p: float) -> float:
    """Returns x for which I_x(a, b) is p."""
    return _solve(lambda x: share_below(a, b, x) - p, lambda x: math.exp(_log_density(a, b, x)), a / (a + b), 0.0, 1.0)


@lru_cache(maxsize=4096)  # a report asks for the same few again and again
def student_quantile(freedom: float, p: float) -> float:
    """Returns the value that Student's t with these degrees of freedom stays below with probability ``p``."""
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -student_quantile(freedom, 1.0 - p)
    tail, high = 1.0 - p, 1.0

    def beyond(t: float) -> float:
        return 0.5 * share_below(freedom / 2.0, 0.5, freedom / (freedom + t * t))

    def density(t: float) -> float:
        log_beta = math.lgamma(freedom / 2.0) + math.lgamma(0.5) - math.lgamma((freedom + 1.0) / 2.0)
        return math.exp(-(freedom + 1.0) / 2.0 * math.log1p(t * t / freedom) - log_beta) / math.sqrt(freedom)

    while beyond(high) > tail:
        high *= 2.0
    return _solve(lambda t: tail - beyond(t), density, high / 2.0, 0.0, high)


def binomial_tail(more_than: int, draws: int, chance: float) -> float:
    """Returns the probability that more than ``more_than`` of these draws are hits, each with this ``chance``."""
    return share_below(more_than + 1, draws - more_than, chance) if more_than < draws else 0.0


def normal_tail(z: float) -> float:
    """Returns the probability of a standard normal value above ``z``."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def _log_density(a: float, b: float, x: float) -> float:
    """The logarithm of the density of the beta distribution."""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_beta


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _solve(
    function: Callable[[float], float], slope: Callable[[float], float], x: float, low: float, high: float
) -> float:
    """Finds where a rising function is 0, by Newton's steps, halving where a step leaves the bracket."""
    for _ in range(200):
        value = function(x)
        low, high = (low, x) if value > 0.0 else (x, high)
        steep = slope(x)
        step = x - value / steep if steep > 0.0 else low
        after = step if low < step < high else 0.5 * (low + high)
        if abs(after - x) <= 1e-15 * abs(x):
            return after
        x = after
    return x
