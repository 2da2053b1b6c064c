"""The datasheet layout: results, setup and disclosure on as few pages as a vendor would publish, two for one device."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.report.datasheet.cards import Card, CardRow, settings, setup
from nicbench.report.document.blocks import Block, Cell, Group
from nicbench.report.document.inlines import code, join_inlines, strong
from nicbench.report.document.tables import NOTHING, caption, cell, head, heading, name, paragraph, table
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections import closing, comparing, opening
from nicbench.report.sections.compact import compact_sections, small_charts
from nicbench.report.sections.editors import studies
from nicbench.report.sections.overview import basis_line, loss_line, point_table, size_table
from nicbench.report.sections.results import other_results
from nicbench.report.sections.statistics import statistics

IS_BRIEF = True
"""Whether paper has the document in small type, without a table of contents."""


def sections(report: Report, figures: Figures) -> Iterator[Block]:
    """Yields the answer, all results, the statistics, the setup, and in small print what there is to disclose."""
    yield from opening.imported_note(report)
    if introduced := tuple(opening.about(report)):
        yield from introduced
        yield Group((heading(1, "Answer", id="answer"), *opening.answer(report)))
    else:
        yield from opening.answer(report)
    results = tuple(_results(report, figures))
    yield Group((heading(1, "Results", id="results"), *(results or (paragraph("No test gave a result."),))))
    if report.statistics:
        yield Group((heading(1, "Statistics"), *statistics(report, figures)))
    if report.imported:
        yield Group((heading(1, "Source", id="method"), *closing.source(report)))
        if report.imported.errata:
            yield Group((heading(1, "Errata"), *closing.errata(report)))
    else:
        yield Group((heading(1, "Setup", id="setup"), *_card(setup(report))), "sheet")
        yield Group(
            (heading(1, "Disclosure", id="disclosure"), *_card(settings(report)), *_small_print(report)), "sheet"
        )


def _results(report: Report, figures: Figures) -> Iterator[Block]:
    shown, compared = report.overview, report.comparison
    yield from studies(report, figures)
    if shown.by_size is not None:
        yield size_table(shown.by_size)
        yield from basis_line(shown.by_size)
    if shown.points and compared is None:
        yield point_table(shown.points)
    yield from loss_line(report)
    yield from small_charts(report, figures)
    if compared is None:
        yield from compact_sections(report)
    else:
        yield from comparing.compared_configurations(compared, report)
        yield from comparing.over_axes(compared, figures)
        yield from comparing.rates(compared, report, figures)
        yield from comparing.every_value(compared, report, figures)
    yield from other_results(report.other_results)


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
    return (cell(join_inlines("; ", map(code, row.code)) if row.code else row.text, columns=width),)


def _small_print(report: Report) -> Iterator[Block]:
    """Yields the deviations and the history, a paragraph each."""
    if report.plan and report.plan.deviations:
        yield heading(2, "Deviations from the standards", id="deviations")
        yield caption(f"{'; '.join(report.plan.deviations)}.")
    history = "; ".join(f"{row.when or 'not known'}: {row.what}" for row in report.revisions)
    yield caption(strong("Revision history:"), f" {history}.")
