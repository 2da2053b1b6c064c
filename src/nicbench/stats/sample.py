"""Describes samples: number, centre, spread and outliers, and the span of a rate over all runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from enum import StrEnum
from statistics import median
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.result import Bounded

Values = Sequence[float | None]
MOST: Final = 1e150
"""The greatest absolute value that counts as known: the squares of greater ones overflow."""


@frozen
class Sample:
    """A sample's statistics, all in the unit of the values but the coefficient; None where there are too few values.

    ``sample_standard_deviation`` has n - 1 in the divisor (the runs are a sample of all possible runs),
    ``population_standard_deviation`` has n (the runs are the whole population). The quartiles are type 7 of Hyndman and
    Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996: the one of R, NumPy and
    spreadsheets. ``coefficient_of_variation`` is the sample standard deviation over the absolute mean; None for a mean
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
    def is_constant(self) -> bool:
        """Whether all of two or more values are equal, so that the runs show no variation."""
        return self.n > 1 and self.minimum == self.maximum


def known_numbers(values: Values) -> tuple[float, ...]:
    """Returns the values that are finite numbers, in the given order."""
    return tuple(float(value) for value in values if value is not None and abs(value) <= MOST)


def describe(values: Values) -> Sample:
    """Computes a sample's statistics. A single value has a mean, a median and quartiles, but its spread is unknown."""
    found = sorted(known_numbers(values))
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
    """Computes the sample standard deviation (n - 1) of at least two known values."""
    return math.sqrt(_squares(values) / (len(values) - 1))


def _squares(values: Sequence[float]) -> float:
    """Sums the squared deviations in two passes, without loss; ``statistics``' exact fractions would be far slower."""
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _mean(values: Sequence[float]) -> float:
    """Computes the mean, limited to the range of the values, which rounding could otherwise leave."""
    return min(max(statistics.fmean(values), min(values)), max(values))


# Outliers are named by a rule and shown, and never removed: tables and intervals include them.


FENCE: Final = 1.5
"""How many interquartile ranges beyond a quartile a fence lies: the inner fences of Tukey, 1977."""
HIGHEST_SCORE: Final = 3.5
"""Iglewicz and Hoaglin, "How to Detect and Handle Outliers", ASQC 1993."""
_NORMAL: Final = 0.6745
"""The median absolute deviation of the normal distribution, in standard deviations, as the authors round it."""
_FEWEST: Final = 4
"""In smaller samples no value can lie outside Tukey's fences, however far away it is."""


class Rule(StrEnum):
    """The rule by which a value is called an outlier; the value is its description for a report."""

    TUKEY = "Tukey's fences: more than 1.5 interquartile ranges beyond a quartile"
    MODIFIED_Z = "modified z-score of Iglewicz and Hoaglin: 0.6745 x distance from the median / MAD above 3.5"


@frozen
class Outlier:
    """A value called an outlier; ``place`` is its index in the values as given, unknown ones included."""

    place: int
    value: float


@frozen
class Outliers:
    """The values outside ``lower`` to ``upper`` by ``rule``; ``note`` says where the rule is of little or no use."""

    rule: Rule
    found: tuple[Outlier, ...]
    lower: float | None = None
    upper: float | None = None
    note: str | None = None


def outliers(values: Values, rule: Rule = Rule.TUKEY) -> Outliers:
    """Finds the values outside the bounds, which themselves count as inside.

    Where all values of the middle half are equal, every other value is outside, and the note says so.
    """
    numbers = known_numbers(values)
    if len(numbers) < _FEWEST:
        return Outliers(rule, (), note=f"of fewer than {_FEWEST} values none can be called an outlier")
    lower, upper = _fences(numbers) if rule is Rule.TUKEY else _scores(numbers)
    outside = tuple(
        Outlier(place, float(value))
        for place, value in enumerate(values)
        if value is not None and known_numbers((value,)) and not lower <= value <= upper
    )
    note = "the middle values are all the same: every other value is outside, however near" if lower == upper else None
    return Outliers(rule, outside, lower, upper, note)


def _fences(values: Sequence[float]) -> tuple[float, float]:
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    reach = FENCE * (upper - lower)
    return lower - reach, upper + reach


def _scores(values: Sequence[float]) -> tuple[float, float]:
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    reach = HIGHEST_SCORE * deviation / _NORMAL
    return middle - reach, middle + reach


# The span of a rate over all runs of a configuration.


@frozen
class Span:
    """From the lowest load that a run passed to the highest that one failed; ``upper`` is infinite where none
    failed.
    """

    lower: float
    upper: float

    def is_above(self, other: Span) -> bool:
        """Returns whether every rate in it exceeds every rate in the other; otherwise no difference is shown."""
        return self.lower > other.upper

    def times(self, other: Span) -> tuple[float, float]:
        """Returns the lower and upper bound of the ratio to the other's rate (infinite where it is not known)."""
        least = 0.0 if math.isinf(other.upper) or other.upper == 0.0 else self.lower / other.upper
        most = math.inf if other.lower == 0.0 or math.isinf(self.upper) else self.upper / other.lower
        return least, most


def span_of(rates: Iterable[Bounded]) -> Span | None:
    """Returns the span over all runs; None where the rate of a run is entirely unknown."""
    bounds = [bounds_of(rate) for rate in rates]
    known = without_none(bounds)
    if not known or len(known) < len(bounds):
        return None
    return Span(min(lower for lower, _ in known), max(upper for _, upper in known))


def bounds_of(rate: Bounded) -> tuple[float, float] | None:
    """Returns lower and upper bound of a rate. A rate that no load exceeded has no upper bound below the line rate."""
    if rate.value is None:
        return None if rate.upper is None else (0.0, rate.upper)
    lower = rate.value if rate.lower is None else rate.lower
    if rate.upper is not None:
        return lower, rate.upper
    return lower, (rate.value if rate.is_line_rate else math.inf)


@frozen
class Series:
    """Values in the order in which they were measured. ``times`` (any unit) rise; without them runs count 0, 1, 2."""

    name: str
    values: Values
    times: Sequence[float] | None = None


# What sums, means, medians and standard deviations can be where each input is known to lie in a range.
#
# Printed figures are known to half a unit of their last digit. A statistic beside them is possible where some numbers
# that round to what is printed have it.


_BISECTIONS: Final = 80
"""Halvings of the span of the inputs: beyond the digits of a float."""


@frozen
class Range:
    """All numbers from ``least`` to ``most``."""

    least: float
    most: float

    @property
    def middle(self) -> float:
        """The number halfway between both ends."""
        return (self.least + self.most) / 2.0

    def overlaps(self, other: Range, slack: float = 0.0) -> bool:
        """Says whether some number is in both, where each may be off by ``slack``."""
        return self.least <= other.most + slack and other.least <= self.most + slack

    def intersect(self, other: Range) -> Range:
        """Returns the numbers that are in both, which must overlap; where they only touch, the place where they do."""
        least, most = max(self.least, other.least), min(self.most, other.most)
        return Range(least, most) if least <= most else Range((least + most) / 2.0, (least + most) / 2.0)

    def scale(self, factor: float) -> Range:
        """Returns the range of each of its numbers times a positive factor."""
        return Range(self.least * factor, self.most * factor)


def find_sum_range(inputs: Sequence[Range]) -> Range:
    """Returns what the sum of numbers in these ranges can be."""
    return Range(math.fsum(one.least for one in inputs), math.fsum(one.most for one in inputs))


def find_median_range(inputs: Sequence[Range]) -> Range:
    """Returns what their median can be: it never falls where an input rises."""
    return Range(median(one.least for one in inputs), median(one.most for one in inputs))


def find_deviation_range(inputs: Sequence[Range], divisor: int) -> Range:
    """Returns what the root of the sum of squared distances from the mean, divided by ``divisor``, can be.

    With ranges of equal width both ends are exact; of unequal ones the upper end is that of the widest, which is too
    high rather than too low.
    """
    return Range(
        math.sqrt(_least_squares(inputs) / divisor),
        math.sqrt(_most_squares(inputs) / divisor),
    )


def _least_squares(inputs: Sequence[Range]) -> float:
    """Returns the least sum of squared distances between one point and a number of each range."""
    low, high = min(one.most for one in inputs), max(one.least for one in inputs)
    if high <= low:
        return 0.0
    for _ in range(_BISECTIONS):
        point = (low + high) / 2.0
        pull = math.fsum(_distance(point, one) for one in inputs)
        low, high = (point, high) if pull > 0.0 else (low, point)
    return math.fsum(_distance(low, one) ** 2 for one in inputs)


def _distance(point: float, one: Range) -> float:
    return min(max(point, one.least), one.most) - point


def _most_squares(inputs: Sequence[Range]) -> float:
    """Returns the greatest sum of squared distances from the mean.

    It is convex in the numbers, so greatest at ends of ranges: with equal widths, where the lowest are at their lower
    ends and the others at their upper ones.
    """
    count, half = len(inputs), max(one.most - one.least for one in inputs) / 2.0
    middles = sorted(one.middle for one in inputs)
    mean = math.fsum(middles) / count
    distances = [middle - mean for middle in middles]
    squares = math.fsum(distance**2 for distance in distances) + count * half**2
    greatest, above = 0.0, 0.0
    for up in range(count + 1):
        # With `above` the sum of the distances of the `up` greatest, those of the others sum up to its negative.
        shift = half * (2 * up - count)
        greatest = max(greatest, squares + 4.0 * half * above - shift**2 / count)
        if up < count:
            above += distances[count - 1 - up]
    return greatest
