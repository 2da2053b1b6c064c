"""Confidence intervals by the bootstrap, bias-corrected and accelerated (BCa), from seeded draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nicbench.core.frozen import frozen
from nicbench.core.units import format_digits
from nicbench.stats.sample import Values, known_numbers

# SciPy's ``bootstrap`` is not used: it has no quantiles of the mid-distribution and no mirrored draws (which make an
# interval independent of signs and sides), and its draws may change from version to version.


# The draws of a bootstrap: which values of a sample each resample has. The same seed gives the same draws.
#
# Values are sorted before they are drawn from, so that their order does not matter, and samples of equal size share
# their draws.


Floats = NDArray[np.float64]
Places = NDArray[np.int64]
RESAMPLES: Final = 10_000
"""More than the 1000 to 2000 that Efron and Tibshirani ("An Introduction to the Bootstrap", 1993) use for intervals."""
_MOST_AT_ONCE: Final = 4_000_000
"""The most draws made at once, which bounds the memory of large samples (32 MB)."""


def draw_places(n: int, resamples: int, seed: int) -> Iterator[Places]:
    """Yields blocks of rows; each row is one resample: ``n`` places (0..n - 1) drawn with replacement.

    The second half of the rows mirrors the first (the least value for the greatest): an antithetic bootstrap (Hall,
    "Antithetic resampling for the bootstrap", Biometrika 76, 1989), in which negating all values exactly negates the
    interval.
    """
    for block in _draw_new_places(n, resamples // 2, seed):
        yield block
    for block in _draw_new_places(n, resamples // 2, seed):
        yield n - 1 - block


@lru_cache(maxsize=64)
def middle_places(n: int, resamples: int, seed: int, *, mirrored: bool) -> tuple[Places, Places]:
    """Returns, for each resample of ``n`` sorted values, the places of its two middle ones (equal where n is odd)."""
    middles = ((n - 1) // 2, n // 2)
    blocks = draw_places(n, resamples, seed) if mirrored else _draw_new_places(n, resamples, seed)
    found = [np.partition(block, middles, axis=1)[:, middles] for block in blocks]
    both = np.concatenate(found)
    lower, upper = both[:, 0].copy(), both[:, 1].copy()
    lower.flags.writeable = upper.flags.writeable = False
    return lower, upper


def _draw_new_places(n: int, rows: int, seed: int) -> Iterator[Places]:
    # RandomState: its draws never change (NumPy's NEP 19), those of a Generator may from version to version.
    state = np.random.RandomState([seed % 2**32, (seed >> 32) % 2**32, n])
    at_once = max(1, _MOST_AT_ONCE // n)
    for begin in range(0, rows, at_once):
        yield np.floor(state.random_sample((min(at_once, rows - begin), n)) * n).astype(np.int64)


Statistic = Callable[[Floats], Floats]
"""Computes one number for each row of a table of values; the order within a row must not matter."""
_NORMAL: Final = NormalDist()
_SAME: Final = 1e-12
"""Numbers that differ relatively by less than this differ by rounding only."""
_SAME_LOGARITHM: Final = 1e-13
"""Logarithms that differ absolutely by less than this differ by rounding only."""
_MOST_LOGARITHM: Final = 700.0
"""The greatest logarithm of a ratio that a float can hold, nearly."""


class Method(StrEnum):
    """How an interval was computed."""

    BCA = "BCa bootstrap"
    PERCENTILE = "percentile bootstrap"
    NONE = "no interval"


@frozen
class Interval:
    """An estimate with its interval; ``lower`` and ``upper`` are ``None`` without an interval, and ``notes`` say why.

    ``notes`` also name what limits the interval: few values, no spread, a correction that could not be computed.
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
        """Returns whether the interval holds this value; None without an interval."""
        return None if self.lower is None or self.upper is None else self.lower <= value <= self.upper


@frozen
class IntervalSpec:
    """How intervals are to be computed: confidence (0..1), number of resamples (a multiple of 4), and seed."""

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
        """The level of tests, 1 - confidence, such as 0.05; rounded, because 1 - 0.95 is not exactly 0.05."""
        return round(1.0 - self.confidence_ratio, 12)

    def without_interval(self, estimate: float | None, note: str) -> Interval:
        """Returns an estimate without an interval, and the reason."""
        return Interval(estimate, None, None, self.confidence_ratio, Method.NONE, self.resamples, self.seed, (note,))


def bootstrap_statistic(values: Values, statistic: Statistic, spec: IntervalSpec) -> Interval:
    """Computes the interval of any statistic of one sample; unknown values are left out."""
    ordered = _sort_known(values)
    if len(ordered) < 2:
        return spec.without_interval(
            float(statistic(ordered[None, :])[0]) if len(ordered) else None, _explain_too_few(len(ordered))
        )
    drawn = [statistic(ordered[block]) for block in draw_places(len(ordered), spec.resamples, spec.seed)]
    without = np.array([np.delete(ordered, place) for place in range(len(ordered))])
    estimate = float(statistic(ordered[None, :])[0])
    return _bca_interval(estimate, np.concatenate(drawn), [statistic(without)], spec)


def bootstrap_mean(values: Values, spec: IntervalSpec) -> Interval:
    """Computes the interval of the mean of one sample."""
    return bootstrap_statistic(values, lambda table: np.asarray(table.mean(axis=-1), dtype=np.float64), spec)


def bootstrap_median(values: Values, spec: IntervalSpec) -> Interval:
    """Computes the interval of the median of one sample; a note says where there are too few values."""
    return _median_interval(values, spec)


def ratio_of_medians(first: Values, second: Values, spec: IntervalSpec) -> Interval:
    """Computes the interval of the median of ``first`` over that of ``second``, two independent samples above 0.

    It is computed from the logarithm of the ratio, so that swapping the sides gives exactly the inverse, and the unit
    does not matter.
    """
    one, other = _sort_known(first), _sort_known(second)
    if not (len(one) and len(other)):
        return spec.without_interval(None, _explain_too_few(0))
    if one[0] <= 0.0 or other[0] <= 0.0:
        return spec.without_interval(None, "a ratio needs values above 0")
    return _exponential(_two_sample_interval(one, other, spec, np.log, _SAME_LOGARITHM))


def difference_of_medians(first: Values, second: Values, spec: IntervalSpec) -> Interval:
    """Computes the interval of the median of ``first`` less that of ``second``; values may be 0 or below."""
    one, other = _sort_known(first), _sort_known(second)
    if not (len(one) and len(other)):
        return spec.without_interval(None, _explain_too_few(0))
    return _two_sample_interval(one, other, spec, lambda medians: medians)


def paired_ratio(pairs: Sequence[tuple[float | None, float | None]], spec: IntervalSpec) -> Interval:
    """Computes the interval of the ratio (first over second) of the median pair; values must be above 0.

    The two values of a pair, measured one after the other, are drawn together, so that slow changes cancel out. The
    estimate is the median of the logarithms of the ratios: of an even number of pairs the geometric mean of the two in
    the middle. Pairs without both values are left out.
    """
    whole = whole_pairs(pairs)
    if any(value <= 0.0 for pair in whole for value in pair):
        return spec.without_interval(None, "a ratio needs values above 0")
    return _exponential(
        _median_interval([math.log(one) - math.log(other) for one, other in whole], spec, _SAME_LOGARITHM)
    )


def paired_difference(pairs: Sequence[tuple[float | None, float | None]], spec: IntervalSpec) -> Interval:
    """Computes the interval of the difference of the median pair; values may be 0 or below."""
    return bootstrap_median([one - other for one, other in whole_pairs(pairs)], spec)


def whole_pairs(pairs: Sequence[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    """Returns the pairs of which both values are known."""
    found = (known_numbers(pair) for pair in pairs)
    return [(pair[0], pair[1]) for pair in found if len(pair) == 2]


def explain_few_values(sizes: Sequence[int], confidence_ratio: float) -> str | None:
    """Says that even the whole range of so few values holds the median with too little confidence; None where it
    suffices.

    The confidence is 1 - 2^(1 - n) at most, for any distribution (Conover, "Practical Nonparametric Statistics",
    section 3.2): 94 % for 5 values, 97 % for 6.
    """
    n = min(sizes)
    reached = 1.0 - 2.0 ** (1 - n)
    if reached >= confidence_ratio:
        return None
    most = format_digits(100.0 * reached, 4)
    return f"{n} values: even their full range contains the median with a confidence of at most {most} %"


def _median_interval(values: Values, spec: IntervalSpec, noise: float = 0.0) -> Interval:
    ordered = _sort_known(values)
    if len(ordered) < 2:
        return spec.without_interval(float(ordered[0]) if len(ordered) else None, _explain_too_few(len(ordered)))
    lower, upper = middle_places(len(ordered), spec.resamples, spec.seed, mirrored=True)
    drawn = (ordered[lower] + ordered[upper]) / 2.0
    found = _bca_interval(_median(ordered), drawn, [_leave_one_out(ordered)], spec, noise)
    return _add_note(found, explain_few_values([len(ordered)], spec.confidence_ratio))


def _two_sample_interval(
    one: Floats, other: Floats, spec: IntervalSpec, scale: Callable[[Floats], Floats], noise: float = 0.0
) -> Interval:
    """Computes the interval for two samples, which share their draws, one half a turn later: swapping sides swaps
    signs.
    """
    estimate = float(scale(np.array([_median(one)]))[0] - scale(np.array([_median(other)]))[0])
    if min(len(one), len(other)) < 2:
        return spec.without_interval(estimate, _explain_too_few(1))
    medians = []
    for ordered in (one, other):
        lower, upper = middle_places(len(ordered), spec.resamples, spec.seed, mirrored=False)
        medians.append((ordered[lower] + ordered[upper]) / 2.0)
    drawn = scale(medians[0]) - scale(np.roll(medians[1], spec.resamples // 2))
    found = _bca_interval(estimate, drawn, [scale(_leave_one_out(one)), -scale(_leave_one_out(other))], spec, noise)
    return _add_note(found, explain_few_values([len(one), len(other)], spec.confidence_ratio))


def _bca_interval(
    estimate: float, drawn: Floats, without_each: Sequence[Floats], spec: IntervalSpec, noise: float = 0.0
) -> Interval:
    """Computes the BCa interval; ``without_each`` has each sample's statistic without each of its values.

    ``without_each`` may be off by a constant for each sample. Differences up to ``noise``, or up to a tiny relative
    amount, are rounding errors and count as none.

    Lower and upper are the quantiles of ``drawn`` at Phi(z0 + (z0 + z) / (1 - a (z0 + z))), where z0 corrects the bias
    and a is the acceleration (Efron and Tibshirani 1993, equations 14.9 to 14.15).
    """
    tail = (1.0 - spec.confidence_ratio) / 2.0
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
        corrected = [_correct_probability(probability, below, acceleration or 0.0) for probability in tails]
        if corrected[0] is None or corrected[1] is None:
            method = Method.PERCENTILE
            notes.append("the acceleration is too strong for this confidence: neither bias nor skew is corrected")
        else:
            tails = (corrected[0], corrected[1])
    lower, upper = _quantiles(drawn, tails)
    return Interval(estimate, lower, upper, spec.confidence_ratio, method, spec.resamples, spec.seed, tuple(notes))


def _quantiles(drawn: Floats, probabilities: tuple[float, float]) -> tuple[float, float]:
    """Computes quantiles of the mid-distribution, P(below) + P(equal) / 2, interpolated linearly between the values.

    Parzen, "Quantile probability and statistical data modeling", Statistical Science 19, 2004. Resampled medians take
    few values and plain quantiles jump between them: for 15 values they hold the median in 87 % of cases instead of 95
    %, these in 96 %. Where no two resamples are equal both agree.
    """
    values, counts = np.unique(drawn, return_counts=True)
    below = (np.cumsum(counts) - counts / 2.0) / len(drawn)
    lower, upper = np.interp(probabilities, below, values)
    return float(lower), float(upper)


def _correct_probability(probability: float, below: float, acceleration: float) -> float | None:
    bias = _NORMAL.inv_cdf(below)
    shifted = bias + _NORMAL.inv_cdf(probability)
    divisor = 1.0 - acceleration * shifted
    return _NORMAL.cdf(bias + shifted / divisor) if divisor > 0.0 else None


def _acceleration(without_each: Sequence[Floats], noise: float) -> float | None:
    """Computes the skewness of the jackknife; None where no value moves the statistic.

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
    """Converts an interval of logarithms to one of ratios."""
    logarithms = (found.estimate, found.lower, found.upper)
    if any(end is not None and abs(end) > _MOST_LOGARITHM for end in logarithms):
        note = "the ratio is beyond what can be computed with"
        return replace(found, estimate=None, lower=None, upper=None, method=Method.NONE, notes=(note,))
    ends = [None if end is None else math.exp(end) for end in logarithms]
    return replace(found, estimate=ends[0], lower=ends[1], upper=ends[2])


def _add_note(found: Interval, note: str | None) -> Interval:
    return found if note is None else replace(found, notes=(*found.notes, note))


def _explain_too_few(n: int) -> str:
    return "no value is known" if n == 0 else "one value alone says nothing of how it varies"


def _sort_known(values: Values) -> Floats:
    return np.sort(np.array(known_numbers(values), dtype=np.float64))


def _median(ordered: Floats) -> float:
    return float((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0)


def _leave_one_out(ordered: Floats) -> Floats:
    """Returns the medians of all sorted values but one, for each one left out."""
    n = len(ordered)
    left = np.arange(n - 1)
    low, high = left[(n - 2) // 2], left[(n - 1) // 2]
    place = np.arange(n)
    return np.asarray((ordered[low + (place <= low)] + ordered[high + (place <= high)]) / 2.0, dtype=np.float64)
