"""Whether one of two configurations is higher: Mann-Whitney U of independent runs, Wilcoxon's signed ranks of pairs.
Pure.

Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18, 1947; Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945;
Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", JASA 54, 1959. Where it takes no more than
milliseconds p is exact, also with ties: every way to deal the same ranks to the two sides is counted (Hollander, Wolfe
and Chicken, "Nonparametric Statistical Methods", 2014, sections 3.1 and 4.1). Beyond, the normal approximation with the
corrections for ties and continuity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nicbench.stats.ranks import (
    MOST_WAYS,
    Exactness,
    RankTest,
    doubled_ranks,
    of_normal,
    ties,
    two_sided,
    ways,
    ways_of_size,
)

MANN_WHITNEY: Final = "Mann-Whitney U"
SIGNED_RANKS: Final = "Wilcoxon signed-rank"
_MOST_STEPS: Final = 20_000_000
"""Of the counting: 31 against 31 values, or 3 against 180."""


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> RankTest:
    """U counts the pairs in which the value of ``first`` is higher, equal ones half. Both need a value."""
    m, n = len(first), len(second)
    if not (m and n):
        raise ValueError("Mann-Whitney U needs values on both sides")
    ranks = doubled_ranks((*first, *second))
    rank_sum = sum(ranks[:m])  # twice
    u = (rank_sum - m * (m + 1)) / 2.0
    if _is_counted(m, n):
        # The fewer are counted; what is left to the others is as far from what they expect.
        fewer, seen = (m, rank_sum) if m <= n else (n, sum(ranks[m:]))
        unit = 1 if any(rank % 2 for rank in ranks) else 2  # without ties no rank is a half
        counts = ways_of_size([rank // unit for rank in ranks], fewer)
        p, smallest = two_sided(counts, seen // unit, 2 * fewer * (m + n + 1) // unit)
        return RankTest(MANN_WHITNEY, u, p, Exactness.EXACT, smallest, smallest_p(m, n))
    together = m + n
    tied = sum(tie**3 - tie for tie in ties((*first, *second)))
    variance = m * n / 12.0 * (together + 1 - tied / (together * (together - 1)))
    p = of_normal(u - m * n / 2.0, variance, 1.0)
    return RankTest(MANN_WHITNEY, u, p, Exactness.APPROXIMATE, None if variance > 0.0 else 1.0)


def signed_ranks(differences: Sequence[float]) -> RankTest:
    """The sum of the ranks of those above 0, ranked by their distance from it; zeros are ranked, then left out."""
    if not differences:
        raise ValueError("signed ranks need a pair")
    ranked = zip(doubled_ranks([abs(value) for value in differences]), differences, strict=True)
    signed = [(rank, value > 0.0) for rank, value in ranked if value != 0.0]
    ranks = [rank for rank, _ in signed]
    above = sum(rank for rank, is_above in signed if is_above)  # twice, as all of them
    if 2 ** len(ranks) <= MOST_WAYS:
        p, smallest = two_sided(ways(ranks), above, sum(ranks))
        return RankTest(SIGNED_RANKS, above / 2.0, p, Exactness.EXACT, smallest, smallest_p(len(differences)))
    variance = sum(rank * rank for rank in ranks) / 16.0
    p = of_normal((above - sum(ranks) / 2.0) / 2.0, variance, 1.0)
    return RankTest(SIGNED_RANKS, above / 2.0, p, Exactness.APPROXIMATE, None)


def smallest_p(first: int, second: int | None = None) -> float:
    """The least two-sided p that so many different values can have: 2 / C(m + n, m), or of n pairs 2 / 2^n."""
    return min(1.0, 2 / (2**first if second is None else math.comb(first + second, first)))


def fewest_runs(level_ratio: float, *, paired: bool) -> int:
    """Of each side, for the test to be able to show anything."""
    n = 1
    while smallest_p(n, None if paired else n) > level_ratio:
        n += 1
    return n


def _is_counted(m: int, n: int) -> bool:
    together, fewer = m + n, min(m, n)
    return math.comb(together, fewer) <= MOST_WAYS and fewer * together * together * (together + 1) <= _MOST_STEPS
