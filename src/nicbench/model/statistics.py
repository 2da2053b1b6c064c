"""What the runs of a configuration come to in one value: centre, spread, intervals, and which runs lie far off.

In the unit of the value, which its name carries; by which formula and after which source says docs/statistics.md.
"""

from __future__ import annotations

from nicbench.model.base import Frozen


class FoundInterval(Frozen):
    """A bootstrap interval of all runs, outliers too. ``notes`` say why there is none, or what makes it worth less."""

    lower: float | None = None
    upper: float | None = None
    confidence_ratio: float
    method: str
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()


class OutlierRun(Frozen):
    """A run that lies far from the others; it counts all the same."""

    run: int
    value: float


class RunStatistics(Frozen):
    """Of the ``n`` runs that have the value. What cannot be said of so few is None.

    ``sample_standard_deviation`` divides by n - 1 (the runs stand for all that could be made),
    ``population_standard_deviation`` by n (they are all there is); ``coefficient_of_variation`` is the former over the
    absolute mean.
    """

    n: int
    mean: float
    median: float
    minimum: float
    maximum: float
    sample_standard_deviation: float | None = None
    population_standard_deviation: float | None = None
    coefficient_of_variation: float | None = None
    median_interval: FoundInterval
    mean_interval: FoundInterval
    outliers: tuple[OutlierRun, ...] = ()
    outlier_rule: str
    """By which a run is called one."""
    outlier_note: str | None = None
    """Where the rule is of no use, or of little."""
