"""Main values over the axes of a study: a row for each value of the first axis, a column for each of the second."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from nicbench.core.frozen import frozen
from nicbench.core.plan import Difference, Plan
from nicbench.core.registry import find
from nicbench.core.result import Bounded, Result, ResultVerdict, Summary
from nicbench.core.table import Column
from nicbench.core.turn import RunCounts, Turn, combination_name, combinations
from nicbench.core.units import format_fixed
from nicbench.methods.base import Method
from nicbench.report.cells import factor_of, in_one_unit, number_in, texts
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, significant
from nicbench.report.rates import RateCell, RatesTable, rates_tables
from nicbench.report.section import RunKnowledge, Section
from nicbench.report.statistics import StatisticsView
from nicbench.report.tables import configuration_of, side_by_side
from nicbench.report.tails import TailTable, tail_tables
from nicbench.stats.runs import AwaitedValue, list_awaited, percent, verdict_words


class HeatMap(NamedTuple):
    """One value of one point of a test over one axis or two. ``about`` says which point, and of what further axes."""

    test: str
    shown: Column
    about: str
    rows: str
    columns: str | None
    cells: Mapping[tuple[str, str], tuple[float | None, str | None]]
    """For each combination its value, as a number and in words, in the unit of the column; None where it is not known.
    """

    @property
    def is_of_rate(self) -> bool:
        """Whether it is of frames or bits per second."""
        return self.shown.value.endswith(("_frames_per_s", "_bits_per_s"))

    @property
    def title(self) -> str:
        """What is shown, with the axes."""
        over = self.rows if self.columns is None else f"{self.rows} and {self.columns}"
        unit = f" [{self.shown.unit}]" if self.shown.unit else ""
        return f"{self.shown.head}{unit} over {over}{f', {self.about}' if self.about else ''}"


def heat_maps(results: Sequence[Result], tests: Mapping[str, str], plan: Plan | None) -> tuple[HeatMap, ...]:
    """Returns a map of each main value of each point; none where the bench file has no axes."""
    axes = plan.axes if plan is not None else {}
    if not axes:
        return ()
    points: dict[tuple[str, str, str], dict[str, Result]] = {}
    for result in results:
        what = json.dumps(result.parameters, sort_keys=True, default=str)
        by_name = points.setdefault((tests.get(result.id, ""), result.method, what), {})
        by_name[result.configuration] = result
    return tuple(found for (test, _, _), by_name in points.items() for found in _maps_of(test, by_name, axes))


def _maps_of(test: str, by_name: Mapping[str, Result], axes: Mapping[str, Sequence[str]]) -> Iterator[HeatMap]:
    first = next(iter(by_name.values()))
    method = find("nicbench.methods", Method).get(first.method)
    if method is None:
        return
    rows, columns, *further = (*axes, None) if len(axes) == 1 else tuple(axes)
    circumstances = method.describe_circumstances(first.parameters)
    for name in method.main_values(first):
        declared = method.column_of(first, name)
        if declared is None:
            continue
        shown = in_one_unit(declared, by_name.values())
        written = dict(zip(by_name, texts(shown, list(by_name.values())), strict=True))
        for fixed in combinations({axis: axes[axis] for axis in further if axis is not None}):
            also = [f"{axis} {value}" for axis, value in fixed.items()]
            cells = {}
            for chosen in combinations({axis: axes[axis] for axis in (rows, columns) if axis is not None}):
                key = combination_name({axis: {**chosen, **fixed}[axis] for axis in axes})
                number = number_in(by_name[key], name) if key in by_name else None
                place = chosen[str(rows)], chosen[columns] if columns is not None else ""
                cells[place] = None if number is None else number * factor_of(shown.form), written.get(key)
            if sum(number is not None for number, _ in cells.values()) < 2:
                continue
            about = ", ".join(text for text in (circumstances, *also) if text)
            yield HeatMap(test, shown, about, str(rows), columns, cells)


_SAME_LOAD_RATIO: Final = 0.02
_LATENCY: Final = "latency_p50_ns"
_LOAD: Final = "load_frames_per_s"
_NS: Final = 1e9


class Cost(NamedTuple):
    """What one configuration adds to the first, in ns a frame, from ``lower`` to ``upper``.

    ``doubtful`` is the first of the results behind it that is not valid.
    """

    size: str
    configuration: str
    added_ns: float
    lower_ns: float
    upper_ns: float
    doubtful: Result | None = None


class LayerCosts(NamedTuple):
    """The costs of all but the first configuration, in their order: of time per frame by ``goal``, and of latency."""

    first: str
    names: tuple[str, ...]
    goal: str
    per_frame: tuple[Cost, ...]
    latency: tuple[Cost, ...]


def layer_costs(
    differences: Sequence[Difference], rates: Sequence[RatesTable], sections: Iterable[Section]
) -> LayerCosts | None:
    """Returns the costs; None where the configurations differ in more than their DUT, or not in its kind.

    ``sections`` have the results of every run that counts.
    """
    settings = {difference.setting for difference in differences}
    is_comparable = all(setting.partition(".")[0] == "dut" for setting in settings)
    if not is_comparable or "dut.kind" not in settings or not rates or len(rates[0].names) < 2:
        return None
    shown = rates[0]
    goal = shown.goals[-1]
    per_frame = tuple(cost for row in shown.rows for cost in _of_rates(row.size, row.cells[goal.value]))
    latency = tuple(cost for section in sections for cost in _of_latency(section, shown.names))
    if not per_frame and not latency:
        return None
    return LayerCosts(shown.names[0], shown.names[1:], goal.name, per_frame, latency)


def _of_rates(size: str, cells: Sequence[RateCell]) -> Iterable[Cost]:
    """Yields the costs at one frame size, of rates that are the DUT's own with both bounds known."""
    first = cells[0]
    for cell in cells[1:] if _is_of_the_dut(first) else ():
        if not _is_of_the_dut(cell):
            continue
        assert first.span is not None  # noqa: S101 - as asked above
        assert cell.span is not None  # noqa: S101 - as asked above
        added = _NS / (cell.rate_frames_per_s or math.inf) - _NS / (first.rate_frames_per_s or math.inf)
        least = _NS / cell.span.upper - _NS / first.span.lower
        most = _NS / cell.span.lower - _NS / first.span.upper
        yield Cost(size, cell.configuration, added, least, most, _find_doubtful((*first.results, *cell.results)))


def _is_of_the_dut(cell: RateCell) -> bool:
    """Whether the rate has two bounds: at the line rate, or at the tester's ceiling, the DUT could do more."""
    span = cell.span
    bounded = [value for result in cell.results for value in result.values.values() if isinstance(value, Bounded)]
    at_a_limit = any(value.is_line_rate or value.at_least for value in bounded)
    is_known = span is not None and span.lower > 0.0 and math.isfinite(span.upper)
    return bool(cell.rate_frames_per_s) and is_known and not at_a_limit


def _of_latency(section: Section, names: Sequence[str]) -> Iterable[Cost]:
    """Yields the costs of a section that timed frames of every configuration at the same load."""
    sizes: dict[str, dict[str, list[Result]]] = {}
    for row in section.rows:
        if number_in(row.result, _LATENCY) is not None and number_in(row.result, _LOAD) is not None:
            size = str(row.result.parameters.get("frame_bytes", ""))
            sizes.setdefault(size, {}).setdefault(configuration_of(row.result), []).append(row.result)
    for size, found in sizes.items():
        loads = [number_in(result, _LOAD) or 0.0 for results in found.values() for result in results]
        if names[0] not in found or max(loads) - min(loads) > _SAME_LOAD_RATIO * max(loads):
            continue
        first = _latencies(found[names[0]])
        for name in names[1:]:
            if own := _latencies(found.get(name, ())):
                added = statistics.median(own) - statistics.median(first)
                doubtful = _find_doubtful((*found[names[0]], *found[name]))
                yield Cost(size, name, added, min(own) - max(first), max(own) - min(first), doubtful)


def _find_doubtful(results: Iterable[Result]) -> Result | None:
    return next((result for result in results if result.verdict is not ResultVerdict.VALID), None)


def _latencies(results: Iterable[Result]) -> list[float]:
    return [value for result in results if (value := number_in(result, _LATENCY)) is not None]


GROWTH_COLUMNS: Final = (
    Column("place", "Result", form="text"),
    Column("name", "Value", form="text"),
    Column("n", "n"),
    Column("mean", "Mean"),
    Column("width", "Width of the interval", unit="% of the mean", is_main=True),
    Column("reached", "As asked", form="text"),
)


class Growth(NamedTuple):
    """Sentences that say how many runs there were and why no more, and a row for each value whose mean was awaited;
    ``reached`` is False where the runs ended before the means were known.
    """

    sentences: tuple[str, ...]
    reached: bool
    rows: tuple[tuple[tuple[str, ...], Result], ...]


def growth(summary: Summary) -> Growth | None:
    """Returns how the number of runs grew; None where that number is fixed and no run is a warm-up."""
    if summary.runs is None:
        return None
    values = list_awaited(summary.over_runs)
    rows = tuple((_cells(value), value.result) for value in values)
    return Growth(runs_lines(summary), summary.runs.reached is not False, rows)


def runs_lines(summary: Summary) -> tuple[str, ...]:
    """Returns how many runs of each configuration there were, and whether they are enough; nothing where that number is
    fixed.
    """
    made = summary.runs
    if made is None:
        return ()
    of_each = " of each configuration" if summary.configurations else ""
    lines = [f"{_counted_runs(made)}{of_each}{_describe_warm_up(made)}."]
    if made.asked.grows:
        early = not made.reached and made.made < made.asked.at_most
        so_far = "the run ended early; so far " if early else ""
        lines.append(f"{_describe_order(made)}: {so_far}{verdict_words(made.asked, made.made, summary.over_runs)}.")
    return tuple(lines)


def _counted_runs(made: RunCounts) -> str:
    most = f" of at most {made.asked.at_most}" if made.asked.grows else ""
    return f"n = {made.made}{most} run{'' if made.made == 1 and not most else 's'}"


def _describe_warm_up(made: RunCounts) -> str:
    number = made.asked.warm_up
    if not number:
        return ""
    return f", after {number} to warm up, which {'is' if number == 1 else 'are'} part of no statistics"


def _describe_order(made: RunCounts) -> str:
    return f"{percent(made.asked.confidence_ratio or 0.0)} confidence interval of the mean"


def _cells(value: AwaitedValue) -> tuple[str, ...]:
    found = value.of_mean
    runs = f"{value.spread.n}" if value.spread.n == value.spread.runs else f"{value.spread.n} of {value.spread.runs}"
    width = UNKNOWN if found.width_ratio is None else significant(100.0 * found.width_ratio)
    mean = significant(found.mean) if found.upper is None else _with_half_width(found.mean, found.upper - found.mean)
    return value.place, value.words, runs, mean, width, "yes" if found.reached else "not reached"


def _with_half_width(mean: float, half: float) -> str:
    """Returns a mean and its half width with as many decimals as two digits of the half width need: "98.97 ± 0.42"."""
    if half == 0.0:
        return f"{significant(mean)} ± 0"
    decimals = max(0, min(9, 1 - math.floor(math.log10(half))))
    return " ± ".join(format_fixed(number, decimals, THIN_SPACE) for number in (mean, half))


@frozen
class Comparison:
    """Everything that the page shows before the single runs.

    ``order`` names the turns in the order in which they were made. ``runs`` is the number of runs of each configuration
    that count; ``warm_ups`` has the numbers of the other runs.
    """

    names: tuple[str, ...]
    runs: int
    warm_ups: frozenset[int]
    growth: Growth | None
    order: tuple[str, ...]
    differences: tuple[Difference, ...]
    rates: tuple[RatesTable, ...]
    tails: tuple[TailTable, ...]
    sections: tuple[Section, ...]
    heat_maps: tuple[HeatMap, ...] = ()
    """The main values over the axes of a study."""
    layers: LayerCosts | None = None

    @property
    def compares(self) -> bool:
        """Whether several configurations are compared; False where there are only several runs of one configuration."""
        return len(self.names) > 1


def comparison(
    summary: Summary, tests: Mapping[str, str], plan: Plan | None, statistics: StatisticsView
) -> Comparison | None:
    """Returns the comparison; None where there is one configuration with one run. ``tests`` maps the id of a result to
    the name of its test.
    """
    results = summary.beside_each_other
    names = summary.configurations or tuple(dict.fromkeys(result.configuration for result in results))
    warm_ups = frozenset(result.run or 1 for result in summary.results if result.warm_up)
    if len(names) < 2 and not summary.over_runs and not warm_ups:
        return None
    made = {(result.configuration, result.run) for result in summary.results}
    known = RunKnowledge(plan)
    every = side_by_side(results, tests, summary.counted if summary.over_runs else (), known)
    counted = side_by_side(summary.counted, tests, known=known)
    rates = rates_tables(counted, names, statistics)
    differences = plan.differences if plan else ()
    return Comparison(
        names=names,
        runs=max(1, len({result.run for result in summary.counted})),
        warm_ups=warm_ups,
        growth=growth(summary),
        order=tuple(
            Turn(turn.configuration, turn.run, warm_up=turn.warm_up).short
            for turn in (plan.turns if plan else ())
            if (turn.configuration, turn.run) in made
        ),
        differences=differences,
        rates=rates,
        tails=tail_tables(_by_size(results), tests),
        sections=tuple(section for section in every if section.table.rates is None),
        heat_maps=heat_maps(results, tests, plan),
        layers=layer_costs(differences, rates, counted),
    )


def _by_size(results: Iterable[Result]) -> list[Result]:
    """Returns the results by frame size, with the configurations of one size next to each other."""
    return sorted(results, key=lambda result: number_in(result, "frame_bytes") or 0.0)
