"""The one rule by which a difference between two sides is claimed, wherever nicbench compares. Pure.

Where both sides have runs enough for a rank test to show anything, the runs must show it (stats/compare.py); and of
rates that a search enclosed, the intervals of the median runs must not overlap, for a search is no finer than its
interval. With fewer runs only such intervals can show anything: those of all runs together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nicbench.core.result import Bounded, Value
from nicbench.stats.compare import ClaimOutcome, Comparison
from nicbench.stats.sample import Span, bounds_of, span_of


class Basis(StrEnum):
    """What a difference is claimed by; or why none is."""

    RUNS = "the runs"
    INTERVALS = "the intervals of all runs, which do not overlap"
    NOT_BY_RUNS = "the runs do not show it"
    SEARCHES_OVERLAP = "the intervals within which the median runs found their rates overlap"
    INTERVALS_OVERLAP = "the intervals of all runs overlap"
    TOO_FEW = "there are too few runs"

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference by it."""
        return self in (Basis.RUNS, Basis.INTERVALS)


@dataclass(frozen=True, slots=True)
class SideClaim:
    """``higher`` and ``lower`` name sides only where a difference is shown; ``spans`` are what intervals it rests on.

    ``is_at_least``: the higher side may do more than any load that was tried, so the ratio is a lower bound.
    """

    basis: Basis
    higher: str | None = None
    lower: str | None = None
    spans: tuple[Span, Span] | None = None
    is_at_least: bool = False

    def better(self, *, higher_is_better: bool | None) -> str | None:
        """The name of the better side; None where no difference is shown, or neither way is better."""
        return None if higher_is_better is None else self.higher if higher_is_better else self.lower


def claim_of(comparison: Comparison, first: Sequence[Value], second: Sequence[Value]) -> SideClaim:
    """``first`` and ``second`` are the values that the comparison was made of, as results have them."""
    names = (comparison.first.name, comparison.second.name)
    shown = comparison.claim.shown
    if shown in (ClaimOutcome.NO_INTERVAL, ClaimOutcome.TOO_FEW):
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
    """Of both sides, where each rate was found within an interval; None of plain numbers."""
    make = _median_span if of_median else span_of
    found = []
    for side in (first, second):
        rates = [value for value in side if isinstance(value, Bounded) and not value.is_bare]
        if not rates or len(rates) < len(side) or (span := make(rates)) is None:
            return None
        found.append(span)
    return found[0], found[1]


def _median_span(rates: Sequence[Bounded]) -> Span | None:
    """From the median of the highest loads that passed to that of the lowest that failed."""
    bounds = [bound for rate in rates if (bound := bounds_of(rate)) is not None]
    if not bounds:
        return None
    return Span(statistics.median(lower for lower, _ in bounds), statistics.median(upper for _, upper in bounds))
