"""Confidence intervals by the bootstrap, bias-corrected and accelerated (BCa), seeded. Pure.

Efron, "Better bootstrap confidence intervals", JASA 82, 1987; Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, chapter 14; of several samples Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section
5.3.2. Where an interval cannot be had, or is worth less than it seems, its notes say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import numpy as np

from nicbench.stats.resampling import RESAMPLES, Floats, middle_places, places
from nicbench.stats.sample import Values, known

Statistic = Callable[[Floats], Floats]
"""Of each row of a table of sorted or drawn values; the order within a row must not matter."""
_NORMAL: Final = NormalDist()
_SAME: Final = 1e-12
"""Relatively: two ways to round one number."""
_SAME_LOGARITHM: Final = 1e-13
"""Absolutely: the same of logarithms."""
_MOST_LOGARITHM: Final = 700.0
"""Of a ratio, near the end of what a float holds."""


class Method(StrEnum):
    """How an interval came about."""

    BCA = "BCa bootstrap"
    PERCENTILE = "percentile bootstrap"
    NONE = "no interval"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval about it. ``lower`` and ``upper`` are None where there is none; ``notes`` say why.

    ``notes`` also name what makes it worth less: few values, no spread, a correction that could not be computed.
    """

    estimate: float | None
    lower: float | None
    upper: float | None
    confidence_ratio: float
    method: Method
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()

    def holds(self, value: float) -> bool | None:
        """None where there is no interval."""
        return None if self.lower is None or self.upper is None else self.lower <= value <= self.upper


@dataclass(frozen=True, slots=True)
class Asked:
    """What intervals are asked for: the confidence (0..1), how many resamples (a multiple of 4), and of which seed."""

    seed: int
    confidence_ratio: float = 0.95
    resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_ratio < 1.0:
            raise ValueError(f"a confidence is above 0 and below 1, not {self.confidence_ratio}")
        if self.resamples < 100 or self.resamples % 4:
            raise ValueError(f"resamples come in fours and are at least 100, not {self.resamples}")

    @property
    def level_ratio(self) -> float:
        """Of tests: 1 - confidence, 5 % of 95 %; rounded, for 1 - 0.95 is 0.05 only nearly."""
        return round(1.0 - self.confidence_ratio, 12)

    def none(self, estimate: float | None, note: str) -> Interval:
        """No interval, and why."""
        return Interval(estimate, None, None, self.confidence_ratio, Method.NONE, self.resamples, self.seed, (note,))


def of_statistic(values: Values, statistic: Statistic, asked: Asked) -> Interval:
    """Of any statistic of one sample: the mean, a quantile, a deviation. Values that are not known are left out."""
    ordered = _ordered(values)
    if len(ordered) < 2:
        return asked.none(float(statistic(ordered[None, :])[0]) if len(ordered) else None, _too_few(len(ordered)))
    drawn = [statistic(ordered[block]) for block in places(len(ordered), asked.resamples, asked.seed)]
    without = np.array([np.delete(ordered, place) for place in range(len(ordered))])
    estimate = float(statistic(ordered[None, :])[0])
    return _bca(estimate, np.concatenate(drawn), [statistic(without)], asked)


def of_mean(values: Values, asked: Asked) -> Interval:
    """Of the mean of one sample."""
    return of_statistic(values, lambda table: np.asarray(table.mean(axis=-1), dtype=np.float64), asked)


def of_median(values: Values, asked: Asked) -> Interval:
    """Of the median of one sample; so many values as ``few`` says cannot reach the confidence."""
    return _of_median(values, asked)


def ratio_of_medians(first: Values, second: Values, asked: Asked) -> Interval:
    """Median of ``first`` over that of ``second``, two independent samples, both drawn anew.

    The interval is made of the ratio's logarithm: changing sides gives exactly its inverse, another unit the same.
    Only of values above 0.
    """
    one, other = _ordered(first), _ordered(second)
    if not (len(one) and len(other)):
        return asked.none(None, _too_few(0))
    if one[0] <= 0.0 or other[0] <= 0.0:
        return asked.none(None, "a ratio needs values above 0")
    return _exponential(_of_two(one, other, asked, np.log, _SAME_LOGARITHM))


def difference_of_medians(first: Values, second: Values, asked: Asked) -> Interval:
    """Median of ``first`` less that of ``second``, two independent samples; also where values are 0 or below."""
    one, other = _ordered(first), _ordered(second)
    if not (len(one) and len(other)):
        return asked.none(None, _too_few(0))
    return _of_two(one, other, asked, lambda medians: medians)


def paired_ratio(pairs: Sequence[tuple[float | None, float | None]], asked: Asked) -> Interval:
    """The ratio (first over second) of the median pair; pairs that are measured one after the other are drawn together.

    What changes slowly is in both of a pair and falls out. It is the median of the ratios' logarithms, so of an even
    number of pairs the geometric mean of the two in the middle. Pairs without both values are left out; only of
    values above 0.
    """
    whole = whole_pairs(pairs)
    if any(value <= 0.0 for pair in whole for value in pair):
        return asked.none(None, "a ratio needs values above 0")
    return _exponential(_of_median([math.log(one) - math.log(other) for one, other in whole], asked, _SAME_LOGARITHM))


def paired_difference(pairs: Sequence[tuple[float | None, float | None]], asked: Asked) -> Interval:
    """The difference (first less second) of the median pair; also where values are 0 or below."""
    return of_median([one - other for one, other in whole_pairs(pairs)], asked)


def whole_pairs(pairs: Sequence[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    """Those of which both values are known."""
    found = (known(pair) for pair in pairs)
    return [(pair[0], pair[1]) for pair in found if len(pair) == 2]


def few(sizes: Sequence[int], confidence_ratio: float) -> str | None:
    """Of so many values not even the whole range holds the median with this confidence: 1 - 2^(1 - n) at most.

    That is of any distribution (Conover, "Practical Nonparametric Statistics", section 3.2): 94 % of 5 values, 97 % of
    6.
    """
    n = min(sizes)
    reached = 1.0 - 2.0 ** (1 - n)
    if reached >= confidence_ratio:
        return None
    return (
        f"{n} values: even their whole range holds the median with {100.0 * reached:.4g} % at most, whatever is asked"
    )


def _of_median(values: Values, asked: Asked, noise: float = 0.0) -> Interval:
    ordered = _ordered(values)
    if len(ordered) < 2:
        return asked.none(float(ordered[0]) if len(ordered) else None, _too_few(len(ordered)))
    lower, upper = middle_places(len(ordered), asked.resamples, asked.seed, mirrored=True)
    drawn = (ordered[lower] + ordered[upper]) / 2.0
    found = _bca(_median(ordered), drawn, [_without_each(ordered)], asked, noise)
    return _noted(found, few([len(ordered)], asked.confidence_ratio))


def _of_two(
    one: Floats, other: Floats, asked: Asked, scale: Callable[[Floats], Floats], noise: float = 0.0
) -> Interval:
    """Both sides use the same draws, one half a turn later: to change the sides is to turn the signs."""
    estimate = float(scale(np.array([_median(one)]))[0] - scale(np.array([_median(other)]))[0])
    if min(len(one), len(other)) < 2:
        return asked.none(estimate, _too_few(1))
    medians = []
    for ordered in (one, other):
        lower, upper = middle_places(len(ordered), asked.resamples, asked.seed, mirrored=False)
        medians.append((ordered[lower] + ordered[upper]) / 2.0)
    drawn = scale(medians[0]) - scale(np.roll(medians[1], asked.resamples // 2))
    found = _bca(estimate, drawn, [scale(_without_each(one)), -scale(_without_each(other))], asked, noise)
    return _noted(found, few([len(one), len(other)], asked.confidence_ratio))


def _bca(estimate: float, drawn: Floats, without_each: Sequence[Floats], asked: Asked, noise: float = 0.0) -> Interval:
    """``without_each``: for each sample the statistic without each of its values, up to a constant of that sample.

    Differences up to ``noise``, or so small a share, come of rounding and are none.

    Lower and upper are the quantiles of ``drawn`` at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), where z0 corrects the bias
    and a is the acceleration (Efron and Tibshirani 1993, equations 14.9 to 14.15).
    """
    tail = (1.0 - asked.confidence_ratio) / 2.0
    tails, method, notes = (tail, 1.0 - tail), Method.BCA, []
    close = max(noise, _SAME * max(abs(estimate), float(np.abs(drawn).max())))
    below = float(np.mean(drawn < estimate - close) + np.mean(np.abs(drawn - estimate) <= close) / 2.0)
    acceleration = _acceleration(without_each, noise)
    if drawn.max() - drawn.min() <= close:
        notes.append("no resample differs: the spread of the values shows nothing of chance")
        drawn = np.full_like(drawn, estimate)
    elif not 0.0 < below < 1.0:
        method = Method.PERCENTILE
        notes.append("every resample lies on one side of the estimate: the bias cannot be corrected")
    else:
        if acceleration is None:
            notes.append("no value by itself moves the estimate: corrected for bias alone, the acceleration is 0")
        corrected = [_corrected(probability, below, acceleration or 0.0) for probability in tails]
        if corrected[0] is None or corrected[1] is None:
            method = Method.PERCENTILE
            notes.append("the acceleration is too strong for this confidence: neither bias nor skew is corrected")
        else:
            tails = (corrected[0], corrected[1])
    lower, upper = _quantiles(drawn, tails)
    return Interval(estimate, lower, upper, asked.confidence_ratio, method, asked.resamples, asked.seed, tuple(notes))


def _quantiles(drawn: Floats, probabilities: tuple[float, float]) -> tuple[float, float]:
    """By the mid-distribution: P(below) + P(equal) / 2, with straight lines between the values.

    Parzen, "Quantile probability and statistical data modeling", Statistical Science 19, 2004. Resampled medians take
    few values: plain quantiles jump between them, and of 15 values they hold the median in 87 % instead of 95 %, these
    in 96 %. Where no two resamples are equal they are the plain ones.
    """
    values, counts = np.unique(drawn, return_counts=True)
    below = (np.cumsum(counts) - counts / 2.0) / len(drawn)
    lower, upper = np.interp(probabilities, below, values)
    return float(lower), float(upper)


def _corrected(probability: float, below: float, acceleration: float) -> float | None:
    bias = _NORMAL.inv_cdf(below)
    shifted = bias + _NORMAL.inv_cdf(probability)
    divisor = 1.0 - acceleration * shifted
    return _NORMAL.cdf(bias + shifted / divisor) if divisor > 0.0 else None


def _acceleration(without_each: Sequence[Floats], noise: float) -> float | None:
    """The skewness of the jackknife; None where it moves nowhere.

    a = sum of u^3 / n^3 over 6 (sum of u^2 / n^2)^1.5, u = (n - 1)(mean of the jackknife - each), summed over the
    samples (Davison and Hinkley 1997, section 5.3.2); of one sample that is equation 14.15 of Efron and Tibshirani.
    """
    moves = []
    for values in without_each:
        moved = (len(values) - 1.0) * (values.mean() - values) / len(values)
        moved[np.abs(moved) <= max(noise, _SAME * float(np.abs(values).max()))] = 0.0
        moves.append(moved)
    every = np.concatenate(moves)
    farthest = float(np.abs(every).max())
    if farthest == 0.0:
        return None
    every /= farthest  # so that cubes neither overflow nor vanish
    return float((every**3).sum() / (6.0 * (every**2).sum() ** 1.5))


def _exponential(found: Interval) -> Interval:
    """An interval of logarithms as one of ratios."""
    logarithms = (found.estimate, found.lower, found.upper)
    if any(end is not None and abs(end) > _MOST_LOGARITHM for end in logarithms):
        note = "the ratio is beyond what can be computed with"
        return replace(found, estimate=None, lower=None, upper=None, method=Method.NONE, notes=(note,))
    ends = [None if end is None else math.exp(end) for end in logarithms]
    return replace(found, estimate=ends[0], lower=ends[1], upper=ends[2])


def _noted(found: Interval, note: str | None) -> Interval:
    return found if note is None else replace(found, notes=(*found.notes, note))


def _too_few(n: int) -> str:
    return "no value is known" if n == 0 else "one value alone says nothing of how it varies"


def _ordered(values: Values) -> Floats:
    return np.sort(np.array(known(values), dtype=np.float64))


def _median(ordered: Floats) -> float:
    return float((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0)


def _without_each(ordered: Floats) -> Floats:
    """The medians of all but one of the sorted values, in their order."""
    n = len(ordered)
    left = np.arange(n - 1)
    low, high = left[(n - 2) // 2], left[(n - 1) // 2]
    place = np.arange(n)
    return np.asarray((ordered[low + (place <= low)] + ordered[high + (place <= high)]) / 2.0, dtype=np.float64)
