"""What a sample comes to: how many values, their centre, their spread; unknown ones are counted, never taken for 0.
Pure.

A *sample* is one value of each of several runs. ``None`` is unknown, and so is what is no finite number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Values = Sequence[float | None]
MOST: Final = 1e150
"""Of a value, either way: beyond it squares overflow. No measurement comes near; what does is not known."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All in the unit of the values, but for the coefficient. None where there are too few values to say.

    ``sample_standard_deviation`` has n - 1 in the divisor (the runs stand for all runs that could be made),
    ``population_standard_deviation`` has n (the runs are all there is). The quartiles are type 7 of Hyndman and Fan,
    "Sample quantiles in statistical packages", The American Statistician 50, 1996: the one of R, NumPy and
    spreadsheets. ``coefficient_of_variation`` is the sample standard deviation over the absolute mean; None of a mean
    of 0.
    """

    n: int
    unknown: int
    mean: float | None = None
    median: float | None = None
    sample_standard_deviation: float | None = None
    population_standard_deviation: float | None = None
    coefficient_of_variation: float | None = None
    minimum: float | None = None
    lower_quartile: float | None = None
    upper_quartile: float | None = None
    maximum: float | None = None

    @property
    def interquartile_range(self) -> float | None:
        """From the lower to the upper quartile: the width of the middle half."""
        if self.lower_quartile is None or self.upper_quartile is None:
            return None
        return self.upper_quartile - self.lower_quartile

    @property
    def is_constant(self) -> bool:
        """Whether all of two or more values are the same: the runs show nothing of chance then."""
        return self.n > 1 and self.minimum == self.maximum


def known(values: Values) -> tuple[float, ...]:
    """Those that are finite numbers, in their order."""
    return tuple(float(value) for value in values if value is not None and abs(value) <= MOST)


def describe(values: Values) -> Sample:
    """One value has a mean, a median and quartiles, and no spread: that it has none is not known."""
    found = sorted(known(values))
    unknown = len(values) - len(found)
    if not found:
        return Sample(n=0, unknown=unknown)
    mean = _mean(found)
    deviation = standard_deviation(found) if len(found) > 1 else None
    lower, _, upper = statistics.quantiles(found, n=4, method="inclusive") if len(found) > 1 else found * 3
    return Sample(
        n=len(found),
        unknown=unknown,
        mean=mean,
        median=statistics.median(found),
        sample_standard_deviation=deviation,
        population_standard_deviation=math.sqrt(_squares(found) / len(found)) if len(found) > 1 else None,
        coefficient_of_variation=None if deviation is None or mean == 0.0 else deviation / abs(mean),
        minimum=found[0],
        lower_quartile=lower,
        upper_quartile=upper,
        maximum=found[-1],
    )


def standard_deviation(values: Sequence[float]) -> float:
    """Of two known values at least, with n - 1 in the divisor."""
    return math.sqrt(_squares(values) / (len(values) - 1))


def _squares(values: Sequence[float]) -> float:
    """In two passes and without loss; the exact fractions of ``statistics`` would be most of a comparison's time."""
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _mean(values: Sequence[float]) -> float:
    """Within their range, out of which rounding may lift it."""
    return min(max(statistics.fmean(values), min(values)), max(values))
