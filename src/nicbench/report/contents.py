"""The table of contents of a page, made from its headings; and an id for every heading, each once."""

from __future__ import annotations

import re
from html import unescape

from markupsafe import escape

from nicbench.report.study.anchors import anchor

MARK = "<!--contents-->"
"""Where a layout wants it. Text of others cannot contain it, for it is escaped."""
_HEADING = re.compile(
    r'<h(?P<level>[2-6])(?: id="(?P<id>[^"]*)")?(?P<rest>[^>]*)>(?P<inside>.*?)</h(?P=level)>', re.DOTALL
)
_TAG = re.compile(r"<[^>]*>")


def with_contents(page: str) -> str:
    """The page with an id at each heading and, where it is marked, a list of those of the first level."""
    taken: set[str] = set(re.findall(r'<(?!h[2-6]\b)\w+ [^>]*?\bid="([^"]+)"', page))
    entries: list[tuple[str, str]] = []

    def named(found: re.Match[str]) -> str:
        text = " ".join(_TAG.sub("", found["inside"]).split())
        name = _free(found["id"] or anchor(unescape(text)), taken)
        taken.add(name)
        if found["level"] == "2":
            entries.append((name, text))
        return f'<h{found["level"]} id="{escape(name)}"{found["rest"]}>{found["inside"]}</h{found["level"]}>'

    head, main, body = page.partition("<main>")
    return f"{head}{main}{_HEADING.sub(named, body)}".replace(MARK, _list(entries), 1)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _list(entries: list[tuple[str, str]]) -> str:
    """Folded on a phone; ``text`` is markup already."""
    items = "".join(f'<li><a href="#{escape(name)}">{text}</a></li>' for name, text in entries)
    folded = f"<details><summary>Contents</summary><ul>{items}</ul></details>"
    return f'<nav class="contents" aria-label="Contents">{folded}</nav>'
