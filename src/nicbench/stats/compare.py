"""Two configurations compared: effect with interval, rank test, Cliff's delta, and what may be claimed of it. Pure.

That one is higher is claimed where both say so: the interval of the effect leaves out "no difference", and the rank
test's p is at most 1 - confidence. The interval alone is too narrow of few runs; by the test, whose p is exact there, a
difference that does not exist is claimed of at most one in twenty comparisons (at 95 %), whatever the distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from nicbench.stats.bootstrap import (
    Asked,
    Interval,
    difference_of_medians,
    paired_difference,
    paired_ratio,
    ratio_of_medians,
    whole_pairs,
)
from nicbench.stats.detectable import Detectable, Spread, detectable
from nicbench.stats.dominance import Dominance, cliffs_delta
from nicbench.stats.rank_tests import mann_whitney, signed_ranks
from nicbench.stats.ranks import RankTest
from nicbench.stats.sample import Sample, Values, describe, known, standard_deviation


class Effect(StrEnum):
    """What is compared. Values that are not all above 0 have no ratio: of them it is the difference."""

    RATIO = "ratio of medians"
    PAIRED_RATIO = "ratio of the median pair"
    DIFFERENCE = "difference of medians"
    PAIRED_DIFFERENCE = "difference of the median pair"

    @property
    def is_ratio(self) -> bool:
        """First over second; else first less second."""
        return self in (Effect.RATIO, Effect.PAIRED_RATIO)

    @property
    def is_paired(self) -> bool:
        """Whether runs were compared in pairs."""
        return self in (Effect.PAIRED_RATIO, Effect.PAIRED_DIFFERENCE)

    @property
    def of_no_difference(self) -> float:
        """The value that an interval must leave out."""
        return 1.0 if self.is_ratio else 0.0


class Shown(StrEnum):
    """Whether a difference is shown, and if not, why."""

    YES = "a difference is shown"
    NO_INTERVAL = "there are too few runs for an interval"
    TOO_FEW = "there are too few runs: no outcome of theirs could show a difference"
    TOO_ALIKE = "too many runs gave the same value: no outcome with these values could show a difference"
    INTERVAL_HOLDS = "the interval holds no difference"
    TEST_DOES_NOT = "the rank test does not show it"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configurations, by name, and its runs."""

    name: str
    sample: Sample


@dataclass(frozen=True, slots=True)
class Claim:
    """What may be said. ``higher`` names a side only where a difference is shown; which is better is the reader's
    matter, or of ``better_of``.
    """

    shown: Shown
    higher: str | None = None
    lower: str | None = None

    def better_of(self, *, higher_is_better: bool) -> str | None:
        """The name of the better side; None where no difference is shown."""
        return self.higher if higher_is_better else self.lower


@dataclass(frozen=True, slots=True)
class Comparison:
    """``effect`` is of the first side over (or less) the second; of pairs, sides have the runs whose pair is whole.

    ``test`` and ``dominance`` are None where a side has no value; ``dominance`` is of all values, paired or not.
    """

    first: Side
    second: Side
    kind: Effect
    effect: Interval
    test: RankTest | None
    dominance: Dominance | None
    claim: Claim
    detectable: Detectable | None


def compare(first: tuple[str, Values], second: tuple[str, Values], asked: Asked) -> Comparison:
    """Independent runs of two configurations, each a name and a value for each run."""
    values, others = known(first[1]), known(second[1])
    is_ratio = all(value > 0.0 for value in (*values, *others))
    return _compared(
        Side(first[0], describe(first[1])),
        Side(second[0], describe(second[1])),
        Effect.RATIO if is_ratio else Effect.DIFFERENCE,
        (ratio_of_medians if is_ratio else difference_of_medians)(values, others, asked),
        mann_whitney(values, others) if values and others else None,
        cliffs_delta(values, others, asked.confidence_ratio) if values and others else None,
        [_scaled(values, is_ratio=is_ratio), _scaled(others, is_ratio=is_ratio)],
        asked,
    )


def compare_pairs(first: tuple[str, Values], second: tuple[str, Values], asked: Asked) -> Comparison:
    """Runs that come in pairs, the n-th of both together: one right after the other, as turns are (``model/turn.py``).

    Where a value is not known its pair takes no part, and is counted. ValueError where the numbers of runs differ.
    """
    if len(first[1]) != len(second[1]):
        raise ValueError(f"pairs have two runs each; there are {len(first[1])} and {len(second[1])}")
    pairs = whole_pairs(list(zip(first[1], second[1], strict=True)))
    values, others = [one for one, _ in pairs], [other for _, other in pairs]
    is_ratio = all(value > 0.0 for value in (*values, *others))
    scaled = [math.log(one) - math.log(other) if is_ratio else one - other for one, other in pairs]
    left_out = len(first[1]) - len(pairs)
    return _compared(
        Side(first[0], replace(describe(values), unknown=left_out)),
        Side(second[0], replace(describe(others), unknown=left_out)),
        Effect.PAIRED_RATIO if is_ratio else Effect.PAIRED_DIFFERENCE,
        (paired_ratio if is_ratio else paired_difference)(pairs, asked),
        signed_ranks(scaled) if pairs else None,
        cliffs_delta(values, others, asked.confidence_ratio) if pairs else None,
        [scaled],
        asked,
    )


def _compared(
    first: Side,
    second: Side,
    kind: Effect,
    effect: Interval,
    test: RankTest | None,
    dominance: Dominance | None,
    scaled: Sequence[Sequence[float]],
    asked: Asked,
) -> Comparison:
    """``scaled``: the values of each side, or of the pairs, on the scale on which differences are judged."""
    seen = effect.estimate if effect.estimate is None or not kind.is_ratio else math.log(effect.estimate)
    spreads = [Spread(standard_deviation(numbers), len(numbers)) for numbers in scaled if len(numbers) > 1]
    return Comparison(
        first=first,
        second=second,
        kind=kind,
        effect=effect,
        test=test,
        dominance=dominance,
        claim=_claim(first.name, second.name, kind, effect, test, asked),
        detectable=detectable(spreads, seen, asked.confidence_ratio) if len(spreads) == len(scaled) else None,
    )


def _claim(first: str, second: str, kind: Effect, effect: Interval, test: RankTest | None, asked: Asked) -> Claim:
    level = asked.level_ratio
    if effect.estimate is None or effect.lower is None or test is None:
        return Claim(Shown.NO_INTERVAL)
    if not test.can_show(level):
        return Claim(Shown.TOO_ALIKE if test.runs_suffice(level) else Shown.TOO_FEW)
    if effect.holds(kind.of_no_difference):
        return Claim(Shown.INTERVAL_HOLDS)
    if test.p > level:
        return Claim(Shown.TEST_DOES_NOT)
    if effect.estimate > kind.of_no_difference:
        return Claim(Shown.YES, higher=first, lower=second)
    return Claim(Shown.YES, higher=second, lower=first)


def _scaled(values: Sequence[float], *, is_ratio: bool) -> list[float]:
    return [math.log(value) for value in values] if is_ratio else list(values)
