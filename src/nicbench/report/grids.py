"""Results in a grid: a row for each load, and columns for what else they were measured with, as published load sweeps
are printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from nicbench.core.result import Result, Value
from nicbench.core.table import Column, Grid
from nicbench.core.units import format_digits
from nicbench.report.cells import factor_of, number_in, text_of, texts, value_of, with_unit
from nicbench.report.siblings import Among

_DIGITS_APART: Final = 9
"""The digits of loads that differ by less than is printed as a rule."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """One cell, with its result."""

    text: str
    result: Result


@dataclass(frozen=True, slots=True)
class GridTable:
    """A table of results in a grid.

    ``heads`` has one tuple for each level of headings, outermost first, each as long as a row has cells. ``title`` says
    what the whole table has in common ("64 bytes"); None where there is only one table. A crossing is None where nobody
    measured.
    """

    title: str | None
    corner: str
    heads: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, tuple[Crossing | None, ...]], ...]

    def spans(self, level: int) -> tuple[tuple[str, int], ...]:
        """Returns the headings of a level, each with the number of columns that it spans; it ends where a heading above
        it changes.
        """
        columns = zip(*self.heads[: level + 1], strict=True)
        return tuple((path[-1], sum(1 for _ in same)) for path, same in groupby(columns))


def grid_tables(results: Sequence[Result], grid: Grid, among: Among | None = None) -> tuple[GridTable, ...]:
    """Returns one table for each value of ``each``, with the highest row first (or the lowest, where the grid says so)
    and the columns in the order of the results; all have the decimals that the results ``among`` which they stand need,
    by default all of ``results``.
    """
    decisive = results if among is None else among(grid.cell)
    if grid.each is not None and len({_path(result, grid.across) for result in results}) == 1:
        # Many tables with one column each are better shown as one table with a column for each.
        grid = grid.replace(across=(*grid.across, grid.each), each=None)
    groups: dict[str | None, list[Result]] = {}
    for result in results:
        title = with_unit(grid.each, text_of(grid.each, result)) if grid.each else None
        groups.setdefault(title, []).append(result)
    return tuple(_table(title, members, grid, decisive) for title, members in groups.items())


@dataclass(frozen=True, slots=True)
class _Place:
    """What one row has in common: its value, and which of the results with this value in one column it holds."""

    value: Value
    turn: int


def _table(title: str | None, results: Sequence[Result], grid: Grid, among: Sequence[Result]) -> GridTable:
    at: dict[tuple[_Place, tuple[str, ...]], Crossing] = {}
    turns: Counter[tuple[Value, tuple[str, ...]]] = Counter()
    members: dict[_Place, Result] = {}
    for cell in map(Crossing, texts(grid.cell, results, among), results):
        value, path = value_of(cell.result, grid.rows.value), _path(cell.result, grid.across)
        place = _Place(value, turns[value, path])
        turns[value, path] += 1
        at[place, path] = cell
        members.setdefault(place, cell.result)
    sign = 1.0 if grid.is_rising else -1.0
    rows = dict(sorted(members.items(), key=lambda item: sign * (number_in(item[1], grid.rows.value) or 0.0)))
    labels = _labels(rows, grid.rows)
    columns = _columns([path for _, path in at], labels)
    return GridTable(
        title=title,
        corner=f"{grid.rows.head} [{grid.rows.unit}]" if grid.rows.unit else grid.rows.head,
        heads=tuple(
            tuple(with_unit(column, path[level]) for path in columns) for level, column in enumerate(grid.across)
        ),
        rows=tuple(
            (label, tuple(at.get((row, path)) for path in columns)) for row, label in zip(rows, labels, strict=True)
        ),
    )


def _labels(rows: Mapping[_Place, Result], column: Column) -> list[str]:
    """Returns the names of rows. Values that would print alike get more digits, and results of one value their run."""
    texts_of = {row: text_of(column, result) for row, result in rows.items()}
    values: dict[str, set[Value]] = {}
    for row, text in texts_of.items():
        values.setdefault(text, set()).add(row.value)
    labels = []
    for row, text in texts_of.items():
        number = number_in(rows[row], column.value)
        label = text
        if len(values[text]) > 1 and number is not None:
            label = format_digits(number * factor_of(column.form), _DIGITS_APART)
        if row.turn > 0 and rows[row].run_number is not None:
            label = f"{label} (run {rows[row].run_number})"
        labels.append(label)
    return labels


def _path(result: Result, across: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(text_of(column, result) for column in across)


def _columns(paths: Sequence[tuple[str, ...]], rows: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns each path once, those with the same outer heading next to each other.

    Names that rows have too, as the ports of each way from one to another, stand in the order of the rows: no port
    leads to itself, so that the first one would otherwise come after those that it leads to.
    """
    seen = [_in_order(list(dict.fromkeys(level)), rows) for level in zip(*paths, strict=True)]
    return sorted(set(paths), key=lambda path: [names.index(text) for names, text in zip(seen, path, strict=True)])


def _in_order(names: Sequence[str], rows: Sequence[str]) -> list[str]:
    return [*(row for row in rows if row in names), *(name for name in names if name not in rows)]


def one_above_the_other(tables: Sequence[GridTable]) -> tuple[tuple[GridTable, ...], ...]:
    """Returns the tables in groups of those with the same headings, each of which is printed as one table."""
    return tuple(tuple(same) for _, same in groupby(tables, key=lambda table: (table.corner, table.heads)))
