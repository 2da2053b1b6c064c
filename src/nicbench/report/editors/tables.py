"""The tables of a study: sums by run and what they amount to, streams sustained, and each instance of each run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Final

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import fill_digits, printed_digits
from nicbench.report.editors.study import OneWay, Study
from nicbench.report.editors.words import held_text, rate_decimals, rate_text, share_text
from nicbench.report.numbers import UNKNOWN, mebibytes, megabytes, whole
from nicbench.stats.frames import RATE, SUM, FilmRun, RunFigures, TriedPoint, trusted_number

MOST_COLUMNS: Final = 26
"""Maximum number of columns in one table of numbers; with more, each configuration has a table of its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: ``met`` is None without a target, ``result`` is its origin, ``beneath`` is text printed below."""

    text: str
    met: bool | None = None
    result: Result | None = None
    beneath: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; with ``is_sum`` it is computed from the rows above it."""

    head: str
    cells: tuple[Cell, ...]
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class SumTable:
    """The sum of each run by configuration (``heads``) and number of instances, then averages, medians and targets."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]

    @property
    def firsts(self) -> tuple[bool, ...]:
        """For each column, whether it is the first one of a configuration other than the leftmost."""
        return tuple(place > 0 and name != self.columns[place - 1][0] for place, (name, _) in enumerate(self.columns))

    @property
    def heads(self) -> tuple[tuple[str, int], ...]:
        """Each configuration and the number of columns that it spans."""
        return tuple((name, len(list(same))) for name, same in groupby(name for name, _ in self.columns))


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure over all runs other than their sums: a row per configuration, a column per number of instances."""

    head: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class SustainedRow:
    """Numbers of instances that one configuration sustained, as text; ``runs``: how many runs each number had."""

    direction: str | None
    configuration: str
    tried: str
    runs: str
    in_every_run: str
    in_median_run: str
    by_every_instance: str


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """The instances of one configuration and number of instances: a column for each run, below it what limited it."""

    configuration: str
    instances: int
    runs: tuple[int, ...]
    rows: tuple[Row, ...]
    limits: tuple[str, ...]


def sum_tables(way: OneWay) -> tuple[SumTable, ...]:
    """Returns one table with all configurations side by side, or one for each where it would have too many columns."""
    if len(way.columns) <= MOST_COLUMNS:
        return (_sum_table(way, way.columns),)
    return tuple(
        _sum_table(way, tuple(column for column in way.columns if column[0] == name)) for name in way.configurations
    )


def measures(way: OneWay) -> tuple[Measure, ...]:
    """Returns the measures that are known: shares that met the target, dropped frames, fairness and MB/s."""
    found = (
        Measure(
            head,
            tuple(
                Row(name, tuple(Cell(_words_of(way.at.get((name, count)), text)) for count in way.counts))
                for name in way.configurations
            ),
        )
        for head, text in _MEASURES.items()
        if way.has_several_runs or head != _FAIRNESS_LEAST
    )
    return tuple(each for each in found if any(cell.text != UNKNOWN for row in each.rows for cell in row.cells))


def sustained_rows(study: Study) -> tuple[SustainedRow, ...]:
    """Returns a row for each direction and configuration that has a target."""
    return tuple(
        SustainedRow(
            direction=way.direction,
            configuration=name,
            tried=_span(sorted(way.figures_over_runs(name))),
            runs=_span(sorted({over.runs for over in way.figures_over_runs(name).values()})),
            in_every_run=held_text(found.in_every_run),
            in_median_run=held_text(found.in_median_run),
            by_every_instance=held_text(found.by_every_instance),
        )
        for way in study.ways
        for name in way.configurations
        if (found := way.sustained_instances(name)) is not None
    )


def instance_tables(way: OneWay) -> tuple[InstanceTable, ...]:
    """Returns tables by number of instances, then configuration, where the rates of single instances are known."""
    return tuple(
        _instance_table(name, way.at[name, count])
        for count in way.counts
        for name in way.configurations
        if (name, count) in way.at and any(ran.instances for ran in way.at[name, count].runs)
    )


_SUM: Final = Column(value=SUM, head="Sum", unit="fps")
_RATE: Final = Column(value=RATE, head="Rate", unit="fps")


def _sum_table(way: OneWay, columns: tuple[tuple[str, int], ...]) -> SumTable:
    found = [way.at[column] for column in columns]
    decimals = rate_decimals(ran.figures.sum_frames_per_s for each in found for ran in each.runs)
    by_run = [{ran.run: ran for ran in each.runs} for each in found]
    printed = _printed_sums(found)
    rows = [
        Row(
            str(run),
            tuple(_sum_cell(of.get(run), each, decimals, printed) for of, each in zip(by_run, found, strict=True)),
        )
        for run in way.runs
    ]
    return SumTable(columns, (*rows, *_summing_up(found, decimals, several=way.has_several_runs)))


def _printed_sums(found: Iterable[TriedPoint]) -> Mapping[str, str | None]:
    """Returns the digits of imported sums by the ids of their results, with the zeros that a spreadsheet left out."""
    wholes = [ran.whole for each in found for ran in each.runs if ran.whole is not None]
    return _printed_by_id(wholes, _SUM)


def _printed_by_id(results: Sequence[Result], column: Column) -> Mapping[str, str | None]:
    filled = fill_digits([printed_digits(result, column) for result in results])
    return {result.id: text for result, text in zip(results, filled, strict=True)}


def _sum_cell(ran: FilmRun | None, tried: TriedPoint, decimals: int, printed: Mapping[str, str | None]) -> Cell:
    if ran is None:
        return Cell(UNKNOWN)
    figures = ran.figures
    own = ran.whole if ran.whole is not None else next(filter(None, ran.instances), None)
    text = (ran.whole and printed[ran.whole.id]) or rate_text(figures.sum_frames_per_s, decimals)
    return Cell(text, figures.is_met if tried.target else None, own)


def _summing_up(found: Sequence[TriedPoint], decimals: int, *, several: bool) -> list[Row]:
    """Returns the rows Average, Median and Target; average and median only where there are several runs."""
    overs = [each.over for each in found]
    targets = [each.target.for_instances(each.instances) if each.target else None for each in found]
    rows = []
    if several:
        rows.append(_row("Average", [rate_text(over.average_frames_per_s, decimals) for over in overs]))
        rows.append(_row("Median", [rate_text(over.median_frames_per_s, decimals) for over in overs]))
    if any(target is not None for target in targets):
        rows.append(_row("Target", [rate_text(target, decimals) for target in targets]))
    return rows


def _words_of(tried: TriedPoint | None, text: Callable[[TriedPoint], str]) -> str:
    return UNKNOWN if tried is None else text(tried)


_FAIRNESS_LEAST: Final = "Fairness, least run"
_MEASURES: Final[Mapping[str, Callable[[TriedPoint], str]]] = MappingProxyType(
    {
        "Runs that met the target [%]": lambda tried: share_text(tried.over.runs_met_ratio if tried.target else None),
        "Instances that met it [%]": lambda tried: share_text(tried.over.instances_met_ratio if tried.target else None),
        "Frames dropped": lambda tried: whole(tried.over.dropped_frames),
        "Dropped of those due [%]": lambda tried: share_text(tried.over.dropped_ratio),
        "Fairness, median run": lambda tried: _fairness(tried.runs, statistics.median),
        _FAIRNESS_LEAST: lambda tried: _fairness(tried.runs, min),
        "Average [MB/s]": lambda tried: megabytes(_mean(ran.bytes_per_s for ran in tried.runs)),
        "Average [MiB/s]": lambda tried: mebibytes(_mean(ran.bytes_per_s for ran in tried.runs)),
    }
)


def _row(head: str, texts: Iterable[str]) -> Row:
    return Row(head, tuple(Cell(text) for text in texts), is_sum=True)


def _fairness(runs: Sequence[FilmRun], of: Callable[[list[float]], float]) -> str:
    known = [ran.figures.fairness for ran in runs if ran.figures.fairness is not None]
    return fairness_text(of(known)) if known else UNKNOWN


def fairness_text(fairness: float | None) -> str:
    """Returns Jain's fairness index with three decimals; "1" is printed only where all rates are equal."""
    if fairness is None:
        return UNKNOWN
    return "1" if fairness > 1.0 - 1e-9 else f"{min(fairness, 0.999):.3f}"


def _mean(values: Iterable[float | None]) -> float | None:
    """Returns the mean of the values; None where any of them is unknown."""
    every = list(values)
    known = [value for value in every if value is not None]
    return statistics.fmean(known) if known and len(known) == len(every) else None


def _instance_table(configuration: str, tried: TriedPoint) -> InstanceTable:
    runs = [ran for ran in tried.runs if ran.instances]
    rates = [trusted_number(one, RATE) for ran in runs for one in ran.instances if one is not None]
    decimals = rate_decimals(rates)
    printed = _printed_by_id([one for ran in runs for one in ran.instances if one is not None], _RATE)
    rows = [
        Row(str(place + 1), tuple(_instance_cell(ran.instances[place], tried, decimals, printed) for ran in runs))
        for place in range(tried.instances)
    ]
    each: list[tuple[str, Callable[[RunFigures], str]]] = [
        ("Average", lambda run: rate_text(run.average_frames_per_s, decimals)),
        ("Std. Deviation", lambda run: rate_text(run.standard_deviation_frames_per_s, max(2, decimals))),
        ("Fairness", lambda run: fairness_text(run.fairness)),
        ("Frames dropped", lambda run: whole(run.dropped_frames)),
        ("of those due", lambda run: whole(run.due_frames)),
    ]
    sums = tuple(
        Cell(rate_text(ran.figures.sum_frames_per_s, decimals), ran.figures.is_met if tried.target else None)
        for ran in runs
    )
    below = [_row(head, [text(ran.figures) for ran in runs]) for head, text in each]
    below.append(_row("Sum [MB/s]", [megabytes(ran.bytes_per_s) for ran in runs]))
    below.append(_row("Sum [MiB/s]", [mebibytes(ran.bytes_per_s) for ran in runs]))
    kept = [*below[:2], *(row for row in below[2:] if any(cell.text != UNKNOWN for cell in row.cells))]
    return InstanceTable(
        configuration,
        tried.instances,
        tuple(ran.run for ran in runs),
        (*rows, Row("Sum", sums, is_sum=True), *kept),
        _limits(runs),
    )


def _instance_cell(result: Result | None, tried: TriedPoint, decimals: int, printed: Mapping[str, str | None]) -> Cell:
    if result is None:
        return Cell(UNKNOWN, False if tried.target else None)
    rate = trusted_number(result, RATE)
    port = result.values.get("bond_port")
    return Cell(
        printed[result.id] or rate_text(rate, decimals),
        tried.target.is_met(rate) if tried.target else None,
        result,
        port if isinstance(port, str) else None,
    )


def _limits(runs: Sequence[FilmRun]) -> tuple[str, ...]:
    """Returns what limited the runs and who shared a bond's port, each sentence once with the numbers of its runs."""
    by_words: dict[str, list[int]] = {}
    for ran in runs:
        for name in ("limit", "bond"):
            words = ran.whole.values.get(name) if ran.whole else None
            if isinstance(words, str) and words:
                by_words.setdefault(words, []).append(ran.run)
    return tuple(f"{_of_runs(of, len(runs))}: {words}" for words, of in by_words.items())


def _of_runs(numbers: Sequence[int], all_runs: int) -> str:
    if len(numbers) == all_runs > 1:
        return "Every run"
    return f"Run {numbers[0]}" if len(numbers) == 1 else f"Runs {_span(numbers)}"


def _span(numbers: Sequence[int]) -> str:
    """Shortens a rising sequence of numbers: "1 to 12", "1 to 5, 7", "4, 8"."""
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and stretches[-1][-1] == number - 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in stretches)
