"""Plain scalars by the YAML 1.2 core schema (section 10.3.2): ``no``, ``64:7`` and ``0000:03:00.0`` stay text."""

from __future__ import annotations

import math
import re
from typing import Final

MOST_DIGITS: Final = 25
"""More digits than any quantity has; Python's own conversion grows with the square of them."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")


class NumberTooLongError(ValueError):
    """A number of more digits than ``MOST_DIGITS``, or larger than any floating-point number."""


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar. Infinity and not-a-number stay text: no option of a bench file can be either."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return int(_bounded(text), base)
    return _finite(text) if _FLOAT.fullmatch(text) else text


def _finite(text: str) -> float:
    value = float(_bounded(text))
    if math.isinf(value):
        raise NumberTooLongError(f"{text} is out of all proportion")
    return value


def _bounded(text: str) -> str:
    if len(text) > MOST_DIGITS:
        raise NumberTooLongError(f"a number of {len(text)} characters is too long")
    return text
