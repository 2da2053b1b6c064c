"""Text from others made harmless to look at: what steers a terminal or turns words around is written as its number."""

from __future__ import annotations

import re
from typing import Final

# C0 without tab and newline, DEL and C1 (a terminal obeys them), what orders text by direction (Unicode UAX #9),
# line separators, the byte-order mark and non-characters, and surrogates, which no UTF-8 can hold.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LONGEST_NAME: Final = 120


def visible(text: str) -> str:
    r"""``text`` with each character that steers written as ``\x1b`` or ``\u202e``; tabs and newlines stay."""
    return _STEERING.sub(_number, text)


def visible_in_json(document: str) -> str:
    r"""The same for a JSON document, as ``\u001b``: what reads it finds the text as it was."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def visible_name(name: str) -> str:
    """A file's name in a sentence: on one line, of bounded length."""
    plain = visible(name).replace("\n", "\\n").replace("\t", "\\t")
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
