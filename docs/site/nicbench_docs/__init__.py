"""What the pages of the site have from the program itself: tables of keys, commands, formats and thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicbench_docs.directives import DIRECTIVES

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives; Sphinx calls it."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
