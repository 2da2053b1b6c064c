"""Configurations beside each other: what differs between them, and each test's results of all of them in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nicbench.core.plan import Difference, Plan
from nicbench.core.result import Result, Summary
from nicbench.core.turn import Turn
from nicbench.report.cells import number_of
from nicbench.report.growth import Growth, growth
from nicbench.report.rates import RatesTable, rates_tables
from nicbench.report.section import Known, Section
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.tables import side_by_side
from nicbench.report.tails import TailTable, tail_tables


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the page shows before each run by itself. ``order`` names the turns as they were made.

    ``runs`` are those of each configuration that count; ``warm_ups`` are the numbers of the others.
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

    @property
    def compares(self) -> bool:
        """False where one configuration had several runs."""
        return len(self.names) > 1


def comparison(
    summary: Summary, tests: Mapping[str, str], plan: Plan | None, statistics: StatisticsView
) -> Comparison | None:
    """None where one configuration had one run. ``tests`` maps a result's id to the name of its test."""
    results = summary.beside_each_other
    names = summary.configurations or tuple(dict.fromkeys(result.configuration for result in results))
    warm_ups = frozenset(result.run or 1 for result in summary.results if result.warm_up)
    if len(names) < 2 and not summary.over_runs and not warm_ups:
        return None
    made = {(result.configuration, result.run) for result in summary.results}
    known = Known(plan)
    every = side_by_side(results, tests, summary.counted if summary.over_runs else (), known)
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
        differences=plan.differences if plan else (),
        rates=rates_tables(side_by_side(summary.counted, tests, known=known), names, statistics),
        tails=tail_tables(_by_size(results), tests),
        sections=tuple(section for section in every if section.table.rates is None),
    )


def _by_size(results: Iterable[Result]) -> list[Result]:
    """Configurations of one frame size beneath each other."""
    return sorted(results, key=lambda result: number_of(result, "frame_bytes") or 0.0)
