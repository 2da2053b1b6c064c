"""Statistics of each configuration's main values over its runs: the rows of a table for each test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from nicbench.compare.claims import Basis, Comparisons, PointComparison, compare_sides
from nicbench.compare.points import Point, PointValues, Side, match_sides, scale_units, seed_of
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped, without_none
from nicbench.core.plan import Plan
from nicbench.core.registry import find
from nicbench.core.result import Result, RunStatistics, Summary
from nicbench.core.turn import DEFAULT
from nicbench.methods.base import Method
from nicbench.report.numbers import UNKNOWN
from nicbench.report.wording import capitalise
from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.drift import Drift, Drifts, find_drifts
from nicbench.stats.runs import describe_runs
from nicbench.stats.sample import Series
from nicbench.stats.wording import drift_sentence, drift_summary

FEWEST_RUNS: Final = 2


class OverRuns(NamedTuple):
    """The statistics of one main value at one point in one configuration; numbers are in ``unit``.

    ``runs`` pairs the number of each run with its value, None where the run has none.
    """

    of: PointValues
    configuration: str
    runs: tuple[tuple[int, float | None], ...]
    found: RunStatistics

    @property
    def unit(self) -> str:
        """The unit of the value; "" for a value without unit."""
        return self.of.value.quantity.unit

    @property
    def point(self) -> str:
        """The text of the first column: the circumstances of the point, or else the test's name."""
        text = self.of.point.circumstances or self.of.point.test
        return capitalise(text)

    @property
    def counted(self) -> str:
        """The number of runs that have the value: "15", "14 of 15"."""
        return f"{self.found.n}" if self.found.n == len(self.runs) else f"{self.found.n} of {len(self.runs)}"

    @property
    def outliers(self) -> str:
        """The numbers of the outlier runs: "3, 7"; a dash without outliers."""
        return ", ".join(f"{one.run}" for one in self.found.outliers) or UNKNOWN


@frozen
class TestStatistics:
    """The rows of statistics of one test."""

    __test__ = False

    test: str
    rows: tuple[OverRuns, ...]

    @property
    def points(self) -> int:
        """The number of charts if every point and value were drawn."""
        return len({(row.of.point.given, row.of.value.name) for row in self.rows})

    @property
    def compares(self) -> bool:
        """Whether configurations must be named, because there is any other than the default."""
        return {row.configuration for row in self.rows} != {DEFAULT}

    @property
    def values(self) -> bool:
        """Whether there are several main values, so that each row must name its own."""
        return len({row.of.value.name for row in self.rows}) > 1

    @property
    def with_outliers(self) -> tuple[OverRuns, ...]:
        """The rows in which a run is an outlier."""
        return tuple(row for row in self.rows if row.found.outliers)

    @property
    def notes(self) -> tuple[str, ...]:
        """What weakens the intervals, each note once with the number of rows that it concerns."""
        counts: dict[str, int] = {}
        for row in self.rows:
            for note in dict.fromkeys((*row.found.median_interval.notes, *row.found.mean_interval.notes)):
                counts[note] = counts.get(note, 0) + 1
        many = len(self.rows)
        return tuple(f"{note} ({count} of {many} rows)" if many > 1 else note for note, count in counts.items())


def statistics_over_runs(
    points: Iterable[PointValues], configurations: Sequence[str], asked: IntervalSpec
) -> tuple[TestStatistics, ...]:
    """Returns the rows of each test for points measured in two runs or more, in the order of the results."""
    by_test: dict[str, list[OverRuns]] = {}
    for of in points:
        for name in configurations:
            ran = of.of.get(name, ())
            if len(ran) < FEWEST_RUNS:
                continue
            runs = [one.run or place for place, one in enumerate(ran, start=1)]
            numbers = of.numbers(name)
            found = describe_runs(runs, numbers, asked)
            if found is not None:
                pairs = tuple(zip(runs, numbers, strict=True))
                by_test.setdefault(of.point.test, []).append(OverRuns(of, name, pairs, found))
    return tuple(TestStatistics(test, tuple(rows)) for test, rows in by_test.items())


_FEWEST_RUNS: Final = 3
_MOST_MOMENTS: Final = 200
"""Maximum length of a series; in a longer one, consecutive intervals are replaced by their median."""


class Drifting(NamedTuple):
    """One family of drift tests, over runs or over the intervals of a run; ``what`` is "run" or "interval"."""

    what: str
    found: Drifts

    @property
    def sentence(self) -> str:
        """A sentence that says how many of how many series drift, and by how many tests."""
        text = drift_summary(self.found)
        if self.what != "run":
            text = text.replace("over the run", "within a run").replace("too few runs", f"too few {self.what}s")
        return f"{capitalise(text)}."

    @property
    def rows(self) -> tuple[Drift, ...]:
        """The series that drift."""
        return self.found.shown

    def words(self, drift: Drift) -> str:
        """Returns how far a series moved and by which test, without the name of the series."""
        text = drift_sentence(drift).removeprefix(f"{drift.name}: ")
        return text if self.what == "run" else text.replace(" runs", f" {self.what}s")


def drift_over_runs(points: Iterable[PointValues], configurations: Sequence[str]) -> Drifting | None:
    """Tests for drift over runs; None where nothing was measured in at least three runs."""
    series = [
        Series(_name(name, of), of.numbers(name))
        for of in points
        for name in configurations
        if len(of.of.get(name, ())) >= _FEWEST_RUNS
    ]
    return Drifting("run", find_drifts(series)) if series else None


def drift_within_runs(results: Iterable[Result]) -> Drifting | None:
    """Tests for drift within a run, for methods that measure in intervals; None where none did."""
    methods = find("nicbench.methods", Method)
    by_method = grouped((result.method, result) for result in results if not result.warm_up)
    series = [
        _thin_out(one)
        for method, members in by_method.items()
        if method in methods
        for one in methods[method].series_within_run(tuple(members))
        if len(one.values) >= _FEWEST_RUNS
    ]
    return Drifting("interval", find_drifts(series)) if series else None


def _name(configuration: str, of: PointValues) -> str:
    whose = "" if configuration == DEFAULT else f"“{configuration}”: "
    return f"{whose}{of.point.words}, {of.value.quantity.name}"


def _thin_out(series: Series) -> Series:
    """Shortens a long series to medians: trend tests over thousands of intervals take minutes and show no more."""
    step = -(-len(series.values) // _MOST_MOMENTS)
    if step == 1:
        return series
    import statistics

    medians = []
    for begin in range(0, len(series.values), step):
        known = without_none(series.values[begin : begin + step])
        medians.append(statistics.median(known) if known else None)
    return Series(f"{series.name} (medians of {step} intervals each)", medians)


class StatisticsView(NamedTuple):
    """All statistics of a page; a single configuration has no ``comparisons``; all intervals use ``seed``."""

    seed: int
    resamples: int
    tests: tuple[TestStatistics, ...]
    comparisons: Comparisons | None
    drift: Drifting | None
    drift_within: Drifting | None

    @property
    def differences(self) -> tuple[PointComparison, ...]:
        """All comparisons; none where every one of them had too few runs to show anything."""
        found = self.comparisons.all if self.comparisons else ()
        return found if any(one.claim.basis is not Basis.TOO_FEW for one in found) else ()

    @property
    def compared_values(self) -> int:
        """The number of main values that were compared."""
        return len({one.value.name for one in self.differences})

    @property
    def is_empty(self) -> bool:
        """Whether statistics to print are missing."""
        return not (self.tests or self.differences or self.drift_within)

    def of(self, point: Point, value: str) -> tuple[PointComparison, ...]:
        """Returns the comparisons of one main value at one point."""
        found = self.comparisons.all if self.comparisons else ()
        return tuple(one for one in found if one.point == point and one.value.name == value)


def statistics_view(summary: Summary, tests: Mapping[str, str], plan: Plan | None, run_id: str) -> StatisticsView:
    """Computes the statistics of a page; ``tests`` maps a result's id to the name of its test."""
    counted = summary.counted
    names = summary.configurations or tuple(dict.fromkeys(result.configuration for result in counted))
    sides = [Side(name, tuple(one for one in counted if one.configuration == name)) for name in names]
    points = scale_units(match_sides(sides, tests))
    asked = IntervalSpec(seed=seed_of(run_id))
    in_rounds = bool(plan and plan.turns) and not summary.imported
    return StatisticsView(
        seed=asked.seed,
        resamples=asked.resamples,
        tests=statistics_over_runs(points, names, asked),
        comparisons=compare_sides(sides, seed=asked.seed, in_rounds=in_rounds, points=points)
        if len(sides) > 1
        else None,
        drift=drift_over_runs(points, names),
        drift_within=drift_within_runs(counted),
    )


__all__ = ["OverRuns", "StatisticsView", "statistics_view"]
