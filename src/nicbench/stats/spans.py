"""What is known of a rate over all runs of a configuration, as one interval, and whether two can be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nicbench.model.rate import Bounded


@dataclass(frozen=True, slots=True)
class Span:
    """From the least load that a run passed to the highest that one failed; ``upper`` is infinite where none failed."""

    lower: float
    upper: float

    def is_above(self, other: Span) -> bool:
        """Whether every rate in it is higher than every one in the other: anything else is no difference."""
        return self.lower > other.upper

    def times(self, other: Span) -> tuple[float, float]:
        """How many times the other's rate this one's is: at least, and at most (infinite where nobody knows)."""
        least = 0.0 if math.isinf(other.upper) or other.upper == 0.0 else self.lower / other.upper
        most = math.inf if other.lower == 0.0 or math.isinf(self.upper) else self.upper / other.lower
        return least, most


def span_of(rates: Iterable[Bounded]) -> Span | None:
    """One interval that holds those of all runs; None where a run says nothing of the rate at all."""
    bounds = [bounds_of(rate) for rate in rates]
    known = [bound for bound in bounds if bound is not None]
    if not known or len(known) < len(bounds):
        return None
    return Span(min(lower for lower, _ in known), max(upper for _, upper in known))


def bounds_of(rate: Bounded) -> tuple[float, float] | None:
    """A rate that no load exceeded may be higher, unless the line carries no more."""
    if rate.value is None:
        return None if rate.upper is None else (0.0, rate.upper)
    lower = rate.value if rate.lower is None else rate.lower
    if rate.upper is not None:
        return lower, rate.upper
    return lower, (rate.value if rate.is_line_rate else math.inf)
