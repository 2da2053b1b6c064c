"""Rank tests and Cliff's delta: whether one of two configurations is higher, and by how much.

Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18, 1947; Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945;
Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", JASA 54, 1959. Where it takes no more than
milliseconds p is exact, also with ties: every way to deal the same ranks to the two sides is counted (Hollander, Wolfe
and Chicken, "Nonparametric Statistical Methods", 2014, sections 3.1 and 4.1). SciPy has no such count: its exact tests
are wrong with ties, and its permutation tests end at some 13 values. For larger samples SciPy's normal approximation is
used, with the corrections for ties and continuity.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

MANN_WHITNEY: Final = "Mann-Whitney U"
SIGNED_RANKS: Final = "Wilcoxon signed-rank"
_MOST_STEPS: Final = 20_000_000
"""The most steps of an exact count: enough for 32 against 32 values, or 3 against 180."""
_MOST_WAYS: Final = 2**62
"""The most outcomes that can be counted in 64 bits."""
_Counts = NDArray[np.int64]


class Exactness(StrEnum):
    """How a p-value was computed."""

    EXACT = "exact"
    APPROXIMATE = "normal approximation"


@dataclass(frozen=True, slots=True)
class RankTest:
    """The result of a rank test. ``statistic`` follows the test's own definition; ``p`` is two-sided.

    ``smallest_p`` is the least p that any outcome with these numbers of values and these ties could have had: where it
    exceeds the level asked for, the test cannot show anything. It is None for the approximation, where it is too small
    to matter.
    """

    name: str
    statistic: float
    p: float
    exactness: Exactness
    smallest_p: float | None
    smallest_p_untied: float = 0.0
    """The smallest p if no two values were equal."""

    def can_show(self, level_ratio: float) -> bool:
        """Returns whether some outcome of these values could have reached this level."""
        return self.smallest_p is None or self.smallest_p <= level_ratio

    def runs_suffice(self, level_ratio: float) -> bool:
        """Returns whether this many runs could have reached the level had all values been different."""
        return self.smallest_p_untied <= level_ratio


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest:
    """Tests whether one side is higher. U counts the pairs in which ``first`` is higher, and ties as half.

    Raises ValueError where a side has no value.
    """
    m, n = len(first), len(second)
    if not (m and n):
        raise ValueError("Mann-Whitney U needs values on both sides")
    ranks = _doubled_ranks((*first, *second))
    rank_sum = sum(ranks[:m])  # doubled, as the ranks are
    u = (rank_sum - m * (m + 1)) / 2.0
    if _can_be_counted(m, n):
        # Only the smaller side is counted: the other side's rank sum deviates by the same amount.
        fewer, seen = (m, rank_sum) if m <= n else (n, sum(ranks[m:]))
        unit = 1 if any(rank % 2 for rank in ranks) else 2  # without ties no rank is fractional
        counts = _count_sums_of(fewer, [rank // unit for rank in ranks])
        p, smallest = _two_sided_p(counts, seen // unit, 2 * fewer * (m + n + 1) // unit)
        return RankTest(MANN_WHITNEY, u, p, Exactness.EXACT, smallest, smallest_p(m, n))
    if min(ranks) == max(ranks):  # all values are equal: SciPy has no p then
        return RankTest(MANN_WHITNEY, u, 1.0, Exactness.APPROXIMATE, 1.0)
    from scipy.stats import mannwhitneyu  # imported here: it takes a second to load

    p = float(mannwhitneyu(first, second, method="asymptotic").pvalue)
    return RankTest(MANN_WHITNEY, u, p, Exactness.APPROXIMATE, None)


def signed_ranks(differences: Sequence[float]) -> RankTest:
    """Sums the ranks of the differences above 0, ranked by absolute value; zeros are ranked, then left out.

    Raises ValueError where there is no difference.
    """
    if not differences:
        raise ValueError("signed ranks need a pair")
    ranked = zip(_doubled_ranks([abs(value) for value in differences]), differences, strict=True)
    signed = [(rank, value > 0.0) for rank, value in ranked if value != 0.0]
    ranks = [rank for rank, _ in signed]
    above = sum(rank for rank, is_above in signed if is_above)  # doubled, as all ranks are
    if 2 ** len(ranks) <= _MOST_WAYS:
        p, smallest = _two_sided_p(_count_sums(ranks), above, sum(ranks))
        return RankTest(SIGNED_RANKS, above / 2.0, p, Exactness.EXACT, smallest, smallest_p(len(differences)))
    from scipy.stats import wilcoxon  # imported here, as above

    p = float(wilcoxon(differences, zero_method="pratt", correction=True, method="approx").pvalue)
    return RankTest(SIGNED_RANKS, above / 2.0, p, Exactness.APPROXIMATE, None)


def smallest_p(first: int, second: int | None = None) -> float:
    """Returns the least two-sided p of so many different values: 2 / C(m + n, m), or for n pairs 2 / 2^n."""
    return min(1.0, 2 / (2**first if second is None else math.comb(first + second, first)))


def fewest_runs(level_ratio: float, *, paired: bool) -> int:
    """Returns the fewest runs of each side with which the test can reach this level."""
    n = 1
    while smallest_p(n, None if paired else n) > level_ratio:
        n += 1
    return n


def _can_be_counted(m: int, n: int) -> bool:
    """Returns whether an exact count of m against n values is quick enough and fits in 64 bits."""
    together, fewer = m + n, min(m, n)
    return math.comb(together, fewer) <= _MOST_WAYS and fewer * together * together * (together + 1) <= _MOST_STEPS


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Returns twice the rank of each value, in the given order; ties share their mean rank, so twice is whole."""
    _, places, ties = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks: list[int] = (2 * np.cumsum(ties) - ties + 1)[places].tolist()
    return ranks


def _count_sums_of(size: int, numbers: Sequence[int]) -> _Counts:
    """Counts the subsets of ``size`` numbers by their sum, from 0."""
    counts = np.zeros((size + 1, sum(numbers) + 1), dtype=np.int64)
    counts[0, 0] = 1
    for number in numbers:
        counts[1:, number:] += counts[:-1, : counts.shape[1] - number]
    return np.asarray(counts[size], dtype=np.int64)


def _count_sums(numbers: Sequence[int]) -> _Counts:
    """Counts the subsets of any size by their sum, from 0."""
    counts = np.zeros(sum(numbers) + 1, dtype=np.int64)
    counts[0] = 1
    for number in numbers:
        counts[number:] += counts[: len(counts) - number].copy()
    return counts


def _two_sided_p(counts: _Counts, seen: int, twice_expected: int) -> tuple[float, float]:
    """Returns P of a sum at least as far from the expected one as the one seen, and the least possible P."""
    distance = np.abs(2 * np.arange(len(counts)) - twice_expected)
    total = int(counts.sum())
    farthest = int(distance[counts > 0].max())
    p = int(counts[distance >= abs(2 * seen - twice_expected)].sum()) / total
    return p, int(counts[distance >= farthest].sum()) / total


class Magnitude(StrEnum):
    """A word for abs(delta); the bounds are 0.147, 0.33 and 0.474.

    Romano, Kromrey, Coraggio and Skowronek, "Appropriate statistics for ordinal level data", Florida Association of
    Institutional Research, 2006.
    """

    NEGLIGIBLE = "negligible"
    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"

    @classmethod
    def of(cls, delta: float) -> Magnitude:
        """Returns the word for this delta."""
        for bound, word in ((0.147, cls.NEGLIGIBLE), (0.33, cls.SMALL), (0.474, cls.MEDIUM)):
            if abs(delta) < bound:
                return word
        return cls.LARGE


@dataclass(frozen=True, slots=True)
class Dominance:
    """Cliff's delta with its interval: from -1 (every value of the first side is lower) to 1 (every one is higher)."""

    delta: float
    lower: float
    upper: float
    confidence_ratio: float

    @property
    def magnitude(self) -> Magnitude:
        """The word for the estimate."""
        return Magnitude.of(self.delta)


def cliffs_delta(first: Sequence[float], second: Sequence[float], confidence_ratio: float = 0.95) -> Dominance:
    """Computes (number of pairs above - number below) / all pairs, with its interval.

    Cliff, "Dominance statistics", Psychological Bulletin 114, 1993. The interval is that of P(above) + P(equal) / 2 =
    (delta + 1) / 2 by Newcombe, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic,
    part 2", Statistics in Medicine 25, 2006, method 5. Cliff's own interval has no width where delta is 1 or -1, which
    is common for runs of two cards; this one has.
    """
    m, n = len(first), len(second)
    if not (m and n):
        raise ValueError("Cliff's delta needs values on both sides")
    ordered = sorted(second)
    balance = sum(bisect_left(ordered, value) - (n - bisect_right(ordered, value)) for value in first)
    delta = balance / (m * n)
    lower, upper = _delta_end(delta, -1.0, m, n, confidence_ratio), _delta_end(delta, 1.0, m, n, confidence_ratio)
    return Dominance(delta, lower, upper, confidence_ratio)


def _delta_end(delta: float, limit: float, m: int, n: int, confidence_ratio: float) -> float:
    """Finds, by bisection, the delta nearest to the limit whose standard error still reaches the one seen.

    V(t) = t (1 - t) / (m n) * (1 + h ((1 - t) / (2 - t) + t / (1 + t))), t = (delta + 1) / 2, h = (m + n) / 2 - 1.
    """
    quantile, middle = NormalDist().inv_cdf((1.0 + confidence_ratio) / 2.0), (m + n) / 2.0 - 1.0
    inside, outside = delta, limit
    for _ in range(60):
        tried = (inside + outside) / 2.0
        above, below = (1.0 + tried) / 2.0, (1.0 - tried) / 2.0
        variance = above * below / (m * n) * (1.0 + middle * (below / (1.0 + below) + above / (1.0 + above)))
        if abs(tried - delta) / 2.0 <= quantile * math.sqrt(max(0.0, variance)):
            inside = tried
        else:
            outside = tried
    return (inside + outside) / 2.0
