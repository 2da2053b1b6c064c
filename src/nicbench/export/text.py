"""Text that does no harm: titles, host names and tools' words reach files that other programs read."""

from __future__ import annotations

import re
from typing import Any, Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
"""What no text file should hold and XML 1.0 may not; tab and the ends of lines stay."""
_BEGINS_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheet programs take a cell for a formula by its first character, also a full-width one (CWE-1236)."""


def storable(text: str) -> str:
    """Text that can be written as UTF-8: halves of surrogate pairs, which JSON may spell, become U+FFFD."""
    if text.isascii():  # nearly all are, and there are millions of cells
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_deeply(value: Any) -> Any:
    """The same for every text in lists and dictionaries."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_deeply(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable_deeply(each) for each in value]
    return value


def replace_controls(text: str) -> str:
    """The same without control characters; each becomes U+FFFD, so that it is seen that something was there."""
    return _CONTROL.sub("\ufffd", storable(text))


def harmless_cell(text: str) -> str:
    """A cell of a CSV file that no spreadsheet program takes for a formula: such text gets an apostrophe before it."""
    clean = replace_controls(text)
    return f"'{clean}" if clean.startswith(_BEGINS_A_FORMULA) else clean
