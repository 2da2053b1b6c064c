"""What sums, means, medians and standard deviations can be where each input is known to lie in a range.

Printed figures are known to half a unit of their last digit. A statistic beside them is possible where some numbers
that round to what is printed have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

_BISECTIONS: Final = 80
"""Halvings of the span of the inputs: beyond the digits of a float."""


@dataclass(frozen=True, slots=True)
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


def find_mean_range(inputs: Sequence[Range]) -> Range:
    """Returns what their mean can be."""
    return find_sum_range(inputs).scale(1.0 / len(inputs))


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
