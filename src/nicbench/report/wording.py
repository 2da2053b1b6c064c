"""Small words of sentences and lists: capital letters and the first few of many."""

from __future__ import annotations

from collections.abc import Sequence


def capitalise(text: str) -> str:
    """Returns the text with its first letter in upper case and the others unchanged."""
    return f"{text[:1].upper()}{text[1:]}"


def lower_first(text: str) -> str:
    """Returns the text with its first letter in lower case and the others unchanged."""
    return f"{text[:1].lower()}{text[1:]}"


def first_few(items: Sequence[str], most: int, separator: str = ", ", more: str = " and {} more") -> str:
    """Returns the first items, and how many more there are."""
    rest = len(items) - most
    return f"{separator.join(items[:most])}{more.format(rest) if rest > 0 else ''}"
