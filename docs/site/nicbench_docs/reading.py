"""Reads a page for the site: tables take the place of the links that lead to them, directives come out of comments.

A page is Markdown that any viewer shows. A paragraph that is nothing but a link into ``docs/tables`` becomes the table
(or, without an anchor, the whole file), and a comment that begins with ``{NAME}`` a directive.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LINK = re.compile(r"^\[[^\]]+\]\(((?:\.\./)?tables/[\w-]+\.markdown)(?:#([\w-]+))?\)$", re.MULTILINE)


def slug(heading: str) -> str:
    """Returns the anchor of a heading, as forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def sections(text: str) -> dict[str, str]:
    """Returns what stands below each heading of a file of tables, by its anchor."""
    _, *parts = re.split(r"^#+ (.*)\n", text, flags=re.MULTILINE)
    return {slug(heading): below for heading, below in zip(parts[::2], parts[1::2], strict=True)}


def read_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Puts tables and directives into the text of a page; Sphinx calls it."""
    folder = (Path(app.srcdir) / page).parent

    def table(link: re.Match[str]) -> str:
        path = folder / link[1]
        app.env.note_dependency(os.path.relpath(path, app.srcdir), docname=page)
        text = path.read_text()
        below = sections(text)[link[2]] if link[2] else text.partition("-->\n")[2]
        return re.sub(
            r"\]\((\.\./[^)]+)\)", lambda other: f"]({os.path.relpath(path.parent / other[1], folder)})", below
        )

    text = re.sub(r"^<!-- (\{[a-z]+\}.*?)\n-->$", r"```\1\n```", source[0], flags=re.MULTILINE | re.DOTALL)
    source[0] = re.sub(r"\]\(tables/(commands)\.markdown#", r"](\1.md#", LINK.sub(table, text))
