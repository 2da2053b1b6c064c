"""The report of one run, made from its run folder alone: one document, written as HTML, PDF and Markdown. Making a
report never touches a host.

A report is one document of typed blocks (``report/document/blocks.py``). ``report/gather.py`` reads the run folder into
a ``Report``; ``report/sections`` has a function for each section, from what is known to blocks;
``report/layouts/NAME.py`` puts sections in order, so a layout is that file and a name in ``core/plan.py``.
``report/html.py``, ``report/pdf`` and ``report/markdown.py`` write the same document. Sections make text and tables by
``document/making.py``, which makes steering characters in the text of others visible; their headings begin at level 2.
``document/finishing.py`` gives names, ids and contents, and takes out of paper what only a screen needs. Charts come
from ``report/drawing``, each in two widths with its numbers behind it; ``charts.js``, ``zoom.js`` and ``tables.js`` let
them and the tables answer, and ``make pages`` tries that in a browser (``tests/pages/answers.mjs``); the diagram of the
testbed from ``report/diagram.py``. The width of letters is known to ``report/glyphs.py`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicbench.core.plan import Layout

__all__ = ["Format", "build", "build_formats"]


class Format(StrEnum):
    """A file format in which a report can be written."""

    HTML = "html"
    PDF = "pdf"
    MARKDOWN = "md"


def build(folder: Path, layout: Layout | None = None) -> Path:
    """Writes the HTML report of the run in ``folder`` and returns its path; a run that ended early gets a report, too.
    Without a ``layout``, that of the bench file is used.
    """
    return build_formats(folder, (Format.HTML,), layout)[Format.HTML]


def build_formats(
    folder: Path, formats: Sequence[Format], layout: Layout | None = None, out: Path | None = None, logo: bytes = b""
) -> Mapping[Format, Path]:
    """Writes the report of the run in ``folder`` in each of ``formats`` and returns the paths.

    The files go to ``out``, which is created where it is missing, or else to the run folder. Without a
    ``layout``, that of the bench file is used. ``logo`` is a PNG above the title. Raises NotReadyError where a PDF is
    wanted and typst is not installed, and HostError where the files cannot be written.
    """
    from nicbench.report import formats as files  # here, because it loads the chart library, which few callers need

    return files.build(folder, formats, layout, out, logo)
