"""What the theme leaves out for readers who use a keyboard or a screen reader (WCAG 2.2): names, levels and reach."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SUBMIT = '<button type="submit" class="nicbench-hidden">Search</button>'
_CHANGES = (
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">'),
    (r'<aside class="toc-drawer([^"]*)">', r'<aside class="toc-drawer\1" aria-label="On this page">'),
    (r"<pre(?! tabindex)", '<pre tabindex="0"'),
    (r'<input class="sidebar-search"', '<input type="search" class="sidebar-search"'),
    (r"<button(?![^>]*type=)", '<button type="button"'),
    (r'(<form class="sidebar-search-container"(?:(?!</form>).)*)</form>', rf"\1{_SUBMIT}</form>"),
    (r'<div class="table-wrapper([^"]*)"', r'<div tabindex="0" class="table-wrapper\1"'),
)
"""Patterns in the pages of the theme, and what takes their place."""


def finish_pages(app: Sphinx, failure: Exception | None) -> None:
    """Finishes every page that was built; a page that is finished stays as it is."""
    if failure is not None:
        return
    for path in Path(app.outdir).rglob("*.html"):
        if "reports" in path.relative_to(app.outdir).parts:
            continue
        text = before = path.read_text()
        if _SUBMIT in text:
            continue
        for pattern, instead in _CHANGES:
            text = re.sub(pattern, instead, text, flags=re.DOTALL)
        if text != before:
            path.write_text(text)
