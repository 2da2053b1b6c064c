"""The words at the end of a page: of those that nicbench can explain, the ones that the page uses."""

from __future__ import annotations

import re
from html import unescape

_LIST = re.compile(r"<dl>(?:(?!<dl>).)*?</dl>", re.DOTALL)
_ENTRY = re.compile(r"\s*<dt>(?P<word>.*?)</dt><dd>.*?</dd>", re.DOTALL)
_DRAWN_OR_HIDDEN = re.compile(r"<(script|style)\b.*?</\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ALSO = {
    "p99.9": r"p99",
    "L1, L2": r"\bL[12]\b|layer [12]",
    "Frame size": r"frame",
    "Bootstrap": r"bootstrap",
    "Interval": r"\binterval",
}
"""How words are met where that is not as they are listed."""


def with_used_words(page: str) -> str:
    """The page, its glossary (its one plain ``<dl>`` with terms) without the words that are nowhere else on it."""
    found = _LIST.search(page)
    if found is None:
        return page
    rest = _DRAWN_OR_HIDDEN.sub(" ", page[: found.start()] + page[found.end() :])
    text = " ".join(unescape(_TAG.sub(" ", rest)).split())

    def kept(entry: re.Match[str]) -> str:
        word = unescape(entry["word"])
        pattern = _ALSO.get(word) or rf"(?<!\w){re.escape(word)}(?!\w)"
        return entry[0] if re.search(pattern, text, re.IGNORECASE) else ""

    return f"{page[: found.start()]}{_ENTRY.sub(kept, found[0])}{page[found.end() :]}"
