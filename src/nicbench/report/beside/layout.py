"""comparison.html as a document: it opens as a report does, with answer, chart and one table; the rest is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nicbench.report.beside.page import Page
from nicbench.report.document.blocks import Block, Document, FoldedBlocks, Group
from nicbench.report.document.folding import fold
from nicbench.report.document.inlines import inlines, strong
from nicbench.report.document.tables import heading, paragraph
from nicbench.report.drawing.figures import Figures
from nicbench.report.layouts import make_document
from nicbench.report.sections import beside, beside_opening, closing, comparing
from nicbench.report.sections.editors import studies
from nicbench.report.sections.statistics import statistics

_MOST_BARS = 7
"""The most rows that are drawn as bars of a long tail; more rows have only the table."""


def document(page: Page) -> Document:
    """Returns the page of a comparison as a document."""
    eyebrow = (strong("nicbench"), f" · comparison of {len(page.entries)} results")
    published = ", and from published figures" if page.published else ""
    footer = (
        f"Made by nicbench {page.report.nicbench_version} from the run folders that it names{published}, alone. They "
        "were not changed."
    )
    header = (paragraph(*eyebrow, role="eyebrow"),)
    return make_document(page.report, header, _sections(page, Figures(page.report)), inlines(footer))


def _sections(page: Page, figures: Figures) -> Iterator[Block]:
    """Yields the first screen, then a section for each step, folded on a page as those of a report are."""
    yield from beside.objections(page)
    yield Group((heading(1, "Answer", id="answer"), *beside_opening.first_screen(page, figures)), "opening")
    yield from _folded(beside_opening.findings(page))
    yield from _folded(beside.entries(page))
    yield from _folded(beside.settings(page))
    yield Group((heading(1, "Results side by side", id="results"), *fold(_results(page, figures))))
    yield from _folded(beside.lonely(page))
    yield from _folded(beside.published_sources(page))
    yield from _folded((heading(1, "Glossary", id="glossary"), *closing.glossary(page.report)))
    yield from _folded(beside.command_block(page))


def _folded(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yields the section as one folded group; nothing where it is empty."""
    if parts := tuple(blocks):
        yield Group(parts, "folded")


def _results(page: Page, figures: Figures) -> Iterator[Block]:
    report, compared = page.report, page.report.comparison
    assert compared is not None  # noqa: S101 - a page compares
    yield from studies(report, figures)
    yield from comparing.rates(compared, report, figures)
    yield from beside.main_values(page)
    every = tuple(comparing.every_value(compared, report, figures, most_bars=_MOST_BARS))
    if page.many and compared.sections:
        summary = f"Every value of every point: {len(compared.names)} entries beneath each other"
        yield FoldedBlocks(inlines(summary), every)
    else:
        yield from every
    yield from statistics(report, figures)
