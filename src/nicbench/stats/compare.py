"""Compares two configurations: effect with its interval, rank test, Holm's correction and detectable difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from nicbench.stats.bootstrap import (
    Interval,
    IntervalSpec,
    difference_of_medians,
    paired_difference,
    paired_ratio,
    ratio_of_medians,
    whole_pairs,
)
from nicbench.stats.rank_tests import (
    Dominance,
    RankTest,
    cliffs_delta,
    fewest_runs,
    mann_whitney,
    signed_ranks,
    smallest_p,
)
from nicbench.stats.sample import Sample, Values, describe, known_numbers, standard_deviation


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
    """Returns which tests, given their smallest possible p, could still show something beside the others.

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


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation (n - 1) and number of runs of one side, or of pairs."""

    deviation: float
    runs: int


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest difference that such a comparison would show, and the runs needed for the one seen.

    ``difference`` is one of logarithms where ratios are compared, else of the values; where it is None, ``note`` says
    why. ``runs_for_seen`` is the number of runs of each side that would show the difference seen; None where that is 0,
    there is no spread, or more than ``MOST_RUNS`` are needed.
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
    from scipy.special import stdtrit  # imported here, as it loads slowly

    return float(stdtrit(freedom, 1.0 - level / 2.0) + stdtrit(freedom, POWER))


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


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configurations: its name and its runs."""

    name: str
    sample: Sample


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two configurations; ``effect`` is first over (or less) second.

    With pairs, the sides have only the runs whose pair is complete. ``test`` and ``dominance`` are None where a side
    has no value; ``dominance`` covers all values, paired or not.
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
