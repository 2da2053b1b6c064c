"""The anchors that GitHub gives to headings, so that a table of contents leads to them."""

from __future__ import annotations

import re

_DROPPED = re.compile(r"[^\w\- ]")


class Anchors:
    """One per heading, in their order: the same heading again has a number behind it."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}

    def of(self, heading: str) -> str:
        """Lower case, no punctuation, hyphens for spaces."""
        slug = _DROPPED.sub("", heading.strip().lower()).replace(" ", "-")
        times = self._given.get(slug, 0)
        self._given[slug] = times + 1
        return f"{slug}-{times}" if times else slug
