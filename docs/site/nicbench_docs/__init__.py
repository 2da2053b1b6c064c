"""What the site adds to the pages of the repository: their tables in place, reports of studies, names for readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicbench_docs.finishing import finish_pages
from nicbench_docs.reading import read_page
from nicbench_docs.studies import Reports, make_reports

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers what is added; Sphinx calls it."""
    app.add_directive("reports", Reports)
    app.add_config_value("nicbench_reports", True, "")
    app.connect("source-read", read_page)
    app.connect("build-finished", finish_pages)
    app.connect("build-finished", make_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
