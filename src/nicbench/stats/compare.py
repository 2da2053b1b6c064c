"""Compares two configurations: effect with its interval, rank test, Holm's correction and detectable difference."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nicbench.core.frozen import frozen
from nicbench.stats.bootstrap import (
    Interval,
    IntervalSpec,
    difference_of_medians,
    paired_difference,
    paired_ratio,
    ratio_of_medians,
    whole_pairs,
)
from nicbench.stats.intervals import normal_tail, student_quantile
from nicbench.stats.sample import Sample, Values, describe, known_numbers, standard_deviation

# Rank tests and Cliff's delta: whether one of two configurations is higher, and by how much.
#
# Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals
# of Mathematical Statistics 18, 1947; Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1,
# 1945; Pratt, "Remarks on zeros and ties in the Wilcoxon signed rank procedures", JASA 54, 1959. Where it takes no
# more than milliseconds p is exact, also with ties: every way to deal the same ranks to the two sides is counted
# (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 2014, sections 3.1 and 4.1). SciPy has no such
# count: its exact tests are wrong with ties, and its permutation tests end at some 13 values. For larger samples
# the normal approximation is used, with the corrections for ties and continuity.


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


@frozen
class RankTest:
    """The result of a rank test. ``statistic`` follows the test's own definition; ``p`` is two-sided.

    ``smallest_p`` is the least p that any outcome with these numbers of values and these ties could have had: where it
    exceeds the level asked for, the test cannot show anything. It is ``None`` for the approximation, where it is too
    small to matter.
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
    if min(ranks) == max(ranks):  # all values are equal
        return RankTest(MANN_WHITNEY, u, 1.0, Exactness.APPROXIMATE, 1.0)
    ties = _ties(ranks) / ((m + n) * (m + n - 1))
    p = _normal_p(u - m * n / 2.0, m * n / 12.0 * (m + n + 1 - ties))
    return RankTest(MANN_WHITNEY, u, p, Exactness.APPROXIMATE, None)


def signed_ranks(differences: Sequence[float]) -> RankTest:
    """Sums the ranks of the differences above 0, ranked by absolute value; zeros are ranked, then left out.

    Raises ValueError where all differences are 0.
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
    n, zeros = len(differences), len(differences) - len(ranks)
    expected = (n * (n + 1) - zeros * (zeros + 1)) / 4.0
    variance = (n * (n + 1) * (2 * n + 1) - zeros * (zeros + 1) * (2 * zeros + 1) - _ties(ranks) / 2.0) / 24.0
    p = _normal_p(above / 2.0 - expected, variance)
    return RankTest(SIGNED_RANKS, above / 2.0, p, Exactness.APPROXIMATE, None)


def smallest_p(first: int, second: int | None = None) -> float:
    """Returns the least two-sided p of these numbers of different values: 2 / C(m + n, m), or for n pairs 2 / 2^n."""
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


def _ties(ranks: Sequence[int]) -> int:
    """Returns the sum of t³ - t over the groups of t equal ranks, by which ties lessen a variance."""
    return sum(times**3 - times for times in Counter(ranks).values())


def _normal_p(apart: float, variance: float) -> float:
    """Returns the two-sided p of a rank sum this far from the expected one, with the correction for continuity."""
    return min(1.0, 2.0 * normal_tail((abs(apart) - 0.5) / math.sqrt(variance)))


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


@frozen
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


def correct_by_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Corrects p-values by Holm's method, in the order given: the k-th smallest of m is multiplied by m - k + 1.

    A corrected value is never below the one before it, and at most 1. Holm, "A simple sequentially rejective multiple
    test procedure", Scandinavian Journal of Statistics 6, 1979. Rejecting where the corrected p is at most 5 % claims
    anything false in at most 5 % of such families, however the tests depend on one another. SciPy only corrects for
    false discovery rates.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return tuple(corrected)


def select_worthwhile(smallest_p: Sequence[float], level_ratio: float) -> tuple[bool, ...]:
    """Returns which tests, given their smallest possible p, could still show something next to the others.

    There are at most k of them, each with a smallest p of at most level / k. The others, corrected, could show nothing
    in any outcome; leaving them out saves the rest from a harsher correction. Smallest p-values depend on the values
    alone, not on their order. Tarone, "A modified Bonferroni method for discrete data", Biometrics 46, 1990.
    """
    k = 1
    while sum(p <= level_ratio / k for p in smallest_p) > k:
        k += 1
    return tuple(p <= level_ratio / k for p in smallest_p)


POWER: Final = 0.8
"""The conventional power (Cohen 1988): four of five such comparisons would show the difference."""
MOST_RUNS: Final = 10_000
"""The greatest number of runs that is recommended for one comparison."""
_MEDIAN: Final = math.sqrt(math.pi / 2.0)


@frozen
class Spread:
    """Standard deviation (n - 1) and number of runs of one side, or of pairs."""

    deviation: float
    runs: int


@frozen
class Detectable:
    """The smallest difference that such a comparison would show, and the runs needed for the one seen.

    ``difference`` is one of logarithms where ratios are compared, else of the values; where it is ``None``, ``note``
    says why. ``runs_for_seen`` is the number of runs of each side that would show the difference seen; None where that
    is 0, all values are equal, or more than ``MOST_RUNS`` are needed.
    """

    difference: float | None
    power_ratio: float
    runs_for_seen: int | None
    note: str | None = None

    @property
    def change_percent(self) -> float | None:
        """By how much the higher side exceeds the lower, from a difference of logarithms."""
        return None if self.difference is None else 100.0 * math.expm1(self.difference)


def find_detectable(sides: Sequence[Spread], seen: float | None, confidence_ratio: float) -> Detectable:
    """Computes the smallest difference that these runs could have shown, and the runs needed for the one seen.

    ``sides`` are two independent ones, or one: the differences of pairs. ``seen`` is the difference that was seen. The
    logarithms (for differences: the values) are assumed to be normal. The standard error of a median is then sqrt(pi /
    2) times that of a mean (Conover, "Practical Nonparametric Statistics": efficiency 2 / pi), and a difference is
    shown with probability ``POWER`` from (t of 1 - level / 2 + t of power) standard errors on (Cohen, "Statistical
    Power Analysis", 1988).
    """
    level, paired = round(1.0 - confidence_ratio, 12), len(sides) == 1
    least_runs = fewest_runs(level, paired=paired)
    variance = sum(side.deviation**2 for side in sides)
    if variance == 0.0:
        return Detectable(
            None, POWER, None, "the runs do not differ: how small a difference they could show is not known"
        )
    needed = _runs_for(abs(seen), variance, least_runs, level, paired=paired) if seen else None
    if smallest_p(*(side.runs for side in sides)) > level:
        enough = f"{least_runs} pairs" if paired else f"{least_runs} runs of each"
        return Detectable(None, POWER, needed, f"so few runs cannot show a difference of any size; {enough} could")
    freedom = sum(side.runs - 1 for side in sides)
    error = _MEDIAN * math.sqrt(sum(side.deviation**2 / side.runs for side in sides))
    return Detectable(_quantiles(freedom, level) * error, POWER, needed)


def _runs_for(seen: float, variance: float, least_runs: int, level: float, *, paired: bool) -> int | None:
    """Finds the fewest runs that show the difference, by bisection: more runs never show less."""

    def shows(runs: int) -> bool:
        freedom = (runs - 1) * (1 if paired else 2)
        return _quantiles(freedom, level) * _MEDIAN * math.sqrt(variance / runs) <= seen

    if not shows(MOST_RUNS):
        return None
    low, high = least_runs - 1, MOST_RUNS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def _quantiles(freedom: int, level: float) -> float:
    return student_quantile(freedom, 1.0 - level / 2.0) + student_quantile(freedom, POWER)


class Effect(StrEnum):
    """What is compared. Values that are not all above 0 have no ratio; their difference is compared."""

    RATIO = "ratio of medians"
    PAIRED_RATIO = "ratio of the median pair"
    DIFFERENCE = "difference of medians"
    PAIRED_DIFFERENCE = "difference of the median pair"

    @property
    def is_ratio(self) -> bool:
        """Whether it is first over second; else it is first less second."""
        return self in (Effect.RATIO, Effect.PAIRED_RATIO)

    @property
    def is_paired(self) -> bool:
        """Whether runs were compared in pairs."""
        return self in (Effect.PAIRED_RATIO, Effect.PAIRED_DIFFERENCE)

    @property
    def of_no_difference(self) -> float:
        """The value of the effect where both sides are equal; a difference is shown where the interval excludes it."""
        return 1.0 if self.is_ratio else 0.0


class ClaimOutcome(StrEnum):
    """Whether a difference is shown, and if not, why."""

    YES = "a difference is shown"
    NO_INTERVAL = "there are too few runs for an interval"
    TOO_FEW = "there are too few runs: no outcome of theirs could show a difference"
    TOO_ALIKE = "too many runs gave the same value: no outcome with these values could show a difference"
    INTERVAL_HOLDS = "the interval holds no difference"
    TEST_DOES_NOT = "the rank test does not show it"


@frozen
class Side:
    """One of the two configurations: its name and its runs."""

    name: str
    sample: Sample


@frozen
class Claim:
    """What may be claimed. ``higher`` names a side only where a difference is shown; ``better_of`` says which is
    better.
    """

    shown: ClaimOutcome
    higher: str | None = None
    lower: str | None = None

    def better_of(self, *, higher_is_better: bool) -> str | None:
        """The name of the better side; None where no difference is shown."""
        return self.higher if higher_is_better else self.lower


@frozen
class Comparison:
    """A comparison of two configurations; ``effect`` is first over (or less) second.

    With pairs, the sides have only the runs whose pair is complete. ``test`` and ``dominance`` are ``None`` where a
    side has no value; ``dominance`` covers all values, paired or not.
    """

    first: Side
    second: Side
    kind: Effect
    effect: Interval
    test: RankTest | None
    dominance: Dominance | None
    claim: Claim
    detectable: Detectable | None


def compare(first: tuple[str, Values], second: tuple[str, Values], spec: IntervalSpec) -> Comparison:
    """Compares independent runs of two configurations, each given as a name and one value for each run."""
    values, others = known_numbers(first[1]), known_numbers(second[1])
    is_ratio = all(value > 0.0 for value in (*values, *others))
    return _make_comparison(
        Side(first[0], describe(first[1])),
        Side(second[0], describe(second[1])),
        Effect.RATIO if is_ratio else Effect.DIFFERENCE,
        (ratio_of_medians if is_ratio else difference_of_medians)(values, others, spec),
        mann_whitney(values, others) if values and others else None,
        cliffs_delta(values, others, spec.confidence_ratio) if values and others else None,
        [_to_judged_scale(values, is_ratio=is_ratio), _to_judged_scale(others, is_ratio=is_ratio)],
        spec,
    )


def compare_pairs(first: tuple[str, Values], second: tuple[str, Values], spec: IntervalSpec) -> Comparison:
    """Compares runs made in pairs: the n-th run of both sides, one right after the other (``core/turn.py``).

    A pair with an unknown value is left out and counted. Raises ValueError where the numbers of runs differ.
    """
    if len(first[1]) != len(second[1]):
        raise ValueError(f"pairs have two runs each; there are {len(first[1])} and {len(second[1])}")
    pairs = whole_pairs(list(zip(first[1], second[1], strict=True)))
    values, others = [one for one, _ in pairs], [other for _, other in pairs]
    is_ratio = all(value > 0.0 for value in (*values, *others))
    scaled = [math.log(one) - math.log(other) if is_ratio else one - other for one, other in pairs]
    left_out = len(first[1]) - len(pairs)
    return _make_comparison(
        Side(first[0], replace(describe(values), unknown=left_out)),
        Side(second[0], replace(describe(others), unknown=left_out)),
        Effect.PAIRED_RATIO if is_ratio else Effect.PAIRED_DIFFERENCE,
        (paired_ratio if is_ratio else paired_difference)(pairs, spec),
        signed_ranks(scaled) if pairs else None,
        cliffs_delta(values, others, spec.confidence_ratio) if pairs else None,
        [scaled],
        spec,
    )


def _make_comparison(
    first: Side,
    second: Side,
    kind: Effect,
    effect: Interval,
    test: RankTest | None,
    dominance: Dominance | None,
    scaled: Sequence[Sequence[float]],
    spec: IntervalSpec,
) -> Comparison:
    """Builds the comparison. ``scaled`` has the values of each side, or of the pairs, on the scale that is judged."""
    seen = effect.estimate if effect.estimate is None or not kind.is_ratio else math.log(effect.estimate)
    spreads = [Spread(standard_deviation(numbers), len(numbers)) for numbers in scaled if len(numbers) > 1]
    return Comparison(
        first=first,
        second=second,
        kind=kind,
        effect=effect,
        test=test,
        dominance=dominance,
        claim=_claim(first.name, second.name, kind, effect, test, spec),
        detectable=find_detectable(spreads, seen, spec.confidence_ratio) if len(spreads) == len(scaled) else None,
    )


def _claim(first: str, second: str, kind: Effect, effect: Interval, test: RankTest | None, spec: IntervalSpec) -> Claim:
    level = spec.level_ratio
    if effect.estimate is None or effect.lower is None or test is None:
        return Claim(ClaimOutcome.NO_INTERVAL)
    if not test.can_show(level):
        return Claim(ClaimOutcome.TOO_ALIKE if test.runs_suffice(level) else ClaimOutcome.TOO_FEW)
    if effect.holds(kind.of_no_difference):
        return Claim(ClaimOutcome.INTERVAL_HOLDS)
    if test.p > level:
        return Claim(ClaimOutcome.TEST_DOES_NOT)
    if effect.estimate > kind.of_no_difference:
        return Claim(ClaimOutcome.YES, higher=first, lower=second)
    return Claim(ClaimOutcome.YES, higher=second, lower=first)


def _to_judged_scale(values: Sequence[float], *, is_ratio: bool) -> list[float]:
    return [math.log(value) for value in values] if is_ratio else list(values)
