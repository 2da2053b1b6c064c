"""Whether values rise or fall with time, and how fast: the Mann-Kendall test and Sen's slope. Pure.

Mann, "Nonparametric tests against trend", Econometrica 13, 1945; Kendall, "Rank Correlation Methods", 1975; Sen,
"Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968. Up to 50 values p and the slope's
interval are exact: the orders of the same values, equal ones included, are counted by their inversions (MacMahon,
"Combinatory Analysis", 1915). The values must be independent but for a trend: where each hangs on the one before, p
comes out too small. All pairs are looked at: this is for runs, some hundreds of them.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from nicbench.stats.ranks import Exactness, RankTest, of_normal, ties

MANN_KENDALL: Final = "Mann-Kendall"
_EXACT_UP_TO: Final = 50


@dataclass(frozen=True, slots=True)
class Slope:
    """Per unit of time: the median of the slopes between any two values. Ends are None of too few values."""

    estimate: float
    lower: float | None
    upper: float | None


def mann_kendall(values: Sequence[float]) -> RankTest:
    """S: of all pairs of values, in the order of time, those that rise less those that fall. One value at least."""
    n = len(values)
    if not n:
        raise ValueError("a trend needs values")
    s = sum(_sign(later - earlier) for place, earlier in enumerate(values) for later in values[place + 1 :])
    tied = ties(values)
    if n <= _EXACT_UP_TO:
        counts = _inversions(tied)
        most = len(counts) - 1  # of inversions, and so the greatest S
        total = sum(counts)
        extreme = sum(count for inversions, count in enumerate(counts) if abs(most - 2 * inversions) >= abs(s))
        return RankTest(MANN_KENDALL, s, extreme / total, Exactness.EXACT, 1.0 if most == 0 else 2 * counts[0] / total)
    variance = _variance(n, tied)
    p = of_normal(s, variance, 2.0)
    return RankTest(MANN_KENDALL, s, p, Exactness.APPROXIMATE, None if variance > 0.0 else 1.0)


def sens_slope(times: Sequence[float], values: Sequence[float], confidence_ratio: float = 0.95) -> Slope | None:
    """None of fewer than two values. ValueError where the times do not rise.

    The interval's ends are those ordered slopes between which the trend lies with at least this confidence (Hollander,
    Wolfe and Chicken 2014, section 9.3).
    """
    if len(times) != len(values) or any(later <= earlier for earlier, later in itertools.pairwise(times)):
        raise ValueError("a slope needs a time for each value, each later than the one before")
    n = len(values)
    if n < 2:
        return None
    slopes = sorted(
        (values[later] - values[earlier]) / (times[later] - times[earlier])
        for earlier in range(n)
        for later in range(earlier + 1, n)
    )
    left_out = _slopes_left_out(n, (1.0 - confidence_ratio) / 2.0)
    ends = (slopes[left_out - 1], slopes[-left_out]) if left_out else (None, None)
    return Slope(statistics.median(slopes), *ends)


def _slopes_left_out(n: int, tail: float) -> int:
    """On each side, the end itself included: the most, so that so few inversions are no more probable than the tail."""
    if n > _EXACT_UP_TO:
        pairs = n * (n - 1) // 2
        reach = NormalDist().inv_cdf(1.0 - tail) * math.sqrt(_variance(n, []))
        return max(0, math.floor((pairs - reach) / 2.0))
    counts = _inversions([1] * n)
    bound = tail * math.factorial(n)
    return sum(summed <= bound for summed in itertools.accumulate(counts))


def _inversions(tied: Sequence[int]) -> list[int]:
    """How many orders of the values have each number of inversions, for groups of so many equal ones.

    Each value of a group of t that joins m others multiplies the generating function by (1 - q^(m+i)) / (1 - q^i), i =
    1..t.
    """
    counts, together = [1], 0
    for size in tied:
        degree = len(counts) - 1 + together * size
        counts = counts + [0] * (degree + 1 - len(counts))
        # Factors that cancel later may carry it beyond its degree meanwhile; terms up there never come down again.
        for added in range(1, size + 1):
            for power in range(degree, together + added - 1, -1):
                counts[power] -= counts[power - together - added]
            for power in range(added, degree + 1):
                counts[power] += counts[power - added]
        together += size
    return counts


def _variance(n: int, tied: Sequence[int]) -> float:
    """Of S under no trend, with the correction for ties (Kendall 1975)."""
    return (n * (n - 1) * (2 * n + 5) - sum(tie * (tie - 1) * (2 * tie + 5) for tie in tied)) / 18.0


def _sign(difference: float) -> int:
    return (difference > 0.0) - (difference < 0.0)
