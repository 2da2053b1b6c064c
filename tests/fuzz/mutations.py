"""Changes to inputs that know what the input is: of words and lines, of numbers, of keys and values."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Any, Final

from tests.bench_file import test_promises

HEADS: Final = {"otg_messages": 1, "records": 1, "run_folders": 2, "system_texts": 1, "tables": 1, "tool_outputs": 2}
"""Bytes of an input before its text."""
NASTY: Final = (
    *("", "\0", "-", "-1", "0", "1e999", "NaN", "inf", "9" * 400, "9" * 5000, "0x", "²", "٣", "None", "null", "true"),
    *(
        '"',
        "'",
        "\\",
        ":",
        "=",
        "(",
        "[",
        "]",
        "{",
        "}",
        "%s",
        "{0}",
        "\x1b[31m",
        "\u2028",
        "\ufffd",
        "<script>",
        "n/a",
    ),
    *("1e-9", "1,5", "01", "+1", "1_0", "18446744073709551616", "[" * 300, '{"a":' * 300, "&a", "*a", "<<", "!!str"),
)

VALUES: Final = (
    None,
    True,
    0,
    -1,
    1,
    64,
    2**16,
    2**32,
    2**64,
    10**400,
    0.5,
    1e308,
    math.inf,
    math.nan,
    "",
    "0",
    "::1",
    [],
    [0],
    {},
    *NASTY,
)
"""What a part of a JSON document is replaced by."""


def mutate(target: str, data: bytes, draw: random.Random) -> bytes | None:
    """The input changed in one way; None where this one does not fit."""
    head = HEADS.get(target, 0)
    text = data[head:].decode(errors="replace")
    if target == "bench_files" and draw.random() < 0.4:
        return _bench_file(text, draw)
    if text.startswith("{") and draw.random() < 0.7:
        changed = _tree(text, draw)
    else:
        changed = draw.choice((_words, _lines, _number))(text, draw)
    first = bytes(draw.randrange(256) if draw.random() < 0.05 else byte for byte in data[:head])
    return first + changed.encode(errors="replace")


def _bench_file(text: str, draw: random.Random) -> bytes | None:
    try:
        return test_promises.mutate(text, draw).encode()
    except Exception:  # it is no YAML any more
        return None


def _tree(text: str, draw: random.Random) -> str:
    """A JSON object with one part of it left out, replaced or made to be another one's; or one of several lines so."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        lines = text.split("\n")
        if len(lines) == 1:
            return text + draw.choice(NASTY)
        at = draw.randrange(len(lines))
        lines[at] = _tree(lines[at], draw)
        return "\n".join(lines)
    places = list(_places(root))
    if not places:
        return text
    (holder, key), (other, taken) = draw.choice(places), draw.choice(places)
    match draw.randrange(4):
        case 0:
            del holder[key]
        case 1:
            holder[key] = json.loads(json.dumps(other[taken]))
        case 2:
            holder[key] = draw.choice(VALUES)
        case _ if isinstance(holder, dict):
            holder[str(taken)] = holder.pop(key)
        case _:
            holder.extend(json.loads(json.dumps(holder)))
    return json.dumps(root)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each part of a tree, as what holds it and its key or index there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield value, key
        yield from _places(part)


def _words(text: str, draw: random.Random) -> str:
    words = text.split(" ")
    at = draw.randrange(len(words))
    words[at] = draw.choice((*NASTY, draw.choice(words)))
    return " ".join(words)


def _lines(text: str, draw: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            del lines[at:]
    return "".join(lines)


def _number(text: str, draw: random.Random) -> str:
    places = [place for place, mark in enumerate(text) if mark.isdigit()]
    if not places:
        return text + draw.choice(NASTY)
    at = draw.choice(places)
    return text[:at] + draw.choice(NASTY) + text[at + draw.randrange(2) :]
