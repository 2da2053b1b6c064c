"""The line behind an estimate, fitted again to the trials of a finished search: the rate at any share and clock.

A result has the rate of a core of its own at the stated clock, and its interval. A reader who wants to see whether the
model fits needs the line with the band about it, which follow from the same trials by the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.result import Bounded
from nicbench.search._estimating import Fit, clock_of, find_reference, fit_goal, stated_clock_hz
from nicbench.search.base import Goal, Limits, Sample

_AGREES = 0.1
"""A fit is the one behind a rate where the two differ by less than this share of the rate's interval."""


@dataclass(frozen=True)
class Span:
    """A rate and its interval, in frames per second."""

    lower: float
    middle: float
    upper: float


@dataclass(frozen=True)
class FittedLine:
    """The fitted rate of one goal. On a core of its own at the stated clock it is the ``stated`` rate, with exactly its
    interval.
    """

    fit: Fit
    stated: Span
    confidence: float

    @property
    def clock_hz(self) -> float | None:
        """The clock for which the rate is stated; None where nobody looked."""
        return stated_clock_hz(self.fit.samples)

    @property
    def reference_clock(self) -> ReferenceClock | None:
        """The clock of earlier runs for which the rate is stated; None where that is the highest one seen."""
        return find_reference(self.fit.samples)

    def at(self, share: float = 0.0, clock_hz: float | None = None) -> Span:
        """Returns the rate where this share of the looks finds the core slow, and it runs at this clock."""
        clock = clock_hz / self.clock_hz if clock_hz and self.clock_hz else 1.0
        middle = self.stated.middle * (1.0 - self.fit.slope * share) * (clock if self.fit.follows_clock else 1.0)
        tail = (1.0 - self.confidence) / 2.0
        lower, upper = (
            end * self.fit.posterior.rate(level, share, clock) / self.fit.posterior.rate(level)
            for end, level in ((self.stated.lower, tail), (self.stated.upper, 1.0 - tail))
        )
        return Span(min(lower, middle), middle, max(upper, middle))

    def left_by_others(self, sample: Sample) -> float:
        """Returns the part of the rate that others left to a trial, whatever the clock."""
        return 1.0 - self.fit.slope * (sample.slow_share or 0.0)

    def left_by_clock(self, sample: Sample) -> float:
        """Returns the part of the rate that the clock of a trial allowed, if the rate rather follows it than not."""
        return clock_of(sample, self.fit.samples) if self.fit.follows_clock else 1.0


def fit_line(
    samples: Sequence[Sample], goal: Goal, limits: Limits, confidence: float, rate: Bounded
) -> FittedLine | None:
    """Returns the line behind a rate; None where the rate is no estimate: only a bound, or what was seen."""
    if rate.value is None or rate.lower is None or rate.upper is None:
        return None
    found = fit_goal(samples, goal, limits, confidence)
    if found is None or found.misfit is not None:
        return None
    if abs(found.middle - rate.value) > _AGREES * (rate.upper - rate.lower):
        return None
    return FittedLine(found, Span(rate.lower, rate.value, rate.upper), confidence)
