"""Where in a JSON file something is wrong: a reader of it names keys, a user looks for a line."""

from __future__ import annotations

import json
import re
from typing import Final

from nicbench.problems import Position

_KEYS: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+")
"""As errors of a reader name a place: total.opackets."""


def place_of(error: Exception, text: str) -> Position:
    """Of what is no JSON, where the parser stopped; else where the innermost part begins that the error names."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        return Position(cause.lineno, cause.colno)
    named = _KEYS.search(str(error))
    at = 0
    for key in named[0].split(".") if named else ():
        found = text.find(json.dumps(key), at)
        if found < 0:
            break
        at = found
    return Position(text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1)
