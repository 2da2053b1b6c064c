"""Documents of a few blocks, for tests of what is made of them."""

from __future__ import annotations

from pathlib import Path

from nicbench.core.plan import Layout
from nicbench.report import html
from nicbench.report.document.blocks import Block, Document
from nicbench.report.document.finishing import finish_document
from nicbench.report.document.making import inlines, paragraph
from nicbench.report.gather import gather
from nicbench.report.layouts import document as document_of
from nicbench.store import RunFolder

PALETTE = {"ink": "#111111", "series-1": "#0072b2"}


def document(*blocks: Block, title: str = "Title") -> Document:
    """With nothing but these blocks."""
    header = (paragraph("nicbench", role="eyebrow"),)
    return finish_document(
        Document(title, "en", "nicbench 1", "nicbench 1", header, (), blocks, inlines("Made by nicbench."), PALETTE)
    )


def of_run(folder: Path, layout: Layout | None = None) -> Document:
    """The report of a run folder."""
    return document_of(gather(RunFolder.open(folder)), layout)


def page_of(folder: Path, layout: Layout | None = None) -> str:
    """The same as a page."""
    return html.write_html(of_run(folder, layout))
