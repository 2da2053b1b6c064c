"""The datasheet layout: a sheet for each test with setup, settings, results and figure, to be compared with others."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.report.datasheet.sheets import Card, CardRow, Sheet, settings, setup, sheets
from nicbench.report.document.blocks import Block, Cell, Group
from nicbench.report.document.inlines import commands
from nicbench.report.document.tables import NOTHING, caption, cell, head, heading, name, paragraph, table
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections import closing, opening
from nicbench.report.sections.all_results import all_results
from nicbench.report.sections.method import deviations
from nicbench.report.sections.results import ports
from nicbench.report.sections.statistics import statistics
from nicbench.report.testbed.picture import pictures
from nicbench.report.testbed.wiring import wirings


def sections(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the answer, the testbed, a sheet for each test, then statistics, errata, revisions and glossary."""
    yield from opening.imported_note(report)
    if introduced := tuple(opening.about(report)):
        yield from introduced
        yield Group((heading(1, "Answer", id="answer"), *opening.answer(report)))
    else:
        yield from opening.answer(report)
    if not report.imported:
        yield from pictures(wirings(report.plan, report.bonds))
    made = sheets(report)
    for number, sheet in enumerate(made):
        yield Group(tuple(_sheet(sheet, report, figures, is_first=number == 0)), "sheet")
    if not made:
        yield paragraph("No test gave a result.")
    if report.statistics:
        yield Group((heading(1, "Statistics"), *statistics(report, figures)))
    if report.imported and report.imported.errata:
        yield Group((heading(1, "Errata"), *closing.errata(report)))
    yield Group((heading(1, "Revision history", id="revisions"), *closing.revisions(report)))
    yield Group((heading(1, "Glossary"), *deviations(report), *closing.glossary(report)))


def _sheet(sheet: Sheet, report: Report, figures: Figures, *, is_first: bool) -> Iterator[Block]:
    of_method = f" ({sheet.method})" if sheet.method and sheet.method != sheet.test else ""
    yield heading(1, f"Test “{sheet.test}”{of_method}")
    if report.imported:
        if is_first:
            yield from closing.source(report)
    else:
        yield heading(2, "Setup")
        yield from _card(setup(report))
        yield heading(2, "Settings")
        yield from _card(settings(report, sheet.test))
    yield from all_results(sheet.report, figures)
    yield from ports(sheet.report.ports)


def _card(card: Card) -> Iterator[Block]:
    """Yields a table of facts with a row for each fact and a column for each machine."""
    width = max(len(card.machines), 1)
    above = ((NOTHING, *map(head, card.machines)),) if card.machines else ()
    yield table(above, ((name(row.label), *_texts(row, width)) for row in card.rows), "system")
    if card.unknown:
        yield caption(f"Not known: {', '.join(card.unknown)} ({len(card.unknown)}).")


def _texts(row: CardRow, width: int) -> tuple[Cell, ...]:
    if row.texts and len(set(row.texts)) > 1:
        return tuple(cell(text or UNKNOWN) for text in row.texts)
    if row.texts:
        return (cell(row.texts[0], columns=width),)
    return (cell(commands(row.code) if row.code else row.text, columns=width),)
