"""Results: what a method concludes, in the form of summary.json, with rates, spreads and statistics.

The schema is docs/summary.schema.json.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, model_validator

from nicbench.core.base import Frozen, optional
from nicbench.core.judging import SampleKind, kind_of
from nicbench.core.reading import PortFigures
from nicbench.core.trial import contradiction_in_values
from nicbench.core.turn import DEFAULT, RunCounts

# The origin of imported results and the values that their source printed: kept in summary.json beside the values.


NOT_MEASURED: Final = "imported: not measured by nicbench"
"""How imported results are marked wherever they are shown."""


class PrintedValue(Frozen):
    """A value as its source printed it, with a decimal point and without thousands separators, and its unit."""

    text: str
    unit: str | None = None


class Erratum(Frozen):
    """A printed value that is implausible. ``computed`` is what would be consistent; ``place`` is line:column.

    ``computed`` is ``None`` where no consistent value can be computed: a negative latency is simply impossible. A value
    that ``stands`` is possible by itself but contradicts other tables of its source: it is listed and marked, and used
    as printed.
    """

    value: str
    place: str
    printed: str
    computed: str | None
    reason: str
    stands: bool = optional(False)


class ImportedRow(Frozen):
    """The origin of one result: its line in the file, the printed values, and which of them are implausible."""

    line: int
    printed: dict[str, PrintedValue]
    computed: tuple[str, ...] = ()
    """Names of values that the source does not print, and that follow from values that it does print."""
    errata: tuple[Erratum, ...] = ()


class ImportedFile(Frozen):
    """One of the source files of an import, kept unchanged in the run folder."""

    file: str
    sha256: str


class ImportCheck(Frozen):
    """One kind of consistency check on the printed figures of an import: ``what`` was compared, and how many times."""

    what: str
    comparisons: int


class ImportOrigin(Frozen):
    """The origin of an imported run: source and file. ``file`` lies unchanged in the run folder, as ``raw/NAME``."""

    statement: str = NOT_MEASURED
    source: str | None
    year: int | None
    device: str | None
    method: str
    format: str
    file: str
    sha256: str
    rows: int
    ignored_columns: tuple[str, ...] = ()
    more_files: tuple[ImportedFile, ...] = optional(())
    """All source files but the first, where there are several."""

    checks: tuple[ImportCheck, ...] = optional(())
    """The consistency checks that the printed figures underwent."""

    @property
    def named(self) -> str:
        """Describes the source: "Vendor, performance report (2019)"."""
        source = self.source or "a source that was not named"
        return f"{source} ({self.year})" if self.year is not None else source


# A measured rate: never a bare number, always with its interval and what limited it.


class LimitedBy(StrEnum):
    """What kept a rate from being higher."""

    DUT = "dut"
    TESTER = "tester"
    LINE_RATE = "line_rate"
    MAXIMUM_LOAD = "maximum_load"
    """The highest load that the bench file lets a search try."""

    @property
    def words(self) -> str:
        """The limit as a table names it."""
        return "DUT" if self is LimitedBy.DUT else self.value.replace("_", " ")


PASSES_NOTHING = "passes nothing"
"""The beginning of the reason where no frame came back at any load that was tried."""


class LossFloor(Frozen):
    """A share of the frames that is lost at any load up to ``up_to_frames_per_s``, with its 95 % interval (Poisson).

    A rate without loss then depends on the length of a trial alone: ``trials`` of ``trial_s`` seconds were counted.
    """

    ratio: float
    lower: float
    upper: float
    trials: int
    trial_s: float
    up_to_frames_per_s: float


class Queue(Frozen):
    """Frames that a DUT held back while a trial was sent: it took them faster than it forwards.

    ``frames`` is the most that came back after the sending had ended, ``burst_frames_per_s`` the highest load of which
    nothing was lost in ``trial_s`` (RFC 2544 section 26.1), although no queue bears it for long.
    """

    frames: float
    burst_frames_per_s: float
    trial_s: float


class Bounded(Frozen):
    """A value between two bounds that trials showed.

    ``lower`` is the highest load up to which every trial passed, ``upper`` the lowest load from which on none did;
    ``upper`` is ``None`` where the DUT passed the maximum load (then it has *at least* ``value``), ``lower`` and
    ``value`` are ``None`` where nothing passed (``reason_null`` says so). Where trials of the same load disagreed,
    ``some`` is the highest load that passed at all, and ``half`` the load that half of the trials passed; both are
    ``None`` where every trial up to ``value`` passed and none above it. A bare value, without bounds and limit, was
    measured by others, and its source does not state its precision.
    """

    value: float | None
    lower: float | None = None
    upper: float | None = None
    limited_by: LimitedBy | None = None
    n: int | None = None
    reason_null: str | None = None
    passes_nothing: bool = optional(False)
    """Whether no frame came back at any load that was tried: the value counts as 0 wherever runs are compared."""
    some: float | None = optional(None)
    half: float | None = optional(None)
    shared_core: bool = optional(False)
    """Whether other programs used the DUT's core in the trials that disagreed."""
    loss_floor: LossFloor | None = optional(None)
    """The loss at any load, where there is one: ``value`` is then the load at which half of the trials lose nothing."""
    queue: Queue | None = optional(None)
    """The queue that was filled at loads above ``value``, which passed a trial without loss all the same."""

    @property
    def at_least(self) -> bool:
        """Whether the true value may be higher than any load that was tried."""
        return self.value is not None and self.upper is None and not self.is_bare

    @property
    def is_zone(self) -> bool:
        """Whether trials between ``lower`` and ``upper`` disagreed: some passed, some failed."""
        return self.some is not None

    @property
    def is_bare(self) -> bool:
        """Whether nothing is known beyond the value."""
        return self.lower is None and self.upper is None and self.limited_by is None

    @property
    def is_line_rate(self) -> bool:
        """Whether the DUT passed the line rate."""
        return self.at_least and self.limited_by is LimitedBy.LINE_RATE

    @property
    def is_only_below(self) -> bool:
        """Whether every load that was tried failed: the value is unknown, and lies below ``upper``."""
        return self.value is None and self.upper is not None and not self.passes_nothing


# Statistics of one value over the runs of a configuration: centre, spread, intervals, and outliers.
#
# They are in the unit that the name of the value carries; docs/statistics.md gives formulas and sources.


class FoundInterval(Frozen):
    """A bootstrap interval over all runs, outliers included.

    ``notes`` say why the interval is missing, or what makes it less reliable.
    """

    lower: float | None = None
    upper: float | None = None
    confidence_ratio: float
    method: str
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()


class OutlierRun(Frozen):
    """A run whose value lies far from the others; it counts all the same."""

    run: int
    value: float


class RunStatistics(Frozen):
    """Statistics of the ``n`` runs that have the value. Statistics that need more runs are ``None``.

    ``sample_standard_deviation`` divides by n - 1 (the runs are a sample), ``population_standard_deviation`` by n (the
    runs are the whole population); ``coefficient_of_variation`` is the former over the absolute mean.
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
    """The rule by which a run is called an outlier."""
    outlier_note: str | None = None
    """The reason why the rule is of little or no use here, where that is so."""


# A value over the runs of a configuration: its median and its spread.
#
# No average represents the runs; the mean only serves to decide whether there are enough of them.


class MeanInterval(Frozen):
    """Confidence interval of the mean over the runs (``stats/intervals.py``), which decides on further runs.

    ``width_ratio`` is its full width as a share of the mean: unknown (None) for fewer than two values, and for a mean
    of 0 whose values differ. ``reached``: every run has a value, and the width is at most ``asked_ratio``.
    """

    mean: float
    lower: float | None = None
    upper: float | None = None
    confidence_ratio: float
    width_ratio: float | None = None
    asked_ratio: float
    reached: bool = False


class Spread(Frozen):
    """A value over several runs: its median and spread over the ``n`` of ``runs`` runs that have the value.

    A run in which the DUT passed nothing has it: it counts as 0. ``at_least``: the true median may be higher.
    """

    median: float
    minimum: float
    maximum: float
    n: int
    runs: int
    at_least: bool = False
    limited_by: LimitedBy | None = None
    """What limited a rate, where that is the same in all runs."""
    of_mean: MeanInterval | None = optional(None)
    """The interval of the mean of a main value, where runs are repeated until it is narrow."""
    statistics: RunStatistics | None = optional(None)
    """The statistics of a main value."""

    @classmethod
    def of(cls, values: Sequence[float | Bounded], runs: int) -> Spread:
        """Makes a spread of the known values of the given number of runs."""
        known = [number for value in values if (number := counted_number(value)) is not None]
        median = statistics.median(known)
        middle = sorted(known)[len(known) // 2]  # of an even number the median is the mean of this and the one before
        rates = [value for value in values if isinstance(value, Bounded)]
        limits = {rate.limited_by for rate in rates}
        return cls(
            median=median,
            minimum=min(known),
            maximum=max(known),
            n=len(known),
            runs=runs,
            at_least=any(rate.at_least and rate.value is not None and rate.value <= middle for rate in rates),
            limited_by=limits.pop() if len(limits) == 1 and len(known) == runs else None,
        )

    @property
    def passes_nothing(self) -> bool:
        """Of a rate: whether the DUT passed nothing in every run that has the value."""
        return self.minimum == self.maximum == 0.0

    @property
    def magnitude(self) -> float:
        """The number by which unit and digits are chosen: the median, where that is 0 the highest."""
        return self.median or self.maximum

    @property
    def is_line_rate(self) -> bool:
        """Whether the DUT passed the line rate in every run."""
        is_one = self.n == self.runs and self.minimum == self.maximum
        return self.at_least and is_one and self.limited_by is LimitedBy.LINE_RATE


class ResultVerdict(StrEnum):
    """Whether a result, or a run, may be relied on."""

    VALID = "valid"
    DISTURBED = "disturbed"
    INCOMPLETE = "incomplete"
    IMPORTED = "imported"
    """Not measured by nicbench, which cannot judge the measurement."""

    @property
    def is_reliable(self) -> bool:
        """Whether a claim may rest on it."""
        return self in (ResultVerdict.VALID, ResultVerdict.IMPORTED)


Value = Bounded | Spread | float | int | str | None
"""A value of a result; a ``Spread`` occurs only in results over several runs."""


def number_of(value: Value) -> float | None:
    """Returns a value as a number where it is one; for a value over several runs, the median."""
    if isinstance(value, Spread):
        return value.median
    if isinstance(value, Bounded):
        return value.value
    return None if value is None or isinstance(value, str) else float(value)


RATE = "_frames_per_s"
"""The end of the name of a rate."""


def counted_number(value: Value) -> float | None:
    """Returns a value as every statistic over runs counts it: ``number_of``, and 0 for a DUT that passes nothing.

    None, which is left out and counted as missing, where the value is unknown or only known to lie below a bound.
    """
    return 0.0 if isinstance(value, Bounded) and value.passes_nothing else number_of(value)


class NearLimit(Frozen):
    """One value so close to the tester's own ``limit`` (both names in ``values``) that it may be the tester's."""

    value: str
    limit: str
    text: str


class Result(Frozen):
    """One row: one test, one configuration, one set of parameters. Names in ``values`` carry their unit."""

    id: str
    test: str | None = optional(None)
    """The test's name in the bench file."""
    method: str
    configuration: str = DEFAULT
    run: int | None = optional(None)
    """The number of the run of the configuration, from 1; None for a result over all runs."""
    warm_up: bool = optional(False)
    """Whether the result is of a warm-up run, which is shown and enters no conclusion."""
    scope: str = "default"
    parameters: dict[str, Any]
    values: dict[str, Value]
    verdict: ResultVerdict = ResultVerdict.VALID
    disturbed_runs: int = optional(0)
    """How many runs are disturbed, in a result over several; its verdict may be a worse one."""
    contradicted_by: tuple[str, ...] = optional(())
    """The later trials that contradict it, where they alone are why it is disturbed."""
    disturbances: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    near_tester_limit: tuple[NearLimit, ...] | None = optional(None)
    """The values close to the tester's own limit; None where it is not known."""
    by_port: PortFigures | None = optional(None)
    """The figures of each port, each way, and in total, where several ways between ports carried traffic at once."""
    imported: ImportedRow | None = optional(None)
    """The origin of a result that was not measured by nicbench."""

    @model_validator(mode="after")
    def _can_be(self) -> Result:
        if self.imported is not None:  # it is as its source prints it, and its errata say what cannot be
            return self
        of_ports = self.by_port
        parts = () if of_ports is None else (of_ports.combined, *of_ports.ways, *of_ports.ports)
        for values in (self.values, *map(dict, parts)):
            if (why := contradiction_in_values(values)) is not None:
                raise ValueError(f"{self.id}: {why}")
        return self

    @property
    def measured_by(self) -> SampleKind | None:
        """The kind of the samples whose ids are in ``trials`` (rounds included); None without samples."""
        return kind_of(self.trials[0]) if self.trials else None

    @property
    def run_number(self) -> int | None:
        """The number of the run; for imported results possibly from a parameter; None where runs are not numbered."""
        if self.run is not None:
            return self.run
        run = self.parameters.get("run")
        return run if isinstance(run, int) else None


def name_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """Returns the name of a result's test; where an old result lacks it, ``tests`` maps the result's id to the name."""
    return result.test or tests.get(result.id, result.id.partition("/")[0])


def title_of_test(result: Result, tests: Mapping[str, str]) -> str:
    """Returns the name of a result's test, followed by the configuration where configurations are compared."""
    name = name_of_test(result, tests)
    return name if result.configuration == DEFAULT else f"{name} ({result.configuration})"


class Summary(Frozen):
    """The content of summary.json."""

    format: str = "1.7"
    title: str
    verdict: ResultVerdict
    results: tuple[Result, ...] = Field(default_factory=tuple)
    configurations: tuple[str, ...] = optional(())
    """The names of the compared configurations, in the order of the bench file."""
    over_runs: tuple[Result, ...] = optional(())
    """Each point over all runs, numbers as median and range, where each configuration has several runs."""
    imported: ImportOrigin | None = optional(None)
    """The source of results that were not measured by nicbench."""
    runs: RunCounts | None = optional(None)
    """The numbers of runs, where there are warm-up runs or the number of runs is not fixed."""
    headline: str | None = optional(None)
    """The answer in a few words, as lists show it."""

    @property
    def counted(self) -> tuple[Result, ...]:
        """The results without those of warm-up runs: the basis of all conclusions."""
        return tuple(result for result in self.results if not result.warm_up)

    @property
    def beside_each_other(self) -> tuple[Result, ...]:
        """The results to compare, over all runs where there are several, by configuration in the bench file's order."""
        results = self.over_runs or self.counted
        order = {name: number for number, name in enumerate(self.configurations)}
        return tuple(sorted(results, key=lambda result: order.get(result.configuration, 0)))
