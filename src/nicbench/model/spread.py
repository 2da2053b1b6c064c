"""A value over the runs of a configuration: its median, and how far the runs lie apart.

No average stands for the runs; the mean serves to tell whether they are enough.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.rate import Bounded, LimitedBy
from nicbench.model.statistics import RunStatistics


class MeanInterval(Frozen):
    """Confidence interval of the mean over the runs (``stats/intervals.py``), which a number that grows waits for.

    ``width_ratio`` is its full width as a share of the mean: unknown (None) of fewer than two values, and of a mean of
    0 whose values differ. ``reached``: every run has a value, and the width is at most ``asked_ratio``.
    """

    mean: float
    lower: float | None = None
    upper: float | None = None
    confidence_ratio: float
    width_ratio: float | None = None
    asked_ratio: float
    reached: bool = False


class Spread(Frozen):
    """Of ``runs`` runs, the ``n`` that have a value. ``at_least``: the median may be higher."""

    median: float
    minimum: float
    maximum: float
    n: int
    runs: int
    at_least: bool = False
    limited_by: LimitedBy | None = None
    """What limited a rate, where that is the same in all runs."""
    of_mean: MeanInterval | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.4, of a main value where the number of runs grows until this interval is narrow."""
    statistics: RunStatistics | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.5, of a main value."""

    @classmethod
    def of(cls, values: Sequence[float | Bounded], runs: int) -> Spread:
        """Values that are known, of so many runs."""
        numbers = [value.value if isinstance(value, Bounded) else value for value in values]
        known = [float(number) for number in numbers if number is not None]
        median = statistics.median(known)
        rates = [value for value in values if isinstance(value, Bounded)]
        limits = {rate.limited_by for rate in rates}
        return cls(
            median=median,
            minimum=min(known),
            maximum=max(known),
            n=len(known),
            runs=runs,
            at_least=any(rate.at_least and rate.value is not None and rate.value <= median for rate in rates),
            limited_by=limits.pop() if len(limits) == 1 else None,
        )

    @property
    def is_line_rate(self) -> bool:
        """Whether the DUT passed the most that the line carries, in every run."""
        return self.at_least and self.minimum == self.maximum and self.limited_by is LimitedBy.LINE_RATE
