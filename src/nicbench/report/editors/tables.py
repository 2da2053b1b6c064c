"""The tables of a study: sums by run, what they come to, streams sustained, and each instance of each run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Final

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import printed_digits
from nicbench.report.editors.study import OneWay, Study
from nicbench.report.editors.words import held_text, rate_decimals, rate_text, share_text
from nicbench.report.numbers import UNKNOWN, megabytes, whole
from nicbench.stats.frames import RunFigures
from nicbench.stats.frames_runs import RATE, SUM, FilmRun, TriedPoint, number_of

MOST_COLUMNS: Final = 26
"""So many columns of numbers stand in one table; more are a table for each configuration."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``met`` is None where there is nothing to meet; ``result`` is what it rests on, ``beneath`` is written below."""

    text: str
    met: bool | None = None
    result: Result | None = None
    beneath: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """``is_sum``: it is made of the rows above."""

    head: str
    cells: tuple[Cell, ...]
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class SumTable:
    """The sum of each run by configuration (``heads``) and number of instances, then what the runs come to."""

    columns: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]

    @property
    def firsts(self) -> tuple[bool, ...]:
        """Whether a column is the first of a configuration that stands right of another."""
        return tuple(place > 0 and name != self.columns[place - 1][0] for place, (name, _) in enumerate(self.columns))

    @property
    def heads(self) -> tuple[tuple[str, int], ...]:
        """Each configuration, and over how many columns it reaches."""
        return tuple((name, len(list(same))) for name, same in groupby(name for name, _ in self.columns))


@dataclass(frozen=True, slots=True)
class Measure:
    """What the runs come to beyond their sums: a row for each configuration, a column for each number of instances."""

    head: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class SustainedRow:
    """Numbers of instances, in words; ``runs`` is how many there were of each."""

    direction: str | None
    configuration: str
    tried: str
    runs: str
    in_every_run: str
    in_median_run: str
    by_every_instance: str


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """Of one configuration and number of instances: a column for each run, and beneath it what limited it."""

    configuration: str
    instances: int
    runs: tuple[int, ...]
    rows: tuple[Row, ...]
    limits: tuple[str, ...]


def sum_tables(way: OneWay) -> tuple[SumTable, ...]:
    """One with all configurations side by side; where that is too broad, one for each."""
    if len(way.columns) <= MOST_COLUMNS:
        return (_sum_table(way, way.columns),)
    return tuple(
        _sum_table(way, tuple(column for column in way.columns if column[0] == name)) for name in way.configurations
    )


def measures(way: OneWay) -> tuple[Measure, ...]:
    """Shares that met the target, dropped frames, fairness and bytes, as far as any of it is known."""
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
    """A row for each direction and configuration that has a target."""
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
    """By number of instances, configurations beneath each other; only where instances are known."""
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
    rows = [
        Row(
            str(run),
            tuple(_sum_cell(of.get(run), each, decimals) for of, each in zip(by_run, found, strict=True)),
        )
        for run in way.runs
    ]
    return SumTable(columns, (*rows, *_summing_up(found, decimals, several=way.has_several_runs)))


def _sum_cell(ran: FilmRun | None, tried: TriedPoint, decimals: int) -> Cell:
    if ran is None:
        return Cell(UNKNOWN)
    figures = ran.figures
    own = ran.whole if ran.whole is not None else next(filter(None, ran.instances), None)
    text = (ran.whole and printed_digits(ran.whole, _SUM)) or rate_text(figures.sum_frames_per_s, decimals)
    return Cell(text, figures.is_met if tried.target else None, own)


def _summing_up(found: Sequence[TriedPoint], decimals: int, *, several: bool) -> list[Row]:
    """Average, Median and Target, as published; of single runs there is nothing to average."""
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
    }
)


def _row(head: str, texts: Iterable[str]) -> Row:
    return Row(head, tuple(Cell(text) for text in texts), is_sum=True)


def _fairness(runs: Sequence[FilmRun], of: Callable[[list[float]], float]) -> str:
    known = [ran.figures.fairness for ran in runs if ran.figures.fairness is not None]
    return fairness_text(of(known)) if known else UNKNOWN


def fairness_text(fairness: float | None) -> str:
    """Jain's index to three decimals; 1 is only what is wholly equal."""
    if fairness is None:
        return UNKNOWN
    return "1" if fairness > 1.0 - 1e-9 else f"{min(fairness, 0.999):.3f}"


def _mean(values: Iterable[float | None]) -> float | None:
    """None where one is not known."""
    every = list(values)
    known = [value for value in every if value is not None]
    return statistics.fmean(known) if known and len(known) == len(every) else None


def _instance_table(configuration: str, tried: TriedPoint) -> InstanceTable:
    runs = [ran for ran in tried.runs if ran.instances]
    rates = [number_of(one, RATE) for ran in runs for one in ran.instances if one is not None]
    decimals = rate_decimals(rates)
    rows = [
        Row(str(place + 1), tuple(_instance_cell(ran.instances[place], tried, decimals) for ran in runs))
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
    kept = [*below[:2], *(row for row in below[2:] if any(cell.text != UNKNOWN for cell in row.cells))]
    return InstanceTable(
        configuration,
        tried.instances,
        tuple(ran.run for ran in runs),
        (*rows, Row("Sum", sums, is_sum=True), *kept),
        _limits(runs),
    )


def _instance_cell(result: Result | None, tried: TriedPoint, decimals: int) -> Cell:
    if result is None:
        return Cell(UNKNOWN, False if tried.target else None)
    rate = number_of(result, RATE)
    port = result.values.get("bond_port")
    return Cell(
        printed_digits(result, _RATE) or rate_text(rate, decimals),
        tried.target.is_met(rate) if tried.target else None,
        result,
        port if isinstance(port, str) else None,
    )


def _limits(runs: Sequence[FilmRun]) -> tuple[str, ...]:
    """What limited runs, and who shared a port of a bond: each sentence once with the runs that it is of."""
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
    """Rising numbers in short: "1 to 12", "1 to 5, 7", "4, 8"."""
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and stretches[-1][-1] == number - 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    return ", ".join(f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in stretches)
