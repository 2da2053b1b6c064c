"""Confidence intervals of means, shares and ratios, in closed form, and the distributions that they rest on.

SciPy has the distributions, but takes a quarter of what is installed, and a second to load; tests compare with it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.core.result import MeanInterval

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


# Intervals of a mean, of a share, and of the ratio of two ways of measuring the same thing.


_MOST_EXPONENT: Final = 700.0
"""The greatest exponent of e, near the range of a float: an interval that reaches so far says nothing anyway."""


def mean_interval(values: Sequence[float], confidence_ratio: float, asked_ratio: float) -> MeanInterval:
    """Computes mean ± t * s / sqrt(n): t of n - 1 degrees of freedom, s with n - 1 in the divisor.

    It holds the true mean with this confidence where the values are independent and normally distributed (Student, "The
    probable error of a mean", Biometrika 6, 1908). Fewer than two values have no interval.
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return MeanInterval(mean=mean, confidence_ratio=confidence_ratio, asked_ratio=asked_ratio)
    deviation = statistics.stdev(values)
    half = 0.0
    if deviation > 0.0:
        quantile = student_quantile(len(values) - 1, (1.0 + confidence_ratio) / 2.0)
        half = quantile * deviation / math.sqrt(len(values))
    width_ratio = 0.0 if half == 0.0 else 2.0 * half / abs(mean) if mean != 0.0 else None
    return MeanInterval(
        mean=mean,
        lower=mean - half,
        upper=mean + half,
        width_ratio=width_ratio,
        confidence_ratio=confidence_ratio,
        asked_ratio=asked_ratio,
        reached=width_ratio is not None and width_ratio <= asked_ratio,
    )


def share_interval(hits: int, draws: int, confidence: float = 0.95) -> tuple[float, float]:
    """Computes lower and upper bound, 0..1, of a probability seen as ``hits`` of ``draws`` (Clopper, Pearson 1934).

    It holds the true one with at least this confidence where the draws are independent. No draws give 0 to 1.
    """
    if not 0 <= hits <= draws:
        raise ValueError(f"{hits} of {draws} is no share")
    if draws == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2.0
    lower = 0.0 if hits == 0 else share_quantile(hits, draws - hits + 1, tail)
    upper = 1.0 if hits == draws else share_quantile(hits + 1, draws - hits, 1.0 - tail)
    return lower, upper


@frozen
class Chance:
    """A probability, 0..1, with the bounds of its interval."""

    value: float
    lower: float
    upper: float

    @property
    def estimate(self) -> float:
        """The value; the lower bound where it is 1, as nothing else was drawn."""
        return self.lower if self.value == 1.0 else self.value


def chance_of_all(hits: int, draws: int, number: int, confidence: float = 0.95) -> Chance:
    """Computes the chance that ``number`` of independent draws all hit, where ``hits`` of ``draws`` did.

    It is the share to the power of the number, and so are the bounds of its interval.
    """
    lower, upper = share_interval(hits, draws, confidence)
    return Chance((hits / draws) ** number, lower**number, upper**number)


class Agreement(StrEnum):
    """What the interval of a ratio says about a bound."""

    AGREE = "agree"
    DISAGREE = "do not agree"
    UNKNOWN = "cannot be told"


@frozen
class RatioInterval:
    """The geometric mean of the ratios of ``pairs``, and the interval that holds it with the confidence asked for."""

    ratio: float
    lower: float
    upper: float
    pairs: int


def ratio_interval(pairs: Sequence[tuple[float, float]], confidence_ratio: float) -> RatioInterval | None:
    """Computes the ratio second over first, by Student's t of the logarithms; None for fewer than two pairs.

    Both values of a pair are measured one right after the other, so that slow changes affect both and cancel out.
    Ratios are compared by their logarithms because 2 and 1/2 are equally far from 1. All values must be above 0.
    """
    if len(pairs) < 2:
        return None
    logarithms = [math.log(second / first) for first, second in pairs]
    middle, deviation = statistics.fmean(logarithms), statistics.stdev(logarithms)
    quantile = student_quantile(len(pairs) - 1, (1.0 + confidence_ratio) / 2.0)
    half = quantile * deviation / math.sqrt(len(pairs))
    return RatioInterval(
        math.exp(middle), math.exp(middle - half), math.exp(min(middle + half, _MOST_EXPONENT)), len(pairs)
    )


def agreement(found: RatioInterval, within_ratio: float) -> Agreement:
    """Judges the interval: AGREE where all of it lies within the bound of 1, either way, DISAGREE where none does."""
    least, most = 1.0 / (1.0 + within_ratio), 1.0 + within_ratio
    if least <= found.lower and found.upper <= most:
        return Agreement.AGREE
    if found.upper < least or found.lower > most:
        return Agreement.DISAGREE
    return Agreement.UNKNOWN
