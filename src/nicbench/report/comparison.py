"""Configurations beside each other: what differs between them, and each test's results of all of them in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.model.frame_size import label_of
from nicbench.model.plan import Difference, Plan
from nicbench.model.result import Result, Summary, name_of_test
from nicbench.model.table import Column
from nicbench.model.turn import Turn
from nicbench.report.cells import number_of, texts, value_of
from nicbench.report.growth import Growth, growth
from nicbench.report.rates import RatesTable, rates_tables
from nicbench.report.statistics.view import StatisticsView
from nicbench.report.tables import Section, side_by_side
from nicbench.report.tails import TailTable, load_of, tail_tables

_LATENCIES: Final = (
    ("latency_minimum_ns", "min"),
    ("latency_mean_ns", "mean"),
    ("latency_p50_ns", "p50"),
    ("latency_p99_ns", "p99"),
    ("latency_p99_9_ns", "p99.9"),
    ("latency_p99_99_ns", "p99.99"),
    ("latency_p99_999_ns", "p99.999"),
    ("latency_p99_9999_ns", "p99.9999"),
    ("latency_maximum_ns", "max"),
    ("pdv_ns", "PDV"),
)
_MAIN: Final = frozenset({"latency_p50_ns", "latency_p99_9_ns"})
LATENCY_COLUMNS: Final = (
    Column(value="size", head="Frame", unit="bytes", form="text"),
    Column(value="configuration", head="Configuration", form="text"),
    Column(value="load_frames_per_s", head="Load", unit="Mpps", form="mpps"),
    *(
        Column(value=name, head=head, unit="µs", form="microseconds", is_main=name in _MAIN)
        for name, head in _LATENCIES
    ),
    Column(value="timed_frames", head="Frames timed", form="whole"),
)


@dataclass(frozen=True, slots=True)
class LatencyBeside:
    """One latency test at one load, a row for each frame size and configuration."""

    test: str
    load: str
    scope: str
    rows: tuple[tuple[tuple[str, ...], Result], ...]

    columns: tuple[Column, ...] = LATENCY_COLUMNS


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
    latencies: tuple[LatencyBeside, ...]
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
        rates=rates_tables(summary.counted, names, tests, plan, statistics),
        latencies=_latencies(results, tests),
        tails=tail_tables(_by_size(result for result in results if result.method == "latency"), tests),
        sections=side_by_side(results, tests, summary.counted if summary.over_runs else ()),
    )


def _latencies(results: Sequence[Result], tests: Mapping[str, str]) -> tuple[LatencyBeside, ...]:
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in _by_size(result for result in results if result.method == "latency"):
        shown = {"size": label_of(result.parameters), "configuration": result.configuration}
        named = result.model_copy(update={"parameters": {**result.parameters, **shown}})
        grouped.setdefault((name_of_test(result, tests), load_of(result), result.scope), []).append(named)
    return tuple(_latency_beside(*key, members) for key, members in grouped.items())


def _latency_beside(test: str, load: str, scope: str, members: Sequence[Result]) -> LatencyBeside:
    """Without the columns that none of them fills: percentiles that take more frames than were timed."""
    known = tuple(
        column for column in LATENCY_COLUMNS if any(value_of(result, column.value) is not None for result in members)
    )
    cells = zip(*(texts(column, members) for column in known), strict=True)
    return LatencyBeside(test, load, scope, tuple(zip(cells, members, strict=True)), known)


def _by_size(results: Iterable[Result]) -> list[Result]:
    """Configurations of one frame size beneath each other."""
    return sorted(results, key=lambda result: number_of(result, "frame_bytes") or 0.0)
