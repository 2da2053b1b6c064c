"""Throughput of configurations beside each other: for each frame size one rate of each, and what they differ by."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nicbench.comparing.claims import Basis
from nicbench.comparing.compared import Compared
from nicbench.comparing.points import point_of
from nicbench.model.frame_size import label_of
from nicbench.model.plan import Plan
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, name_of_test
from nicbench.model.spread import Spread
from nicbench.report.model import Goal, ThroughputTable
from nicbench.report.numbers import UNKNOWN, interval, mpps, mpps_decimals, only_below, percent, rate_words
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.throughput import throughput_tables
from nicbench.stats.spans import Span, span_of

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
    told: Mapping[str, tuple[Compared, ...]]
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
    """One throughput test of all configurations."""

    test: str
    scope: str
    names: tuple[str, ...]
    runs: int
    goals: tuple[Goal, ...]
    rows: tuple[RatesRow, ...]

    @property
    def is_broad(self) -> bool:
        """Whether there are more configurations than columns that a page has room for: they are rows then."""
        return len(self.names) > MOST_COLUMNS

    @property
    def is_long(self) -> bool:
        """Whether there are more than colours: each has one line, and a chart for each frame size."""
        return len(self.names) > MOST_COLOURS


def rates_tables(
    results: Sequence[Result],
    names: Sequence[str],
    tests: Mapping[str, str],
    plan: Plan | None,
    statistics: StatisticsView,
) -> tuple[RatesTable, ...]:
    """``results`` are those of every run, ``names`` the configurations in the order of the bench file."""
    by_test: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.method == "throughput":
            by_test.setdefault((name_of_test(result, tests), result.scope), []).append(result)
    return tuple(_table(test, scope, members, names, plan, statistics) for (test, scope), members in by_test.items())


def _table(
    test: str,
    scope: str,
    results: Sequence[Result],
    names: Sequence[str],
    plan: Plan | None,
    statistics: StatisticsView,
) -> RatesTable:
    tables = {table.configuration: table for table in throughput_tables(results, {}, plan, {})}
    goals = {goal.key: goal for table in tables.values() for goal in table.goals}
    sizes = sorted({(row.frame_bytes, row.size) for table in tables.values() for row in table.rows})
    decimals = _decimals(results, goals)
    of_sizes = {size: _told(results, test, size, goals, statistics) for _, size in sizes}
    rows = tuple(
        RatesRow(
            size,
            {
                goal: _cells([_of_size(tables.get(name), size, goal) for name in names], names, decimals, told[goal])
                for goal in goals
            },
            told,
        )
        for size, told in of_sizes.items()
    )
    runs = max(1, len({result.run for result in results}))
    return RatesTable(test, scope, tuple(names), runs, tuple(goals.values()), rows)


_Known = list[tuple[Bounded, float | None, Result]]


def _of_size(table: ThroughputTable | None, size: str, goal: str) -> _Known:
    """Rate, percentage and result of each run."""
    rows = [row for row in (table.rows if table else ()) if row.size == size and goal in row.rates]
    return [(row.rates[goal], row.percents.get(goal), row.result) for row in rows]


def _told(
    results: Sequence[Result], test: str, size: str, goals: Iterable[str], statistics: StatisticsView
) -> dict[str, tuple[Compared, ...]]:
    """Of all results of this size: they share their point."""
    points = (point_of(result, {result.id: test}) for result in results if label_of(result.parameters) == size)
    point = next(points, None)
    return {goal: statistics.of(point, f"{goal}_frames_per_s") if point else () for goal in goals}


def _cells(
    known: Sequence[_Known], names: Sequence[str], decimals: int, told: Sequence[Compared]
) -> tuple[RateCell, ...]:
    spans = [_span(runs) for runs in known]
    return tuple(
        _cell(name, runs, span, "" if number == 0 else against(name, names[0], told), decimals)
        for number, (name, runs, span) in enumerate(zip(names, known, spans, strict=True))
    )


def _span(runs: _Known) -> Span | None:
    """None of somebody else's bare figures: how exact they are, nobody knows."""
    if any(rate.is_bare and result.imported for rate, _, result in runs):
        return None
    return span_of(rate for rate, _, _ in runs)


def _cell(name: str, runs: _Known, span: Span | None, against_first: str, decimals: int) -> RateCell:
    rates = [rate for rate, _, _ in runs]
    values = [rate for rate in rates if rate.value is not None]
    shares = [share for _, share, _ in runs if share is not None]
    results = tuple(result for _, _, result in runs)
    if not values:
        rate = rates[0] if rates else Bounded(value=None)
        text = f"< {mpps(rate.upper, decimals)}" if only_below(rate) else (rate.reason_null or UNKNOWN)
        return RateCell(name, None, text, "", UNKNOWN, against_first, span, results)
    if len(runs) == 1:
        text, within, value = rate_words(values[0], decimals), interval(values[0], decimals), values[0].value
    else:
        spread = Spread.of(values, len(runs))
        bound = "≥ " if spread.at_least and not spread.is_line_rate else ""
        text, value = f"{bound}{mpps(spread.median, decimals)}", spread.median
        least, most = mpps(spread.minimum, decimals), mpps(spread.maximum, decimals)
        within = f"{least} to {most}" if least != most else f"the same in {spread.n} runs"
        within += f", {spread.n} of {spread.runs} runs" if spread.n < spread.runs else ""
    share = percent(Spread.of(shares, len(shares)).median) if shares else UNKNOWN
    return RateCell(name, value, text, within, share, against_first, span, results)


def against(name: str, first: str, told: Sequence[Compared]) -> str:
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
            return f"at least {_signed(least)}"
        return f"at most {_signed(most)}" if least == 0.0 else f"{_signed(least)} to {_signed(most)}"
    if effect.estimate is None or effect.lower is None or effect.upper is None or not one.comparison.kind.is_ratio:
        return UNKNOWN
    ends = (effect.estimate, effect.lower, effect.upper)
    factor, lower, upper = ends if is_first else (1.0 / ends[0], 1.0 / ends[2], 1.0 / ends[1])
    bound = "at least " if claim.is_at_least else ""
    return f"{bound}{_signed(factor)} [{_signed(lower)}, {_signed(upper)}]"


def _signed(factor: float) -> str:
    return f"{100.0 * (factor - 1.0):+.3g} %".replace("-", "\u2212")


def _decimals(results: Iterable[Result], goals: Iterable[str]) -> int:
    rates = [result.values.get(f"{goal}_frames_per_s") for result in results for goal in goals]
    known = [rate for rate in rates if isinstance(rate, Bounded)]
    widths = [rate.upper - rate.lower for rate in known if rate.upper is not None and rate.lower is not None]
    return mpps_decimals((rate.value or rate.upper for rate in known), widths)
