"""The report: one self-contained page about one run, made from its folder alone. It never touches a host."""

from pathlib import Path

from nicbench.model.report_wishes import Layout

__all__ = ["build"]


def build(folder: Path, layout: Layout | None = None) -> Path:
    """Writes the report of the run in ``folder`` and gives its path; a run that ended early gets one, too.

    ``layout`` is that of the bench file where it is None.
    """
    from nicbench.report import html  # here: it loads the charts, and whoever wants a word or a table draws none

    return html.build(folder, layout)
