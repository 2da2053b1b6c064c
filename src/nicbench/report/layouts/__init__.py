"""Layouts of a report: each module is named like a value of ``--layout`` and has a function ``sections``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Protocol, cast

from nicbench.core.plan import Layout
from nicbench.report import html
from nicbench.report.document.blocks import Block, Document, Inlines, plain
from nicbench.report.document.finishing import finish_document, palette
from nicbench.report.document.making import inlines
from nicbench.report.drawing.figures import Figures
from nicbench.report.model import Report
from nicbench.report.sections import opening


class Sections(Protocol):
    """The interface of a layout module: it yields the sections of a report in the order of the layout."""

    IS_BRIEF: bool
    """Whether paper has the document in small type, without a table of contents."""

    def sections(self, report: Report, figures: Figures) -> Iterator[Block]:
        """Yields all blocks between the title and the footer."""


def document(report: Report, layout: Layout | None = None) -> Document:
    """Makes the document of a run's report in the given ``layout``, or in the one that its bench file asks for."""
    name = (layout or report.wishes.layout).value
    chosen = cast(Sections, import_module(f"nicbench.report.layouts.{name}"))
    blocks = chosen.sections(report, Figures(report))
    is_brief = chosen.IS_BRIEF
    return make_document(report, opening.header(report), blocks, opening.footer(report), is_brief=is_brief)


def make_document(
    report: Report, header: Iterable[Block], blocks: Iterable[Block], footer: Inlines, *, is_brief: bool = False
) -> Document:
    """Makes the document of a page about results from its header, blocks and footer."""
    generator = f"nicbench {report.nicbench_version or ''}".strip()
    author = plain(inlines(report.wishes.author))
    return finish_document(
        Document(
            title=plain(inlines(report.heading)),
            language="en",
            generator=generator,
            author=author or generator,
            header=tuple(header),
            contents=(),
            blocks=tuple(blocks),
            footer=footer,
            palette=palette(html.style()),
            is_brief=is_brief,
        )
    )
