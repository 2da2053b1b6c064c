"""The first screen of a comparison: answer, verdict, one chart, one table of all points; then what else was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.report.beside.changes import Change, ChangeCell, ChangeTable
from nicbench.report.beside.page import Page
from nicbench.report.document.blocks import Block, Cell, FoldedBlocks, Group, Note, Row, Text, Verdict
from nicbench.report.document.inlines import BREAK, badge, capitalise, inlines, mark, small, strong, tone_of
from nicbench.report.document.tables import NOTHING, caption, cell, head, heading, listing, name, paragraph, row, table
from nicbench.report.drawing.figures import Figures
from nicbench.report.numbers import UNKNOWN
from nicbench.report.sections.comparing import rates_by_configuration

_MOST_REMARKS: Final = 3
"""The most remarks that stand above the chart; the others are folded beneath them."""


_MOST_BESIDE: Final = 2
"""The most entries whose table has room beside the chart."""


def first_screen(page: Page, figures: Figures) -> Iterator[Block]:
    """Yields answer and verdict, what a reader must know before drawing conclusions, a chart and a table of it all."""
    yield paragraph(page.report.headline, role="answer")
    yield Verdict(tuple(_badges(page)), inlines(page.changes.sentence if page.changes else ""))
    yield from _remarks(page)
    blocks: list[Block] = [figures.lead] if figures.lead is not None else []
    if page.changes is not None:
        blocks.append(_table(page.changes))
    if blocks and len(page.entries) > _MOST_BESIDE:
        yield from blocks
    elif blocks:
        yield Group(tuple(blocks), "overview")
    if page.changes is not None:
        yield caption(_about(page.changes))
    elif compared := page.report.comparison:
        for shown in compared.rates[:1]:
            yield from rates_by_configuration(shown, shown.goals[0])


def _badges(page: Page) -> Iterator[Text]:
    if page.changes is not None and page.changes.changes:
        is_shown = any(change.is_shown for change in page.changes.changes)
        yield badge("difference shown", "good") if is_shown else badge("no difference claimed", "quiet")
    verdict = page.report.verdict.value
    yield badge(f"runs: {verdict}", tone_of(verdict))


def _remarks(page: Page) -> Iterator[Block]:
    if page.told:
        told = [paragraph(f"{capitalise(text)}.") for text in page.told]
        rest = told[_MOST_REMARKS:]
        more = (FoldedBlocks(inlines(f"{len(rest)} more"), tuple(rest)),) if rest else ()
        yield Note((paragraph(strong("Before drawing conclusions:")), *told[:_MOST_REMARKS], *more))


def _about(shown: ChangeTable) -> str:
    against = f"Change is that from “{shown.names[0]}”: " if len(shown.names) > 2 else "Change: "
    left_out = f" Below: {'; '.join(shown.left_out)}." if shown.left_out else ""
    return (
        f"{against}between two bounds where the intervals of the rates give them, else the ratio of the medians, with "
        "its interval in brackets where there are enough runs. A change without an interval is a ratio of two numbers "
        f"and no claim.{left_out}"
    )


def _table(shown: ChangeTable) -> Block:
    """Returns the table with a row for each point: the value of each entry with its interval beneath it, and the change
    from the first entry with its verdict beneath it.
    """
    names: list[Cell] = [head(shown.names[0])]
    for each in shown.names[1:]:
        names += [head(each), head("Change")]

    def rows() -> Iterator[Row]:
        for part in shown.parts:
            yield row(Cell(inlines(strong(part.heading)), len(names) + 1, is_head=True, words=True), look="about")
            for point in part.rows:
                cells = [each for number, one in enumerate(point.cells) for each in _cells(one, is_first=number == 0)]
                yield row(name(point.point), *cells)

    return table(((NOTHING, *names),), rows(), "result")


def _cells(one: ChangeCell, *, is_first: bool) -> Iterator[Cell]:
    within = (BREAK, small(one.within)) if one.within else ()
    yield cell(strong(one.text), mark(one.result) if one.result else None, *within)
    if not is_first:
        change = one.change
        yield _change_cell(change) if change is not None else cell(UNKNOWN)


def _change_cell(change: Change) -> Cell:
    """Returns a change with its verdict beneath it, so that the table fits a phone."""
    verdict = strong(change.verdict) if change.is_shown else small(change.verdict)
    return cell(change.text, BREAK, verdict, tone="" if change.is_shown else "quiet")


def findings(page: Page) -> Iterator[Block]:
    """Yields what else was found, a sentence each."""
    if page.report.details:
        yield heading(1, "Key findings", id="findings")
        yield listing(page.report.details)
