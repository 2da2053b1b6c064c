"""Summaries of repeated numbers: centre, spread, and the ratio of two series with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from nicbench.model.base import Frozen


class SeriesSummary(Frozen):
    """A series in a few numbers. The deviation is of the population; ``None`` where the series is empty."""

    n: int
    mean: float | None
    median: float | None
    minimum: float | None
    maximum: float | None
    standard_deviation: float | None


class Ratio(Frozen):
    """The ratio of two medians with its bootstrap interval; ``seed`` makes the interval repeatable."""

    ratio: float
    lower: float
    upper: float
    confidence: float
    n_numerator: int
    n_denominator: int
    seed: int


def summarise(values: Sequence[float]) -> SeriesSummary:
    """Centre and spread of a series."""
    if not values:
        return SeriesSummary(n=0, mean=None, median=None, minimum=None, maximum=None, standard_deviation=None)
    return SeriesSummary(
        n=len(values),
        mean=math.fsum(values) / len(values),
        median=statistics.median(values),
        minimum=min(values),
        maximum=max(values),
        standard_deviation=statistics.pstdev(values),
    )


def relative_spread(values: Sequence[float]) -> float | None:
    """(maximum - minimum) / median: how far apart the series lies; ``None`` where that is not defined."""
    if not values or statistics.median(values) == 0:
        return None
    return (max(values) - min(values)) / abs(statistics.median(values))


def ratio_of_medians(
    numerator: Sequence[float],
    denominator: Sequence[float],
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Ratio:
    """Median over median; the interval is the percentile bootstrap, both series drawn anew independently."""
    if not numerator or not denominator:
        raise ValueError("a ratio needs values on both sides")
    if any(value <= 0 for value in denominator):
        raise ValueError("a ratio needs denominators above 0")
    generator = np.random.default_rng(seed)
    above = _resampled_medians(numerator, generator, resamples)
    below = _resampled_medians(denominator, generator, resamples)
    tail = (1.0 - confidence) / 2
    lower, upper = np.quantile(above / below, [tail, 1.0 - tail])
    return Ratio(
        ratio=statistics.median(numerator) / statistics.median(denominator),
        lower=float(lower),
        upper=float(upper),
        confidence=confidence,
        n_numerator=len(numerator),
        n_denominator=len(denominator),
        seed=seed,
    )


def _resampled_medians(
    values: Sequence[float], generator: np.random.Generator, resamples: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    drawn = generator.choice(np.asarray(values, dtype=np.float64), size=(resamples, len(values)))
    medians: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.median(drawn, axis=1)
    return medians
