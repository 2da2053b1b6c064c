"""What is claimed of a difference: the single rule, wherever nicbench compares results, and its use on every pair of
sides at every point that both measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import combinations
from typing import Final

from nicbench.compare.points import MainValue, Point, PointValues, Side, match_sides, scale_units
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.result import Bounded, Result, Value
from nicbench.core.units import decimals_above_one, figures, probability
from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.compare import ClaimOutcome, Comparison, compare, compare_pairs, correct_by_holm, fewest_runs
from nicbench.stats.sample import Span, bounds_of, span_of
from nicbench.stats.wording import arithmetic, could_show, explain_no_claim, sentence


class Basis(StrEnum):
    """The evidence by which a difference is claimed, or the reason why none is claimed."""

    RUNS = "the runs"
    INTERVALS = "the intervals of all runs, which do not overlap"
    NOT_BY_RUNS = "the runs do not show it"
    SEARCHES_OVERLAP = "the intervals within which the median runs found their rates overlap"
    INTERVALS_OVERLAP = "the intervals of all runs overlap"
    TOO_FEW = "there are too few runs"
    DISTURBED = "results were disturbed"

    @property
    def is_shown(self) -> bool:
        """Whether this basis shows a difference."""
        return self in (Basis.RUNS, Basis.INTERVALS)

    @property
    def cell(self) -> str:
        """What a table has in place of a difference where none is claimed."""
        return {Basis.TOO_FEW: "too few runs", Basis.DISTURBED: "disturbed"}.get(self, "no difference shown")


@frozen
class SideClaim:
    """What is claimed about the difference between two sides.

    ``higher`` and ``lower`` name the sides and are set only where a difference is shown. ``spans`` are the intervals
    that the claim, or the lack of one, rests on. With ``is_at_least``, the higher side may do more than the highest
    load that was tried, so the ratio is a lower bound.
    """

    basis: Basis
    higher: str | None = None
    lower: str | None = None
    spans: tuple[Span, Span] | None = None
    is_at_least: bool = False
    disturbed: tuple[str, ...] = ()
    """The sides with a disturbed result, where that is why nothing is claimed."""

    def better(self, *, higher_is_better: bool | None) -> str | None:
        """Returns the name of the better side; None where no difference is shown or neither direction is better."""
        return None if higher_is_better is None else self.higher if higher_is_better else self.lower


def claim_of(
    comparison: Comparison, first: Sequence[Value], second: Sequence[Value], disturbed: Sequence[str] = ()
) -> SideClaim:
    """Returns the claim for a comparison; ``first`` and ``second`` are the compared values as results store them.

    ``disturbed`` names the sides with a result whose verdict is disturbed.
    """
    found = _claim_of_undisturbed(comparison, first, second)
    if not disturbed or found.basis is Basis.TOO_FEW:
        return found
    return SideClaim(Basis.DISTURBED, disturbed=tuple(disturbed))


def _claim_of_undisturbed(comparison: Comparison, first: Sequence[Value], second: Sequence[Value]) -> SideClaim:
    names = (comparison.first.name, comparison.second.name)
    shown = comparison.claim.shown
    is_unranked = any(isinstance(value, Bounded) and value.is_only_below for value in (*first, *second))
    if is_unranked or shown in (ClaimOutcome.NO_INTERVAL, ClaimOutcome.TOO_FEW):
        spans = _spans_of_sides(first, second, of_median=False)
        if spans is None:
            return SideClaim(Basis.TOO_FEW)
        return _claim_by_intervals(spans, names) or SideClaim(Basis.INTERVALS_OVERLAP, spans=spans)
    if shown is not ClaimOutcome.YES:
        return SideClaim(Basis.NOT_BY_RUNS)
    assert comparison.claim.higher is not None  # noqa: S101 - a difference is shown
    higher_is_first = comparison.claim.higher == names[0]
    higher, lower = names if higher_is_first else names[::-1]
    spans = _spans_of_sides(first, second, of_median=True)
    if spans is None:
        return SideClaim(Basis.RUNS, higher, lower)
    above, below = spans if higher_is_first else spans[::-1]
    if not above.is_above(below):
        return SideClaim(Basis.SEARCHES_OVERLAP, spans=spans)
    return SideClaim(Basis.RUNS, higher, lower, spans, is_at_least=math.isinf(above.upper))


def _claim_by_intervals(spans: tuple[Span, Span], names: tuple[str, str]) -> SideClaim | None:
    for one, other in ((0, 1), (1, 0)):
        if spans[one].is_above(spans[other]):
            is_at_least = math.isinf(spans[one].upper)
            return SideClaim(Basis.INTERVALS, names[one], names[other], spans, is_at_least=is_at_least)
    return None


def _spans_of_sides(first: Sequence[Value], second: Sequence[Value], *, of_median: bool) -> tuple[Span, Span] | None:
    """Returns the interval of each side where a search enclosed every rate in an interval; None for plain numbers."""
    make = median_span if of_median else span_of
    found = []
    for side in (first, second):
        rates = [value for value in side if isinstance(value, Bounded) and not value.is_bare]
        if not rates or len(rates) < len(side) or (span := make(rates)) is None:
            return None
        found.append(span)
    return found[0], found[1]


def median_span(rates: Sequence[Bounded]) -> Span | None:
    """Returns the interval from the median of the highest passing loads to the median of the lowest failing loads."""
    bounds = [bound for rate in rates if (bound := bounds_of(rate)) is not None]
    if not bounds:
        return None
    return Span(statistics.median(lower for lower, _ in bounds), statistics.median(upper for _, upper in bounds))


MOST_SIDES: Final = 5
"""With up to this many sides, every pair is compared; with more, each side is compared with the first only."""


@frozen
class PointComparison:
    """The comparison of two sides at one point in one main value.

    Numbers are in the unit of ``value.quantity``; ratios and differences are of the first side relative to the second.
    ``p_corrected`` is the p-value corrected by Holm's method for all comparisons made together; None where no test was
    made.
    """

    point: Point
    value: MainValue
    comparison: Comparison
    claim: SideClaim
    p_corrected: float | None
    made_together: int

    @property
    def better(self) -> str | None:
        """The name of the better side; None where no difference is shown or neither direction is better."""
        return self.claim.better(higher_is_better=self.value.quantity.higher_is_better)

    @property
    def sentence(self) -> str:
        """The claim without a full stop: "with 10 instances, “1x100” is 1.24 times as fast [1.19, 1.31]"."""
        said = self.claim_text
        return f"{self.point.circumstances}, {said}" if self.point.circumstances else said

    @property
    def arithmetic(self) -> str:
        """The numbers behind the sentence, in clauses: medians, ratio with interval and seed, test, Cliff's delta."""
        parts = [arithmetic(_quote_names(self.comparison), self.value.quantity)]
        if self.p_corrected is not None and self.made_together > 1:
            told = probability(self.p_corrected)
            parts.append(f"corrected for {self.made_together} comparisons (Holm) {told}")
        if self.claim.spans is not None:
            ends = [_interval_text(span.lower / self.value.factor, span.upper / self.value.factor)
                    for span in self.claim.spans]  # fmt: skip
            of = "median runs" if self.claim.basis in (Basis.RUNS, Basis.SEARCHES_OVERLAP) else "all runs"
            parts.append(f"rates found within {ends[0]} and {ends[1]} {self.value.quantity.unit} ({of})")
        return "; ".join(parts)

    @property
    def could_show(self) -> str | None:
        """What this number of runs could have shown, and how many runs the observed difference would need; None where
        disturbed results rule out any claim.
        """
        return None if self.claim.basis is Basis.DISTURBED else could_show(self.comparison, self.value.quantity)

    @property
    def holds_together(self) -> bool:
        """Whether the difference is still shown after correction for all comparisons made together."""
        level = round(1.0 - self.comparison.effect.confidence_ratio, 12)
        return self.claim.basis is Basis.RUNS and self.p_corrected is not None and self.p_corrected <= level

    @property
    def claim_text(self) -> str:
        """The claim as a sentence that does not name the circumstances of the point."""
        quoted, claim, quantity = _quote_names(self.comparison), self.claim, self.value.quantity
        if claim.basis is Basis.RUNS:
            text = sentence(quoted, quantity)
            return f"{text}, or more: no load that was offered was too much for “{claim.higher}”" if (
                claim.is_at_least
            ) else text  # fmt: skip
        if claim.basis is Basis.INTERVALS:
            return self._interval_sentence()
        if claim.basis is Basis.SEARCHES_OVERLAP:
            reason = "the runs differ by less than the intervals within which their rates were found"
            return explain_no_claim(quoted, quantity, reason, more_runs_help=False)
        if claim.basis is Basis.INTERVALS_OVERLAP:
            return explain_no_claim(quoted, quantity, "their intervals overlap")
        if claim.basis is Basis.DISTURBED:
            whose = " and ".join(f"“{name}”" for name in claim.disturbed)
            reason = f"results of {whose} were disturbed"
            return explain_no_claim(quoted, quantity, reason, more_runs_help=False)
        return sentence(quoted, quantity)

    def _interval_sentence(self) -> str:
        claim, quantity = self.claim, self.value.quantity
        assert claim.spans is not None  # noqa: S101 - the basis
        above, below = claim.spans if claim.higher == self.comparison.first.name else claim.spans[::-1]
        least, most = above.times(below)
        decimals = decimals_above_one(least)
        ends = [figures(one, 3) if decimals is None else f"{one:.{decimals}f}" for one in (least, most)]
        factor = f"at least {ends[0]}" if math.isinf(most) else " to ".join(dict.fromkeys(ends))
        text = f"“{claim.higher}” has {factor} times the {quantity.name} of “{claim.lower}”"
        verdict = f", and “{claim.lower}” is the better" if self.better == claim.lower else ""
        return f"{text}{verdict}: their intervals do not overlap"


@frozen
class Comparisons:
    """All comparisons made together; ``only`` has points that some side lacks, each with a side that measured it."""

    all: tuple[PointComparison, ...]
    only: tuple[tuple[str, Point], ...]
    asked: IntervalSpec
    is_in_pairs: bool
    with_first: str | None = None
    """The side that every other is compared with, where there are too many sides to compare every pair; else None."""

    @property
    def tests(self) -> int:
        """How many rank tests were made."""
        return sum(one.p_corrected is not None for one in self.all)

    @property
    def shown(self) -> tuple[PointComparison, ...]:
        """The comparisons in which a difference is claimed."""
        return tuple(one for one in self.all if one.claim.basis.is_shown)

    @property
    def rule(self) -> tuple[str, ...]:
        """The rule by which a difference is claimed and the number of comparisons, as sentences to be printed once."""
        return tuple(_explain_rule(self))


def compare_sides(
    sides: Sequence[Side],
    *,
    seed: int,
    in_rounds: bool = False,
    tests: Mapping[str, str] | None = None,
    points: Sequence[PointValues] | None = None,
) -> Comparisons:
    """Compares every pair of sides (with more than ``MOST_SIDES``, each with the first) at every point that both have.

    With ``in_rounds``, the n-th runs of all sides were made one right after the other, as turns are (core/turn.py);
    they are compared in pairs where there are enough of them for a test to show a difference. ``tests`` is described at
    ``point_of``. ``points`` is the result of ``match_sides`` for these sides, where the caller already has it.
    """
    asked = IntervalSpec(seed=seed)
    points = match_sides(sides, tests) if points is None else points
    names = [side.name for side in sides]
    found = [one for point in points for one in _compare_point(point, names, asked, in_rounds=in_rounds)]
    p_values = [_p_value(one) for one in found]
    corrected = iter(correct_by_holm(without_none(p_values)))
    tests_made = sum(p is not None for p in p_values)
    made = tuple(
        replace(one, p_corrected=None if p is None else next(corrected), made_together=tests_made)
        for one, p in zip(found, p_values, strict=True)
    )
    only = dict.fromkeys(
        (name, point.point) for point in points for name in names if name in point.of and len(point.of) < len(names)
    )
    is_in_pairs = any(one.comparison.kind.is_paired for one in made)
    return Comparisons(made, tuple(only), asked, is_in_pairs, names[0] if len(names) > MOST_SIDES else None)


def compare_results(of: Mapping[str, Sequence[Result]], *, seed: int, in_rounds: bool = False) -> Comparisons:
    """Compares sides by their results, each main value in the unit in which tables print it."""
    sides = [Side(name, tuple(results)) for name, results in of.items()]
    return compare_sides(sides, seed=seed, in_rounds=in_rounds, points=scale_units(match_sides(sides)))


def _compare_point(
    of: PointValues, names: Sequence[str], asked: IntervalSpec, *, in_rounds: bool
) -> Iterator[PointComparison]:
    there = [name for name in names if name in of.of]
    pairs = combinations(there, 2) if len(names) <= MOST_SIDES else ((name, there[0]) for name in there[1:])
    for first, second in pairs:
        yield _compare_pair(of, first, second, asked, in_rounds=in_rounds)


def _compare_pair(of: PointValues, first: str, second: str, asked: IntervalSpec, *, in_rounds: bool) -> PointComparison:
    one, other = of.of[first], of.of[second]
    fewest = fewest_runs(asked.level_ratio, paired=True)
    in_pairs = in_rounds and len(one) >= fewest and [ran.run for ran in one] == [ran.run for ran in other]
    make = compare_pairs if in_pairs else compare
    disturbed = [name for name in (first, second) if of.is_disturbed(name)]
    found = make((first, of.numbers(first)), (second, of.numbers(second)), asked)
    claim = claim_of(found, of.values(first), of.values(second), disturbed)
    return PointComparison(of.point, of.value, found, claim, None, 0)


def _p_value(one: PointComparison) -> float | None:
    """Returns the p-value of the rank test; None without a test, or with one from which nothing could be claimed."""
    test = one.comparison.test
    level = round(1.0 - one.comparison.effect.confidence_ratio, 12)
    if test is None or one.claim.basis in (Basis.TOO_FEW, Basis.DISTURBED) or not test.can_show(level):
        return None
    return test.p


def _quote_names(comparison: Comparison) -> Comparison:
    """Returns the comparison with the sides' names in quotation marks, because users chose these names."""
    first, second = (replace(side, name=f"“{side.name}”") for side in (comparison.first, comparison.second))
    claim = comparison.claim
    if claim.higher is not None:
        claim = replace(claim, higher=f"“{claim.higher}”", lower=f"“{claim.lower}”")
    return replace(comparison, first=first, second=second, claim=claim)


def _interval_text(lower: float, upper: float) -> str:
    return f"[{figures(lower)}, {'no bound' if math.isinf(upper) else figures(upper)}]"


def _explain_rule(found: Comparisons) -> Iterator[str]:
    level = found.asked.level_ratio
    confidence = f"{100.0 * found.asked.confidence_ratio:g} %"
    independent, pairs = (fewest_runs(level, paired=paired) for paired in (False, True))
    few = "a difference is claimed only for searched rates, where the intervals of all runs do not overlap"
    if all(max(one.comparison.first.sample.n, one.comparison.second.sample.n) < 2 for one in found.all):
        yield f"With one run of each, {few}. Disturbed results support no claim."
    else:
        yield (
            f"A difference is claimed where the {confidence} interval of the ratio of medians leaves out 1 and a rank "
            f"test has p of at most {level:g}, which needs at least {independent} runs of each; rates that a search "
            f"found must also lie farther apart than their intervals. With fewer runs, {few}. Disturbed results "
            "support no claim."
        )
    if found.with_first is not None:
        yield (
            f"There are more than {MOST_SIDES}: each is compared with the first, “{found.with_first}” (at a point that "
            "it lacks, with the first that has it), and not with the others."
        )
    if found.is_in_pairs:
        yield (
            "The n-th runs of all configurations were made one soon after the other: from "
            f"{pairs} runs of each on they are compared in pairs (signed ranks of Wilcoxon), so that slow changes "
            "cancel out."
        )
    elif found.tests:
        yield "Runs are compared as independent of one another (Mann-Whitney U)."
    if found.tests:
        held = sum(one.holds_together for one in found.all)
        by_runs = sum(one.claim.basis is Basis.RUNS for one in found.all)
        chance = level * found.tests
        text = f"{found.tests} comparison{' was' if found.tests == 1 else 's were'} tested"
        if found.tests > 1:
            text += (
                f"; if nothing differed, {level:g} x {found.tests} = {figures(chance, 2)} of them would be expected to "
                f"look like a difference. {by_runs} show a difference; corrected for all of them together (Holm) "
                f"{held} do"
            )
        yield f"{text}."
