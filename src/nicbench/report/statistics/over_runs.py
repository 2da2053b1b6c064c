"""Statistics of each configuration's main values over its runs: the rows of a table for each test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.compare.points import PointValues
from nicbench.core.result import RunStatistics
from nicbench.core.turn import DEFAULT
from nicbench.report.numbers import UNKNOWN
from nicbench.stats.intervals import IntervalSpec
from nicbench.stats.runs import describe_runs

FEWEST_RUNS: Final = 2


@dataclass(frozen=True, slots=True)
class OverRuns:
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
        """The text of the first column: the circumstances of the point, or the test's name if there are none."""
        text = self.of.point.circumstances or self.of.point.test
        return f"{text[:1].upper()}{text[1:]}"

    @property
    def counted(self) -> str:
        """The number of runs that have the value: "15", "14 of 15"."""
        return f"{self.found.n}" if self.found.n == len(self.runs) else f"{self.found.n} of {len(self.runs)}"

    @property
    def outliers(self) -> str:
        """The numbers of the outlier runs: "3, 7"; a dash if there are none."""
        return ", ".join(f"{one.run}" for one in self.found.outliers) or UNKNOWN


@dataclass(frozen=True, slots=True)
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
        """Whether configurations must be named, because there is any besides the default."""
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
