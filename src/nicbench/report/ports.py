"""Results by ports: one table for each test, with every direction between two ports, the sum of all, and every port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nicbench.core.frame_size import label_of, size_words
from nicbench.core.pattern import Pattern
from nicbench.core.plan import Plan
from nicbench.core.reading import PortFigures
from nicbench.core.result import Result, title_of_test


@dataclass(frozen=True, slots=True)
class PortsRow:
    """One result by ports, with its name in the table."""

    name: str
    figures: PortFigures
    result: Result


@dataclass(frozen=True, slots=True)
class PortsTable:
    """One test. ``scope`` says what its rates elsewhere are the rates of; ``pattern`` is the traffic pattern in the
    words of the RFC.
    """

    test: str
    scope: str
    pattern: str | None
    rows: tuple[PortsRow, ...]


def ports_tables(results: Iterable[Result], tests: Mapping[str, str], plan: Plan | None) -> tuple[PortsTable, ...]:
    """Returns a table for each test; ``tests`` maps the id of a result to the name of its test. A result of a single
    direction has no row, and results of one trial, such as its captures, have one together.
    """
    of_trials: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.by_port is not None:
            of_trials.setdefault((title_of_test(result, tests), result.by_port.trial), []).append(result)
    grouped: dict[tuple[str, str], list[PortsRow]] = {}
    for (test, _), (first, *others) in of_trials.items():
        if first.by_port is not None:
            scope = " or ".join(dict.fromkeys((first.scope, *(other.scope for other in others))))
            grouped.setdefault((test, scope), []).append(PortsRow(_name(first), first.by_port, first))
    pattern = _pattern(plan)
    return tuple(PortsTable(test, scope, pattern, tuple(rows)) for (test, scope), rows in grouped.items())


def _name(result: Result) -> str:
    """Returns the frame size of a result and, where it has one, its load: "64 bytes, 50 %"."""
    size = size_words(result.parameters) if label_of(result.parameters) else result.id
    load = result.parameters.get("load_percent")
    return f"{size}, {load:g} %" if isinstance(load, int | float) else size


def _pattern(plan: Plan | None) -> str | None:
    written = plan.traffic.get("pattern") if plan else None
    return Pattern(written).words if written in list(Pattern) else None
