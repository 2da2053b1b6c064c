"""Searched rates of configurations side by side: those of each at every frame size, and how far they differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from nicbench.compare.claims import Basis, PointComparison
from nicbench.compare.points import point_of
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.result import Bounded, Result, Spread, counted_number, number_of
from nicbench.core.table import Column, Goal
from nicbench.core.units import format_digits
from nicbench.report.cells import factor_of, interval_cell, number_cell, rate_cell, why_nothing_passes, writer
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, heat_of, percent, round_up, significant
from nicbench.report.section import Section
from nicbench.report.statistics import StatisticsView
from nicbench.report.tables import CONFIGURATION, configuration_of
from nicbench.stats.sample import Span, span_of

MOST_COLUMNS = 4
MOST_COLOURS = 7


class Bound(Enum):
    """What the number of a known rate stands for; the value precedes the number in a sentence."""

    EXACT = ""
    AT_LEAST = "at least "
    LINE_RATE = "the line rate, "


class RateCell(NamedTuple):
    """One rate of one configuration. ``within`` is its interval or, for several runs, the lowest and the
    highest rate; ``below_frames_per_s`` is an upper bound where no more is known; ``measured`` counts runs with a rate.
    ``number`` is the rate without a word of its ``bound``; ``passes_nothing`` is the reason where no load passed.
    """

    configuration: str
    rate_frames_per_s: float | None
    below_frames_per_s: float | None
    measured: int
    text: str
    number: str
    within: str
    percent_of_line_rate: str
    against_first: str
    span: Span | None
    results: tuple[Result, ...]
    bound: Bound = Bound.EXACT
    passes_nothing: str | None = None


class RatesRow(NamedTuple):
    """One frame size; ``cells`` has, for each goal, a cell for each configuration in order."""

    size: str
    cells: Mapping[str, tuple[RateCell, ...]]
    told: Mapping[str, tuple[PointComparison, ...]]
    """For each goal, what may be claimed of each pair of configurations."""

    @property
    def size_name(self) -> str:
        """The frame size as it stands before "frames": "64-byte", "imix"."""
        return f"{self.size}-byte" if self.size.isdigit() else self.size

    @property
    def size_words(self) -> str:
        """The frame size on its own: "64 bytes", "imix"."""
        return f"{self.size} bytes" if self.size.isdigit() else self.size

    def heat(self, goal: str, place: int) -> int | None:
        """Returns where the rate of a configuration lies between the lowest (0) and the highest (100) of this frame
        size.
        """
        rates = [cell.rate_frames_per_s for cell in self.cells[goal]]
        return heat_of(rates[place], rates)


@frozen
class RatesTable:
    """One test of all configurations; ``columns`` says how the rates of each goal are written."""

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
        """Whether there are more configurations than a page has room for as columns, so that they are rows."""
        return len(self.names) > MOST_COLUMNS

    @property
    def is_long(self) -> bool:
        """Whether there are more configurations than colours, so that each has one line, and each frame
        size a chart.
        """
        return len(self.names) > MOST_COLOURS

    def unit(self, goal: Goal) -> str:
        """Returns the unit of the rates of a goal: "Mpps"."""
        return self.columns[goal.value].unit or ""

    def factor(self, goal: Goal) -> float:
        """Returns the factor that converts frames per second to the unit of a goal."""
        return factor_of(self.columns[goal.value].form)

    def speak_rate(self, goal: Goal, cell: RateCell) -> str:
        """Returns the rate of a cell for a sentence, with its bound and unit; an upper bound is rounded up to three
        digits.
        """
        if cell.rate_frames_per_s is not None:
            return f"{cell.bound.value}{cell.number}\u00a0{self.unit(goal)}"
        if cell.passes_nothing is not None:
            return "nothing"
        if cell.below_frames_per_s is None:
            return "an unknown rate"
        return f"less than {significant(round_up(cell.below_frames_per_s * self.factor(goal)))}\u00a0{self.unit(goal)}"


def rates_tables(
    sections: Iterable[Section], names: Sequence[str], statistics: StatisticsView
) -> tuple[RatesTable, ...]:
    """Returns a table for each section with searched rates. The sections have the results of every run; ``names`` gives
    the order of the configurations.
    """
    return tuple(_table(section, names, statistics) for section in sections if section.table.rates is not None)


def _table(section: Section, names: Sequence[str], statistics: StatisticsView) -> RatesTable:
    goals = section.table.rates.goals if section.table.rates else ()
    columns = {column.value: column for column in section.table.columns if column.aspect == "rate"}
    rows = []
    for size, results in grouped((row.cells[0], row.result) for row in section.rows).items():
        told = {goal.value: _claims_of(results, section.test, goal, statistics) for goal in goals}
        cells = {goal.value: _cells(results, goal, names, columns[goal.value], told[goal.value]) for goal in goals}
        rows.append(RatesRow(size, cells, told))
    runs = max(1, len({row.result.run for row in section.rows}))
    return RatesTable(section.test, section.table.title, section.scope, tuple(names), runs, goals, tuple(rows), columns)


def _claims_of(
    results: Sequence[Result], test: str, goal: Goal, statistics: StatisticsView
) -> tuple[PointComparison, ...]:
    """Returns the claims about all results of one frame size. These share a point, whose parameters include neither the
    configuration nor the words that tables add.
    """
    first = results[0]
    for added in ((CONFIGURATION,), (CONFIGURATION, "size")):  # tables add the size where results do not have it
        given = {name: value for name, value in first.parameters.items() if name not in added}
        found = statistics.of(point_of(first.replace(parameters=given), {first.id: test}), goal.value)
        if found:
            return found
    return ()


def _cells(
    results: Sequence[Result],
    goal: Goal,
    names: Sequence[str],
    column: Column,
    told: Sequence[PointComparison],
) -> tuple[RateCell, ...]:
    of_names = [
        [result for result in results if configuration_of(result) == name and goal.value in result.values]
        for name in names
    ]
    return tuple(
        _cell(name, goal, runs, "" if number == 0 else against(name, names[0], told), column)
        for number, (name, runs) in enumerate(zip(names, of_names, strict=True))
    )


def _span(rates: Sequence[Bounded], runs: Sequence[Result]) -> Span | None:
    """Returns the span of the rates; None for bare imported figures, whose precision nobody knows."""
    if any(rate.is_bare and result.imported for rate, result in zip(rates, runs, strict=True)):
        return None
    return span_of(rates)


def _to_bounded(result: Result, goal: Goal) -> Bounded:
    value = result.values[goal.value]
    return value if isinstance(value, Bounded) else Bounded(value=number_of(value))


def _cell(name: str, goal: Goal, runs: Sequence[Result], against_first: str, column: Column) -> RateCell:
    rates = [_to_bounded(result, goal) for result in runs]
    values = [rate for rate in rates if counted_number(rate) is not None]
    shares = [share for result in runs if (share := number_of(result.values.get(goal.share))) is not None]
    percent_text = percent(Spread.of(shares, len(shares)).median) if shares else UNKNOWN
    span = _span(rates, runs)
    if all(rate.passes_nothing for rate in values):
        rate = (values or [_loosest(rates)])[0]
        below = None if rate.passes_nothing else rate.upper
        text = rate.reason_null or UNKNOWN if below is None else rate_cell(rate, writer(column, [rate]))
        within = f"{len(values)} of {len(runs)} runs" if 0 < len(values) < len(runs) else ""
        why = why_nothing_passes(rate) if rate.passes_nothing else None
        of_runs = tuple(runs)
        return RateCell(
            name, None, below, 0, text, UNKNOWN, within, percent_text, against_first, span, of_runs, passes_nothing=why
        )
    bound = Bound.EXACT
    value: float | None
    if len(runs) == 1:
        value, write = values[0].value, writer(column, values)
        text, number, within = (form(values[0], write) for form in (rate_cell, number_cell, interval_cell))
        bound = Bound.LINE_RATE if values[0].is_line_rate else Bound.AT_LEAST if values[0].at_least else bound
        if text == f"≥ {number}" and within == f"at least {number}":
            within = ""
    else:
        spread = Spread.of(values, len(runs))
        bound = Bound.AT_LEAST if spread.at_least and not spread.is_line_rate else bound
        value, write = spread.median, writer(column, values)
        number = write.down(value) if bound is Bound.AT_LEAST else write(value)
        text = f"≥ {number}" if bound is Bound.AT_LEAST else number
        least, most = write(spread.minimum), write(spread.maximum)
        told = [f"{least} to {most}"] if least != most else [f"the same in {spread.n} runs"] if spread.n > 1 else []
        told += [f"{spread.n} of {spread.runs} runs"] if spread.n < spread.runs else []
        within = ", ".join(told)
    return RateCell(
        name, value, None, len(values), text, number, within, percent_text, against_first, span, tuple(runs), bound
    )


def _loosest(rates: Sequence[Bounded]) -> Bounded:
    """Returns what runs without a value allow: the rate is below the greatest upper bound of any of them."""
    bounded = [rate for rate in rates if rate.upper is not None]
    return max(bounded, key=lambda rate: rate.upper or 0.0) if bounded else (*rates, Bounded(value=None))[0]


def pair_of(name: str, first: str, told: Sequence[PointComparison]) -> PointComparison | None:
    """Returns the comparison of two configurations; None where they were not compared."""
    return next((one for one in told if {name, first} == {one.comparison.first.name, one.comparison.second.name}), None)


def against(name: str, first: str, told: Sequence[PointComparison]) -> str:
    """Returns how far a rate lies from that of the first configuration, in percent, where a difference is claimed."""
    one = pair_of(name, first, told)
    if one is None:
        return UNKNOWN
    return change_of(name, one) if one.claim.basis.is_shown else one.claim.basis.cell


def change_of(name: str, one: PointComparison) -> str:
    """Returns how far the value of a configuration lies from that of the other, in percent, whether or not that is a
    difference: between two bounds by the intervals of searched rates, else the ratio of the medians, with its interval
    in brackets where the runs give one.
    """
    claim, effect = one.claim, one.comparison.effect
    is_first = one.comparison.first.name == name
    if claim.basis in (Basis.INTERVALS, Basis.INTERVALS_OVERLAP) and claim.spans is not None:
        own, others = claim.spans if is_first else claim.spans[::-1]
        least, most = own.times(others)
        if math.isinf(most):
            return f"at least {_percent_change(least)}" if least else UNKNOWN
        return (
            f"at most {_percent_change(most)}"
            if least == 0.0
            else f"{_percent_change(least)} to {_percent_change(most)}"
        )
    if effect.estimate is None or not one.comparison.kind.is_ratio:
        return UNKNOWN
    factor = effect.estimate if is_first else 1.0 / effect.estimate
    bound = ("at least " if claim.higher == name else "at most ") if claim.is_at_least else ""
    if effect.lower is None or effect.upper is None:
        return f"{bound}{_percent_change(factor)}"
    lower, upper = (effect.lower, effect.upper) if is_first else (1.0 / effect.upper, 1.0 / effect.lower)
    return f"{bound}{_percent_change(factor)} [{_percent_change(lower)}, {_percent_change(upper)}]"


def _percent_change(factor: float) -> str:
    change = 100.0 * (factor - 1.0)
    if change == 0.0:
        return "0 %"
    text = format_digits(change, sign="+") if abs(change) < 1000.0 else f"{change:+,.0f}".replace(",", THIN_SPACE)
    return f"{text} %".replace("-", "\u2212")
