"""Results in little room: small charts side by side, and the tables of one kind, which differ in their load, as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from nicbench.core.table import Column
from nicbench.report.cells import texts, value_of
from nicbench.report.document.blocks import Block, Cell, Figure, Panel, Table, plain
from nicbench.report.document.blocks import Row as BodyRow
from nicbench.report.document.making import (
    caption,
    cell,
    head,
    heading,
    inlines,
    mark,
    name,
    row,
    set_tone,
    strong,
    table,
)
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.numbers import basis_words
from nicbench.report.section import Row, Section
from nicbench.report.sections.results import notes, result_table
from nicbench.report.tables import scale_units
from nicbench.report.tails import TailTable

_BITS: Final = frozenset({"megabits", "gigabits"})
"""The forms of bit rates: the further tables that there is room for have them."""
_MOST_CHARTS: Final = 3
"""The most small charts, which is one row of them on paper."""


def small_charts(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the lead chart and the first charts of the other tests, small and side by side."""
    compared = report.comparison
    sections = compared.sections if compared else report.sections
    found = [figures.lead] if figures.lead else []
    found += [
        figure for section in sections for figure in figures.of_section(section)[:1] if figure is not figures.lead
    ]
    panels = [_small(figure) for figure in found if len(figure.panels) == 1][:_MOST_CHARTS]
    if panels:
        yield Figure(tuple(panels), look="multiples", title="Results as charts")


def _small(figure: Figure) -> Panel:
    panel = figure.panels[0]
    label = figure.title or panel.drawing.label
    said = plain(figure.caption).partition(". ")[0].rstrip(".")
    return replace(panel, drawing=panel.narrow or panel.drawing, narrow=None, head=inlines(strong(label)),
                   caption=inlines(f"{said}."), numbers=None)  # fmt: skip


def compact_sections(report: Report) -> Iterator[Block]:
    """Yields one table for all sections of a method that have the same columns, a heading row for each of them.

    Searched rates are in the table by frame size, where there is one.
    """
    shown = [section for section in report.sections if not section.is_bare]
    for _, members in groupby(shown, key=lambda section: (section.rows[0].result.method, section.table.part)):
        yield from _alike(list(members), is_shown=report.overview.by_size is not None)
    tails = [tail for tail in report.tails if any(row.outside for row in tail.rows)]
    if tails:
        yield from _tails(tails)


def _alike(sections: Sequence[Section], *, is_shown: bool) -> Iterator[Block]:
    first = sections[0]
    if is_shown and len(sections) == 1 and first.table.rates is not None:
        yield from _further(first)
        return
    title = first.table.title if len(sections) == 1 else first.table.title.partition(" at ")[0]
    yield heading(2, title)
    if first.table.has_basis:
        yield caption(f"{first.table.basis_of} are {basis_words(first.scope)}.")
    if len(sections) == 1:
        yield result_table(_main(first), ((_cells(first, at), at.result) for at in first.brief or first.rows))
    else:
        yield _stacked(sections)
    if len(sections) == 1:
        yield from _further(first)
    else:
        yield from notes(list(dict.fromkeys(note for section in sections for note in section.notes)))
        yield from _doubts(sections)


def _doubts(sections: Sequence[Section]) -> Iterator[Block]:
    """Yields one line for all results that may not be relied on: how many they are, and where the reasons stand."""
    number = sum(len(section.doubts) for section in sections)
    if number:
        are = "result is" if number == 1 else "results are"
        yield caption(set_tone("*", "warn"), f" {number} {are} disturbed or incomplete; the layout “study” says why.")


def _further(section: Section) -> Iterator[Block]:
    """Yields what is remarkable in the rows of a section, and its further tables."""
    yield from notes(section.notes)
    yield from _doubts([section])
    for further in section.further:
        if not any(column.form in _BITS for column in further.table.columns):
            continue
        places = [at for at, column in enumerate(further.table.columns) if at == 0 or not column.is_minor]
        columns = [further.table.columns[at] for at in places]
        yield heading(2, f"{section.table.title}: {further.table.title[:1].lower()}{further.table.title[1:]}")
        yield caption(further.table.caption)
        yield result_table(columns, (([row.cells[at] for at in places], row.result) for row in further.rows))


def _main(section: Section) -> list[Column]:
    """Returns the columns of a section that are neither minor nor unknown in all rows."""
    results = [row.result for row in section.rows]
    return [
        column
        for at, column in enumerate(section.table.columns)
        if at == 0 or not (column.is_minor or all(value_of(result, column.value) is None for result in results))
    ]


def _cells(section: Section, of: Row) -> list[str]:
    chosen = {id(column) for column in _main(section)}
    return [text for column, text in zip(section.table.columns, of.cells, strict=True) if id(column) in chosen]


def _stacked(sections: Sequence[Section]) -> Table:
    """Returns the sections one above the other in one table, the title of each above its rows.

    Alone each section has the units that suit it; here a column has one unit, which suits all of them.
    """
    heads = [column.head for column in _main(sections[0])]
    results = [each.result for section in sections for each in section.brief or section.rows]
    scaled = scale_units(sections[0].table, results)
    columns = [column for column in scaled.columns if column.head in heads]
    cells_of = zip(*(texts(column, results) for column in columns), strict=True)

    def rows() -> Iterator[BodyRow]:
        for section in sections:
            label = Cell(inlines(section.table.title), len(columns), is_head=True, words=True)
            yield replace(row(label, look="about"), begins_group=True)
            for each in section.brief or section.rows:
                cells = next(cells_of)
                yield row(
                    name(cells[0], mark(each.result)),
                    *(cell(strong(text) if column.is_main else text)
                      for column, text in zip(columns[1:], cells[1:], strict=True)),
                )  # fmt: skip

    return table(([head(column.head, column.unit) for column in columns],), rows(), "result")


def _tails(tails: Sequence[TailTable]) -> Iterator[Block]:
    """Yields one table of the long tails of all loads: the share of the frames that took longer than each bound."""
    bounds = tails[0].bounds
    alike = [tail for tail in tails if tail.bounds == bounds]
    yield heading(2, "Long tail")
    yield caption(f"The share of {alike[0].what} that took longer than each bound.")

    def rows() -> Iterator[BodyRow]:
        for tail in alike:
            label = Cell(inlines(f"At {tail.load}"), len(bounds) + 1, is_head=True, words=True)
            yield replace(row(label, look="about"), begins_group=True)
            for each in tail.rows:
                yield row(name(each.name, mark(each.result)), *(cell(share) for _, share in each.outside))

    yield table(([head("Frame"), *(head(f"> {bound} µs") for bound in bounds)],), rows(), "result")


__all__ = ["compact_sections", "small_charts"]
