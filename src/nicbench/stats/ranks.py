"""Ranks of values, equal ones sharing theirs, and in how many ways a sum of ranks comes about. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
MOST_WAYS: Final = 2**62
"""To be counted without rounding."""


class Exactness(StrEnum):
    """How a p-value was computed."""

    EXACT = "exact"
    APPROXIMATE = "normal approximation"


@dataclass(frozen=True, slots=True)
class RankTest:
    """``statistic`` by the test's own definition; ``p`` is two-sided.

    ``smallest_p`` is the least that any outcome with these numbers of values, and these ties, could have had: where it
    is above what is asked, the test cannot show anything. None of the approximation, of which it is too small to
    matter.
    """

    name: str
    statistic: float
    p: float
    exactness: Exactness
    smallest_p: float | None
    smallest_p_untied: float = 0.0
    """The same if no two values were equal."""

    def can_show(self, level_ratio: float) -> bool:
        """Whether any outcome could have been as rare as this."""
        return self.smallest_p is None or self.smallest_p <= level_ratio

    def runs_suffice(self, level_ratio: float) -> bool:
        """Whether so many runs could have, had they all been different."""
        return self.smallest_p_untied <= level_ratio


def doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value from 1, in their order; equal ones share the mean of theirs, so twice is whole."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end + 1 < len(order) and values[order[end + 1]] == values[order[begin]]:
            end += 1
        for place in order[begin : end + 1]:
            found[place] = begin + end + 2
        begin = end + 1
    return found


def ties(values: Sequence[float]) -> list[int]:
    """How many values are equal, for each value that there is."""
    return np.unique(np.asarray(values, dtype=np.float64), return_counts=True)[1].tolist() if len(values) else []


def ways_of_size(numbers: Sequence[int], size: int) -> Counts:
    """How many subsets of ``size`` of the numbers have each sum, from 0."""
    counts = np.zeros((size + 1, sum(numbers) + 1), dtype=np.int64)
    counts[0, 0] = 1
    for number in numbers:
        counts[1:, number:] += counts[:-1, : counts.shape[1] - number]
    return np.asarray(counts[size], dtype=np.int64)


def ways(numbers: Sequence[int]) -> Counts:
    """How many subsets of any size have each sum, from 0."""
    counts = np.zeros(sum(numbers) + 1, dtype=np.int64)
    counts[0] = 1
    for number in numbers:
        counts[number:] += counts[: len(counts) - number].copy()
    return counts


def two_sided(counts: Counts, seen: int, twice_expected: int) -> tuple[float, float]:
    """P of a sum at least as far from the expected one as the one seen, and the least that this P can be."""
    distance = np.abs(2 * np.arange(len(counts)) - twice_expected)
    total = int(counts.sum())
    farthest = int(distance[counts > 0].max())
    p = int(counts[distance >= abs(2 * seen - twice_expected)].sum()) / total
    return p, int(counts[distance >= farthest].sum()) / total


def of_normal(distance: float, variance: float, step: float) -> float:
    """Two-sided P by the normal distribution, with a continuity correction of half a step; 1 where nothing varies."""
    if variance <= 0.0:
        return 1.0
    return math.erfc(max(0.0, abs(distance) - step / 2.0) / math.sqrt(2.0 * variance))
