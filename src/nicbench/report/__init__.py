"""The report of one run, made from its folder alone: one document, written as a page, as PDF and as Markdown.

It never touches a host.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from nicbench.core.report_options import Layout

__all__ = ["Format", "build", "build_formats"]


class Format(StrEnum):
    """A kind of file that a report is."""

    HTML = "html"
    PDF = "pdf"
    MARKDOWN = "md"


def build(folder: Path, layout: Layout | None = None) -> Path:
    """Writes the report of the run in ``folder`` and gives its path; a run that ended early gets one, too.

    ``layout`` is that of the bench file where it is None.
    """
    return build_formats(folder, (Format.HTML,), layout)[Format.HTML]


def build_formats(
    folder: Path, formats: Sequence[Format], layout: Layout | None = None, out: Path | None = None
) -> Mapping[Format, Path]:
    """Writes the report of the run in ``folder`` in each of ``formats`` and gives their paths.

    They go to ``out``, which is made where it is missing, else to the run folder. The layout is that of the bench file
    where it is None. NotReadyError where a PDF is wanted and typst is not installed; HostError where nothing can be
    written.
    """
    from nicbench.report import formats as files  # here: it loads the charts, and a word or a table draws none

    return files.build(folder, formats, layout, out)
