"""Configurations side by side: what differs between them, and the results of all of them, test by test.

Where the number of runs grew until a mean was known, it also has the precision that was asked for, the one reached, and
the interval of each main value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.core.plan import Difference, Plan
from nicbench.core.result import Result, Summary
from nicbench.core.table import Column
from nicbench.core.turn import RunCounts, Turn
from nicbench.report.cells import number_in
from nicbench.report.heat_maps import HeatMap, heat_maps
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, significant
from nicbench.report.rates import RatesTable, rates_tables
from nicbench.report.section import RunKnowledge, Section
from nicbench.report.statistics.layer_costs import LayerCosts, layer_costs
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.tables import side_by_side
from nicbench.report.tails import TailTable, tail_tables
from nicbench.stats.runs import AwaitedValue, list_awaited, percent, verdict_words

COLUMNS: Final = (
    Column(value="place", head="Result", form="text"),
    Column(value="name", head="Value", form="text"),
    Column(value="n", head="n"),
    Column(value="mean", head="Mean"),
    Column(value="width", head="Width of the interval", unit="% of the mean", is_main=True),
    Column(value="reached", head="As asked", form="text"),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """Sentences that say how many runs there were and why no more, and a row for each value whose mean was awaited;
    ``reached`` is False where the runs ended before the means were known.
    """

    sentences: tuple[str, ...]
    reached: bool
    rows: tuple[tuple[tuple[str, ...], Result], ...]

    columns = COLUMNS


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
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}".replace(",", THIN_SPACE)


@dataclass(frozen=True, slots=True)
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
