"""Searched rates of configurations beside each other: one of each for every frame size, and what they differ by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nicbench.compare.claims import Basis
from nicbench.compare.compared import PointComparison
from nicbench.compare.points import point_of
from nicbench.core.result import Bounded, Result, Spread, number_of
from nicbench.core.table import Column, Goal
from nicbench.report.cells import factor_of, writer
from nicbench.report.numbers import UNKNOWN, interval, only_below, percent
from nicbench.report.section import Section
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.tables import CONFIGURATION, configuration_of
from nicbench.stats.sample import Span, span_of

SAME = "not told apart"
MOST_COLUMNS = 4
MOST_COLOURS = 7


@dataclass(frozen=True, slots=True)
class RateCell:
    """One rate of one configuration. ``within``: its interval, or of several runs the least and the greatest."""

    configuration: str
    rate_frames_per_s: float | None
    text: str
    within: str
    percent_of_line_rate: str
    against_first: str
    span: Span | None
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class RatesRow:
    """One frame size; ``cells`` by goal, in the order of the configurations."""

    size: str
    cells: Mapping[str, tuple[RateCell, ...]]
    told: Mapping[str, tuple[PointComparison, ...]]
    """By goal: what may be said of each two configurations."""

    @property
    def size_name(self) -> str:
        """Before "frames": "64-byte", "imix"."""
        return f"{self.size}-byte" if self.size.isdigit() else self.size

    @property
    def size_words(self) -> str:
        """By itself: "64 bytes", "imix"."""
        return f"{self.size} bytes" if self.size.isdigit() else self.size

    def heat(self, goal: str, place: int) -> int | None:
        """Where the rate of a configuration lies between the lowest (0) and the highest (100) of this size."""
        rates = [cell.rate_frames_per_s for cell in self.cells[goal]]
        known = [rate for rate in rates if rate is not None]
        rate = rates[place]
        if rate is None or min(known) == max(known):
            return None
        return round(100.0 * (rate - min(known)) / (max(known) - min(known)))


@dataclass(frozen=True, slots=True)
class RatesTable:
    """One test of all configurations; ``columns`` say how the rates of each goal are written."""

    test: str
    title: str
    scope: str
    names: tuple[str, ...]
    runs: int
    goals: tuple[Goal, ...]
    rows: tuple[RatesRow, ...]
    columns: Mapping[str, Column]

    @property
    def is_broad(self) -> bool:
        """Whether there are more configurations than columns that a page has room for: they are rows then."""
        return len(self.names) > MOST_COLUMNS

    @property
    def is_long(self) -> bool:
        """Whether there are more than colours: each has one line, and a chart for each frame size."""
        return len(self.names) > MOST_COLOURS

    def unit(self, goal: Goal) -> str:
        """The unit of the rates of a goal: "Mpps"."""
        return self.columns[goal.value].unit or ""

    def factor(self, goal: Goal) -> float:
        """What a rate in frames per second is multiplied by to be in that unit."""
        return factor_of(self.columns[goal.value].form)

    def rate_text(self, goal: Goal, cell: RateCell) -> str:
        """The rate of a cell by itself, with its unit."""
        rate = cell.rate_frames_per_s
        column = self.columns[goal.value].model_copy(update={"aspect": "value"})
        return UNKNOWN if rate is None else f"{writer(column, [rate])(rate)}\u00a0{self.unit(goal)}"


def rates_tables(
    sections: Iterable[Section], names: Sequence[str], statistics: StatisticsView
) -> tuple[RatesTable, ...]:
    """Of those with searched rates; they have the results of every run, ``names`` the order of the configurations."""
    return tuple(_table(section, names, statistics) for section in sections if section.table.rates is not None)


def _table(section: Section, names: Sequence[str], statistics: StatisticsView) -> RatesTable:
    goals = section.table.rates.goals if section.table.rates else ()
    columns = {column.value: column for column in section.table.columns if column.aspect == "rate"}
    sizes: dict[str, list[Result]] = {}
    for row in section.rows:
        sizes.setdefault(row.cells[0], []).append(row.result)
    writers = {
        goal.value: writer(columns[goal.value], [row.result.values.get(goal.value) for row in section.rows])
        for goal in goals
    }
    rows = []
    for size, results in sizes.items():
        told = {goal.value: _claims_of(results, section.test, goal, statistics) for goal in goals}
        cells = {goal.value: _cells(results, goal, names, writers[goal.value], told[goal.value]) for goal in goals}
        rows.append(RatesRow(size, cells, told))
    runs = max(1, len({row.result.run for row in section.rows}))
    return RatesTable(section.test, section.table.title, section.scope, tuple(names), runs, goals, tuple(rows), columns)


def _claims_of(
    results: Sequence[Result], test: str, goal: Goal, statistics: StatisticsView
) -> tuple[PointComparison, ...]:
    """Of all results of a size: they share their point, which knows neither the configuration nor words for tables."""
    first = results[0]
    for added in ((CONFIGURATION,), (CONFIGURATION, "size")):  # tables add the size where results do not have it
        given = {name: value for name, value in first.parameters.items() if name not in added}
        found = statistics.of(point_of(first.model_copy(update={"parameters": given}), {first.id: test}), goal.value)
        if found:
            return found
    return ()


def _cells(
    results: Sequence[Result],
    goal: Goal,
    names: Sequence[str],
    write: Callable[[float], str],
    told: Sequence[PointComparison],
) -> tuple[RateCell, ...]:
    of_names = [
        [result for result in results if configuration_of(result) == name and goal.value in result.values]
        for name in names
    ]
    return tuple(
        _cell(name, goal, runs, "" if number == 0 else against(name, names[0], told), write)
        for number, (name, runs) in enumerate(zip(names, of_names, strict=True))
    )


def _span(rates: Sequence[Bounded], runs: Sequence[Result]) -> Span | None:
    """None of somebody else's bare figures: how exact they are, nobody knows."""
    if any(rate.is_bare and result.imported for rate, result in zip(rates, runs, strict=True)):
        return None
    return span_of(rates)


def _to_bounded(result: Result, goal: Goal) -> Bounded:
    value = result.values[goal.value]
    return value if isinstance(value, Bounded) else Bounded(value=number_of(value))


def _cell(name: str, goal: Goal, runs: Sequence[Result], against_first: str, write: Callable[[float], str]) -> RateCell:
    rates = [_to_bounded(result, goal) for result in runs]
    values = [rate for rate in rates if rate.value is not None]
    shares = [share for result in runs if (share := number_of(result.values.get(goal.share))) is not None]
    span = _span(rates, runs)
    if not values:
        rate = rates[0] if rates else Bounded(value=None)
        below = f"< {write(rate.upper)}" if only_below(rate) and rate.upper is not None else None
        text = below or rate.reason_null or UNKNOWN
        return RateCell(name, None, text, "", UNKNOWN, against_first, span, tuple(runs))
    value: float | None
    if len(runs) == 1:
        value = values[0].value
        bound = "line rate, " if values[0].is_line_rate else "≥ " if values[0].at_least else ""
        text, within = f"{bound}{write(value or 0.0)}", interval(values[0], write)
    else:
        spread = Spread.of(values, len(runs))
        bound = "≥ " if spread.at_least and not spread.is_line_rate else ""
        value, text = spread.median, f"{bound}{write(spread.median)}"
        least, most = write(spread.minimum), write(spread.maximum)
        within = f"{least} to {most}" if least != most else f"the same in {spread.n} runs"
        within += f", {spread.n} of {spread.runs} runs" if spread.n < spread.runs else ""
    percent_text = percent(Spread.of(shares, len(shares)).median) if shares else UNKNOWN
    return RateCell(name, value, text, within, percent_text, against_first, span, tuple(runs))


def against(name: str, first: str, told: Sequence[PointComparison]) -> str:
    """How far a rate lies from the first configuration's, in percent, where a difference is claimed."""
    one = next((one for one in told if {name, first} == {one.comparison.first.name, one.comparison.second.name}), None)
    if one is None:
        return UNKNOWN
    claim, effect = one.claim, one.comparison.effect
    if not claim.basis.is_shown:
        return "too few runs" if claim.basis is Basis.TOO_FEW else SAME
    is_first = one.comparison.first.name == name
    if claim.basis is Basis.INTERVALS and claim.spans is not None:
        own, others = claim.spans if is_first else claim.spans[::-1]
        least, most = own.times(others)
        if math.isinf(most):
            return f"at least {_percent_change(least)}"
        return (
            f"at most {_percent_change(most)}"
            if least == 0.0
            else f"{_percent_change(least)} to {_percent_change(most)}"
        )
    if effect.estimate is None or effect.lower is None or effect.upper is None or not one.comparison.kind.is_ratio:
        return UNKNOWN
    ends = (effect.estimate, effect.lower, effect.upper)
    factor, lower, upper = ends if is_first else (1.0 / ends[0], 1.0 / ends[2], 1.0 / ends[1])
    bound = "at least " if claim.is_at_least else ""
    return f"{bound}{_percent_change(factor)} [{_percent_change(lower)}, {_percent_change(upper)}]"


def _percent_change(factor: float) -> str:
    return f"{100.0 * (factor - 1.0):+.3g} %".replace("-", "\u2212")
