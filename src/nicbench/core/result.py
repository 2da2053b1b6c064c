"""Results: what a method concludes, in the shape of summary.json (docs/summary.schema.json), with its rates, spreads
and statistics.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.imported import ImportedRow, ImportOrigin
from nicbench.core.reading import PortFigures
from nicbench.core.turn import DEFAULT, RunCounts
from nicbench.core.verdict import SampleKind, kind_of

# A measured rate: never a bare number, always with its interval and what limited it.


class LimitedBy(StrEnum):
    """What stopped a rate from being higher."""

    DUT = "dut"
    TESTER = "tester"
    LINE_RATE = "line_rate"


PASSES_NOTHING = "passes nothing"
"""How the reason begins where no frame came back at any load that was tried."""


class Bounded(Frozen):
    """A value with the interval known to hold it.

    ``lower`` is the highest load that passed, ``upper`` the lowest that failed; ``upper`` is ``None`` where the DUT
    passed the maximum load (then it has *at least* ``value``), ``lower`` and ``value`` are ``None`` where nothing
    passed (``reason_null`` says so). A bare value, without bounds and limit, is somebody else's: how exact it is, its
    source does not say.
    """

    value: float | None
    lower: float | None = None
    upper: float | None = None
    limited_by: LimitedBy | None = None
    n: int | None = None
    reason_null: str | None = None

    @property
    def at_least(self) -> bool:
        """Whether the true value may be higher than any load that was tried."""
        return self.value is not None and self.upper is None and not self.is_bare

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known beside the value."""
        return self.lower is None and self.upper is None and self.limited_by is None

    @property
    def is_line_rate(self) -> bool:
        """Whether the DUT passed the most that the line carries."""
        return self.at_least and self.limited_by is LimitedBy.LINE_RATE

    @property
    def passes_nothing(self) -> bool:
        """Whether no frame came back at any load that was tried."""
        return self.value is None and (self.reason_null or "").startswith(PASSES_NOTHING)


# What the runs of a configuration come to in one value: centre, spread, intervals, and which runs lie far off.
#
# In the unit of the value, which its name carries; by which formula and after which source says docs/statistics.md.


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


# A value over the runs of a configuration: its median, and how far the runs lie apart.
#
# No average stands for the runs; the mean serves to tell whether they are enough.


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


class ResultVerdict(StrEnum):
    """Whether a result, or a run, may be relied on."""

    VALID = "valid"
    ADJUSTED = "adjusted"
    """Since format 1.5: others used the DUT's core in some trials, and the result allows for it."""
    DISTURBED = "disturbed"
    INCOMPLETE = "incomplete"
    IMPORTED = "imported"
    """Since format 1.3: not measured by nicbench, which can say nothing of how it was."""


Value = Bounded | Spread | float | int | str | None
"""A ``Spread`` only in results over several runs."""


def number_of(value: Value) -> float | None:
    """A value as a number where it is one: of several runs their median."""
    if isinstance(value, Spread):
        return value.median
    if isinstance(value, Bounded):
        return value.value
    return None if value is None or isinstance(value, str) else float(value)


class NearLimit(Frozen):
    """One value so near to the tester's own ``limit`` (both names in ``values``) that it may be the tester's."""

    value: str
    limit: str
    text: str


class Result(Frozen):
    """One row: one test, one configuration, one set of parameters. Names in ``values`` carry their unit."""

    id: str
    test: str | None = Field(default=None, exclude_if=lambda found: found is None)
    """The test's name in the bench file; not written before format 1.2."""
    method: str
    configuration: str = DEFAULT
    run: int | None = Field(default=None, exclude_if=lambda run: run is None)
    """Of the configuration, from 1; None over all its runs, and not written before format 1.2."""
    warm_up: bool = Field(default=False, exclude_if=lambda warm_up: not warm_up)
    """Since format 1.4: of a run that warms up, which is shown and part of nothing that is concluded."""
    scope: str = "default"
    parameters: dict[str, Any]
    values: dict[str, Value]
    verdict: ResultVerdict = ResultVerdict.VALID
    disturbances: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    near_tester_limit: tuple[NearLimit, ...] | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.1, which always says it; None, and not written, in a result of format 1.0."""
    by_port: PortFigures | None = Field(default=None, exclude_if=lambda found: found is None)
    """Where several ways between ports carried traffic at once: each port, each way, and all together."""
    imported: ImportedRow | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.3, of a result that was not measured by nicbench."""

    @property
    def measured_by(self) -> SampleKind | None:
        """The kind of the samples behind it (``trials`` has their ids, those of rounds too); None without any."""
        return kind_of(self.trials[0]) if self.trials else None

    @property
    def run_number(self) -> int | None:
        """Of which run it is: its own word, or of an imported one its parameter; None where nobody numbered any."""
        if self.run is not None:
            return self.run
        run = self.parameters.get("run")
        return run if isinstance(run, int) else None


def name_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """The name of its test; where the result is too old to say it, ``tests`` may, by the result's id."""
    return result.test or tests.get(result.id, result.id.partition("/")[0])


def title_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """The name of its test, and whose it is where configurations are compared."""
    name = name_of_test(result, tests)
    return name if result.configuration == DEFAULT else f"{name} ({result.configuration})"


class Summary(Frozen):
    """The whole of summary.json."""

    format: str = "1.5"
    title: str
    verdict: ResultVerdict
    results: tuple[Result, ...] = Field(default_factory=tuple)
    configurations: tuple[str, ...] = Field(default=(), exclude_if=lambda names: names == ())
    """Those that are compared, in the order of the bench file."""
    over_runs: tuple[Result, ...] = Field(default=(), exclude_if=lambda results: results == ())
    """Where each configuration has several runs: each point over all of them, numbers as median and range."""
    imported: ImportOrigin | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.3, of results that were not measured by nicbench: their source."""
    runs: RunCounts | None = Field(default=None, exclude_if=lambda found: found is None)
    """Since format 1.4, where runs warm up or their number grows."""

    @property
    def counted(self) -> tuple[Result, ...]:
        """The results without those of runs that warm up: what conclusions rest on."""
        return tuple(result for result in self.results if not result.warm_up)

    @property
    def beside_each_other(self) -> tuple[Result, ...]:
        """What is compared, over the runs where there are several: configurations in the order of the bench file."""
        results = self.over_runs or self.counted
        order = {name: number for number, name in enumerate(self.configurations)}
        return tuple(sorted(results, key=lambda result: order.get(result.configuration, 0)))
