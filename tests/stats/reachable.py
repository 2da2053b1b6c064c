"""What statistics can come to where each input is known to half a unit of its last digit: by exact arithmetic."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise


@dataclass(frozen=True)
class Reach:
    """From ``lowest`` to ``highest``; of a standard deviation, its square, which stays rational (``is_squared``)."""

    lowest: Fraction
    highest: Fraction
    is_squared: bool = False

    def holds(self, printed: Fraction, unit: Fraction) -> bool:
        """Whether something in it rounds to what is printed, ties either way."""
        least, most = printed - unit / 2, printed + unit / 2
        if most < 0:
            return False
        if self.is_squared:
            least, most = max(least, Fraction(0)) ** 2, most**2
        return least <= self.highest and self.lowest <= most


def sum_reach(values: Sequence[Fraction], unit: Fraction) -> Reach:
    """Of a sum: every input may be off the same way."""
    middle, slack = sum(values, Fraction(0)), len(values) * unit / 2
    return Reach(middle - slack, middle + slack)


def average_reach(values: Sequence[Fraction], unit: Fraction) -> Reach:
    """As far as one input."""
    middle = sum(values, Fraction(0)) / len(values)
    return Reach(middle - unit / 2, middle + unit / 2)


def median_reach(values: Sequence[Fraction], unit: Fraction) -> Reach:
    """As far as one input: a median never falls where an input rises."""
    middle = statistics.median(values)
    return Reach(middle - unit / 2, middle + unit / 2)


def deviation_reach(values: Sequence[Fraction], unit: Fraction) -> Reach:
    """Of the population's standard deviation, squared.

    The variance is convex, so its maximum is at corners; with equal intervals, one where the lowest inputs are all
    down and the others up. Its minimum is that of the mean squared distance from one point to the intervals, which is
    at an end of an interval or where the slope between two ends is 0.
    """
    ordered, half = sorted(values), unit / 2
    corners = (
        [value - half for value in ordered[:down]] + [value + half for value in ordered[down:]]
        for down in range(len(ordered) + 1)
    )
    highest = max(map(statistics.pvariance, corners))
    ends = sorted({end for value in ordered for end in (value - half, value + half)})
    candidates = list(ends)
    for left, right in pairwise(ends):
        outside = [value + half for value in ordered if value + half <= left]
        outside += [value - half for value in ordered if value - half >= right]
        if outside:
            candidates.append(min(max(sum(outside, Fraction(0)) / len(outside), left), right))
    lowest = min(_mean_squared_distance(point, ordered, half) for point in candidates)
    if any(all(abs(point - value) <= half for value in ordered) for point in candidates):
        lowest = Fraction(0)
    return Reach(lowest, highest, is_squared=True)


def _mean_squared_distance(point: Fraction, values: Sequence[Fraction], half: Fraction) -> Fraction:
    return sum((max(abs(point - value) - half, Fraction(0)) ** 2 for value in values), Fraction(0)) / len(values)
