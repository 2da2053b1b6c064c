"""What the runs of each configuration come to in each main value: the rows of a table for each test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.compare.points import PointValues
from nicbench.core.result import RunStatistics
from nicbench.core.turn import DEFAULT
from nicbench.report.numbers import UNKNOWN
from nicbench.stats.bootstrap import IntervalSpec
from nicbench.stats.runs import describe_runs

FEWEST_RUNS: Final = 2


@dataclass(frozen=True, slots=True)
class OverRuns:
    """One main value of one point of one configuration; numbers are in ``unit``.

    ``runs`` are the numbers of its runs with their values, None where a run has none.
    """

    of: PointValues
    configuration: str
    runs: tuple[tuple[int, float | None], ...]
    found: RunStatistics

    @property
    def unit(self) -> str:
        """Of the value, "" of none."""
        return self.of.value.quantity.unit

    @property
    def point(self) -> str:
        """In the first column: the circumstances, else the test."""
        text = self.of.point.circumstances or self.of.point.test
        return f"{text[:1].upper()}{text[1:]}"

    @property
    def counted(self) -> str:
        """How many runs have the value: "15", "14 of 15"."""
        return f"{self.found.n}" if self.found.n == len(self.runs) else f"{self.found.n} of {len(self.runs)}"

    @property
    def outliers(self) -> str:
        """The runs that lie far off: "3, 7"; a dash where there is none."""
        return ", ".join(f"{one.run}" for one in self.found.outliers) or UNKNOWN


@dataclass(frozen=True, slots=True)
class TestStatistics:
    """The rows of one test."""

    __test__ = False

    test: str
    rows: tuple[OverRuns, ...]

    @property
    def points(self) -> int:
        """How many charts there would be of all."""
        return len({(row.of.point.given, row.of.value.name) for row in self.rows})

    @property
    def compares(self) -> bool:
        """Whether configurations must be named."""
        return {row.configuration for row in self.rows} != {DEFAULT}

    @property
    def values(self) -> bool:
        """Whether there are several main values, so that each row must say which it is of."""
        return len({row.of.value.name for row in self.rows}) > 1

    @property
    def with_outliers(self) -> tuple[OverRuns, ...]:
        """Rows in which a run lies far off."""
        return tuple(row for row in self.rows if row.found.outliers)

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes intervals worth less, each once with how many it is about."""
        counts: dict[str, int] = {}
        for row in self.rows:
            for note in dict.fromkeys((*row.found.median_interval.notes, *row.found.mean_interval.notes)):
                counts[note] = counts.get(note, 0) + 1
        many = len(self.rows)
        return tuple(f"{note} ({count} of {many} rows)" if many > 1 else note for note, count in counts.items())


def statistics_over_runs(
    points: Iterable[PointValues], configurations: Sequence[str], asked: IntervalSpec
) -> tuple[TestStatistics, ...]:
    """Of those that several runs measured, in the order of the results."""
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
