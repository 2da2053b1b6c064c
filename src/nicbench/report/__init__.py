"""The report of one run, made from its run folder alone: one document, written as HTML, PDF and Markdown. Making a
report never touches a host.

Is one document of typed blocks (``report/document/blocks.py``). ``report/gather.py`` reads the run folder into a
``Report``; ``report/sections`` has a function for each section, from what is known to blocks;
``report/layouts/NAME.py`` puts sections in order, so a layout is that file and a name in ``core/plan.py``.
``report/html.py``, ``report/pdf`` and ``report/markdown.py`` write the same document; ``document/paper.py`` takes out
what only a screen needs. Sections make text by ``document/inlines.py``, which makes steering characters in the text
of others visible, and tables by ``document/tables.py``; their headings begin at level 2. ``document/finishing.py``
gives names, ids and contents. Charts come from ``report/drawing``, each in two widths with its numbers behind it;
``charts.js``, ``zoom.js`` and ``tables.js`` let them and the tables answer, and ``make pages`` tries that in a
browser (``tests/pages/answers.mjs``); the diagram of the testbed from ``report/testbed``. The width of letters is
known to ``report/glyphs.py`` alone.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from nicbench.core.plan import Layout

__all__ = ["Format", "build", "build_formats"]


class Format(StrEnum):
    """A file format in which a report can be written."""

    HTML = "html"
    PDF = "pdf"
    MARKDOWN = "md"


def build(folder: Path, layout: Layout | None = None) -> Path:
    """Writes the HTML report of the run in ``folder`` and returns its path; a run that ended early gets a report, too.
    Where ``layout`` is None, the layout that the bench file names is used.
    """
    return build_formats(folder, (Format.HTML,), layout)[Format.HTML]


def build_formats(
    folder: Path, formats: Sequence[Format], layout: Layout | None = None, out: Path | None = None
) -> Mapping[Format, Path]:
    """Writes the report of the run in ``folder`` in each of ``formats`` and returns the paths.

    The files go to ``out``, which is created where it is missing, or to the run folder where ``out`` is None. Where
    ``layout`` is None, the layout that the bench file names is used. Raises NotReadyError where a PDF is wanted and
    typst is not installed, and HostError where the files cannot be written.
    """
    from nicbench.report import formats as files  # here, because it loads the chart library, which few callers need

    return files.build(folder, formats, layout, out)
