"""Where in a JSON file a value stands, for errors that name the line. Asked only once something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

_DECODER: Final = json.JSONDecoder()
_GAP: Final = re.compile(r"[\s,:]*")
_LINE: Final = re.compile(r"\bat line (\d+)")


def line_of(text: str, steps: Sequence[str | int]) -> int | None:
    """The line, from 1, of the value to which keys and indices lead, or of the last of them that is there."""
    try:
        return text.count("\n", 0, _position(text, steps)) + 1
    except (ValueError, IndexError, RecursionError):
        return None


def line_in(message: str) -> int | None:
    """The line that a parser's message names."""
    found = _LINE.search(message)
    return int(found[1]) if found else None


def _position(text: str, steps: Sequence[str | int]) -> int:
    at = _past_gap(text, 0)
    for step in steps:
        found = _member(text, at, step)
        if found is None:
            break
        at = found
    return at


def _member(text: str, at: int, step: str | int) -> int | None:
    """Where the value of this key, or at this index, begins; of a key that is there twice, the last."""
    opening, found, index = text[at], None, 0
    if opening not in "{[":
        return None
    at = _past_gap(text, at + 1)
    while text[at] not in "}]":
        key: object = index
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _past_gap(text, at)
        if key == step:
            found = at
        _, at = _DECODER.raw_decode(text, at)
        at, index = _past_gap(text, at), index + 1
    return found


def _past_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at
