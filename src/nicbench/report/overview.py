"""All results of a run in one table: a row for each frame size, or one for each point of tests without frame sizes.

A report opens with it, and a run ends with it on the terminal. Methods choose its columns (``ResultTable.overview``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from nicbench.core.lists import grouped, without_none
from nicbench.core.result import Result, ResultVerdict, Summary
from nicbench.core.table import Column
from nicbench.core.units import uncapitalise
from nicbench.report.cells import number_in, text_of, value_of, with_unit
from nicbench.report.numbers import UNKNOWN, basis_words
from nicbench.report.section import Row, Section, name_of_row, place_columns
from nicbench.report.tables import configuration_of, side_by_side

_MOST_ROWS_OF_TEST: Final = 6
"""The most rows of a test that are listed each; of more, the table has the least and the greatest value."""
_MOST_ROWS: Final = 12
"""The most rows of all tests that are listed each."""


class SizePoint(NamedTuple):
    """A row: the frame size of a configuration, and the result of each kind of table there, by its order."""

    size: str
    configuration: str
    of: Mapping[int, Result]

    @property
    def verdict(self) -> ResultVerdict:
        """The worst verdict of its results."""
        order = list(ResultVerdict)
        return max((result.verdict for result in self.of.values()), key=order.index)


class SizeColumn(NamedTuple):
    """A column, the title of the table that it comes from, and a result for each row; None where a test has none."""

    column: Column
    title: str
    results: tuple[Result | None, ...]

    @property
    def known(self) -> list[Result]:
        """The results that there are, in the order of the rows."""
        return without_none(self.results)


class BySize(NamedTuple):
    """The columns of all tests joined by frame size; of several loads the highest."""

    points: tuple[SizePoint, ...]
    columns: tuple[SizeColumn, ...]
    titles_of_scopes: Mapping[str, tuple[str, ...]]
    """Each scope of rates, with the titles of the tables whose rates have it."""

    @property
    def compares(self) -> bool:
        """Whether it has several configurations."""
        return len({point.configuration for point in self.points}) > 1

    @property
    def basis(self) -> str:
        """What the rates are of, as it follows "Rates are": "per port (throughput) or the sum of 2 ports (latency)"."""
        if len(self.titles_of_scopes) == 1:
            return basis_words(next(iter(self.titles_of_scopes)))
        bases = (f"{basis_words(scope)} ({', '.join(titles)})" for scope, titles in self.titles_of_scopes.items())
        return " or ".join(bases)


class Figure(NamedTuple):
    """A main value in words: its name, the number with its unit, and the range of the runs, in brackets, or ""."""

    name: str
    text: str
    range: str


class PointRow(NamedTuple):
    """A row for a point of a test without frame sizes, or for all of them: what was measured there, in words."""

    test: str
    point: str
    figures: tuple[Figure, ...]
    results: tuple[Result, ...]


class Overview(NamedTuple):
    """What a report opens with; either part may be missing."""

    by_size: BySize | None
    points: tuple[PointRow, ...]


def overview(summary: Summary, tests: Mapping[str, str]) -> Overview:
    """Returns the overview of a run; of several runs it has the medians. ``tests`` maps ids of old results to tests."""
    every = [section for section in side_by_side(summary.beside_each_other, tests) if not section.is_bare]
    joined = [section for section in every if section.table.overview]
    return Overview(
        by_size=join_by_size(joined) if joined else None,
        points=_points_of([section for section in every if section not in joined and not section.table.editors]),
    )


def join_by_size(sections: Sequence[Section]) -> BySize:
    """Joins the columns of sections by frame size. A column that is minor or optional is left out where no result has
    its value.
    """
    kinds = _by_method(sections)
    points = _by_frame_size(kinds)
    columns = []
    for number, members in enumerate(kinds):
        results = tuple(point.of.get(number) for point in points)
        title = _title_of(members, results)
        for column in members[0].table.overview:
            is_left_out = column.is_minor or (column.is_optional and not column.is_main)
            is_unknown = all(value_of(result, column.value) is None for result in results if result is not None)
            if not (is_left_out and is_unknown):
                columns.append(SizeColumn(column, title, results))
    scopes: dict[str, tuple[str, ...]] = {}
    for section in sections:
        title = uncapitalise(section.table.title.partition(" at ")[0])
        scopes[section.scope] = tuple(dict.fromkeys((*scopes.get(section.scope, ()), title)))
    return BySize(tuple(points), tuple(columns), scopes)


def _title_of(members: Sequence[Section], results: Sequence[Result | None]) -> str:
    """Returns the title of the tables that the results come from; without the load where that differs."""
    shown = {result.id for result in results if result is not None}
    titles = {section.table.title for section in members if any(row.result.id in shown for row in section.rows)}
    title = titles.pop() if titles else members[0].table.title
    return title.partition(" at ")[0] if titles else title


def _by_method(sections: Iterable[Section]) -> list[list[Section]]:
    """Those of one method, which are of several tests or loads, share their columns; searched rates come first."""
    ordered = sorted(sections, key=lambda section: section.table.rates is None)
    return list(grouped((section.rows[0].result.method, section) for section in ordered).values())


def _by_frame_size(kinds: Sequence[Sequence[Section]]) -> list[SizePoint]:
    points: dict[tuple[str, str], dict[int, Result]] = {}
    for number, members in enumerate(kinds):
        results = [row.result for section in members for row in section.rows]
        for result in sorted(results, key=lambda result: -(number_in(result, "load_percent") or 0.0)):
            size, name = str(result.parameters.get("size", "-")), configuration_of(result)
            points.setdefault((size, name), {}).setdefault(number, result)
    order = {size: place for place, (size, _) in enumerate(points)}
    made = [SizePoint(size, name, of) for (size, name), of in points.items()]
    return sorted(made, key=lambda point: order[point.size])


def _points_of(sections: Sequence[Section]) -> tuple[PointRow, ...]:
    shown = [(section, section.sums or section.brief or section.rows) for section in sections]
    is_short = sum(len(rows) for _, rows in shown) <= _MOST_ROWS
    titles = Counter(section.table.title for section in sections)
    made = []
    for section, rows in shown:
        mains = [at for at, column in enumerate(section.table.columns) if column.is_main and not _is_count(column)]
        if not mains:
            continue
        title = section.table.title
        test = title if titles[title] == 1 else f"{title}: {section.test}"
        if len(rows) <= (_MOST_ROWS_OF_TEST if is_short else 1):
            made += [_row(section, test, row, mains, rows) for row in rows]
        else:
            made.append(_range(section, test, rows, mains))
    return tuple(made)


def _is_count(column: Column) -> bool:
    """Whether a column has numbers of which neither more nor fewer are better, as the bins of a long tail have."""
    return column.form == "whole" and column.better is None


def _row(section: Section, test: str, row: Row, mains: Sequence[int], among: Sequence[Row]) -> PointRow:
    figures = tuple(_figure(section.table.columns[at], row.cells[at]) for at in mains)
    return PointRow(test, _name_among(section, row, among), figures, (row.result,))


def _name_among(section: Section, row: Row, among: Sequence[Row]) -> str:
    """Returns the name of a row, with what sets it apart from rows of the same name; in a grid without what all rows
    have in common.
    """
    if section.table.grid is None or len(among) < 2:
        own = name_of_row(section.table, row)
        alike = [other for other in among if name_of_row(section.table, other) == own]
        apart = [
            row.cells[at]
            for at, column in enumerate(section.table.columns)
            if column.form == "text" and not column.is_main and len({other.cells[at] for other in alike}) > 1
        ]
        return ", ".join((own, *apart))
    parts = []
    for column in place_columns(section.table.grid):
        each = {text_of(column, other.result) for other in among}
        if len(each) > 1:
            parts.append(with_unit(column, text_of(column, row.result)))
    return ", ".join(parts)


def _range(section: Section, test: str, rows: Sequence[Row], mains: Sequence[int]) -> PointRow:
    """Returns one row for many: each main value from the least to the greatest."""
    figures = []
    for at in mains:
        column = section.table.columns[at]
        known = [(number, row.cells[at]) for row in rows if (number := number_in(row.result, column.value)) is not None]
        ends = dict.fromkeys(text.partition(" (")[0] for _, text in (min(known), max(known))) if known else {}
        figures += [_figure(column, " to ".join(ends))] if ends else []
    return PointRow(test, f"{len(rows)} points", tuple(figures), tuple(row.result for row in rows))


def _figure(column: Column, text: str) -> Figure:
    name = column.name or column.head
    number, bracket, rest = text.partition(" (")
    of_unit = f"\u00a0{column.unit}" if column.unit and number != UNKNOWN else ""
    return Figure(uncapitalise(name), f"{number}{of_unit}", f"{bracket}{rest}")


__all__ = ["BySize", "Figure", "Overview", "PointRow", "SizeColumn", "SizePoint", "join_by_size", "overview"]
