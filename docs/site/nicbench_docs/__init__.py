"""What the pages of the site have from the program itself: tables of keys, commands, formats and thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicbench_docs.directives import DIRECTIVES
from nicbench_docs.finishing import finish_pages
from nicbench_docs.studies import Reports, make_reports

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives; Sphinx calls it."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.add_directive("reports", Reports)
    app.add_config_value("nicbench_reports", True, "")
    app.connect("build-finished", finish_pages)
    app.connect("build-finished", make_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
