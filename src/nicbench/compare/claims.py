"""The single rule by which a difference between two sides is claimed, wherever nicbench compares results.

Everything here is a pure function. Where both sides have enough runs for a rank test to show a difference, the runs
must show it (stats/compare.py). For rates that a search enclosed in intervals, the intervals of the median runs must
also not overlap, because a search is no finer than its interval. With fewer runs, only the intervals of all runs
together can show a difference; so also where a run tells only what its rate lies below, for it cannot be ranked.
Of disturbed results nothing is claimed: what disturbed a side may be the difference.
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


@dataclass(frozen=True, slots=True)
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
