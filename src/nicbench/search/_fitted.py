"""The line behind an estimate: the rate at any share of slow looks, fitted again to the trials of a finished search.

A result has the rate of a core of its own, and its interval. A reader who wants to see whether the model fits needs the
line with the band about it, which follow from the same trials by the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.core.result import Bounded
from nicbench.search._estimating import Fit, fit_goal
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
    """The fitted rate of one goal. At a share of 0 it is exactly the ``stated`` rate with its interval."""

    fit: Fit
    stated: Span
    confidence: float

    def at(self, share: float) -> Span:
        """Returns the rate where this share of the looks found the core slow."""
        tail = (1.0 - self.confidence) / 2.0
        lower, middle, upper = (
            end * self.fit.posterior.rate(level, share) / self.fit.posterior.rate(level)
            for end, level in (
                (self.stated.lower, tail),
                (self.stated.middle, 0.5),
                (self.stated.upper, 1.0 - tail),
            )
        )
        return Span(lower, middle, upper)


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
