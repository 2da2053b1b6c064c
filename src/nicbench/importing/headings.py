"""A heading taken apart: its name, and its unit where it names one ("Frame rate [Mpps]", "frame_rate_mpps")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nicbench.importing.units import Unit, parse_unit

_BRACKETS: Final = re.compile(
    r"(?P<name>.*?)\s*[\[(](?P<unit>[^\[\]()]+)[\])]\s*(?P<layer>\(?\bL[12]\)?)?", re.IGNORECASE
)
_LONGEST_UNIT_WORDS: Final = 4
# At the end of a name these are words, not units: "offered frames", "frame bytes" is dealt with by its name.
_WORDS: Final = frozenset({"frames", "frame", "packets", "packet", "b"})


@dataclass(frozen=True, slots=True)
class Heading:
    """``name`` is ready to be compared: small letters and single blanks."""

    name: str
    unit: Unit | None


def parse_heading(text: str) -> Heading:
    """The name and the unit; a heading that is nothing but a unit ("% of line rate") is its own name."""
    bracketed = _BRACKETS.fullmatch(text)
    if bracketed is not None:
        unit = parse_unit(f"{bracketed['unit']} {bracketed['layer'] or ''}".strip())
        if unit is not None:
            return Heading(plain(bracketed["name"]) or plain(text), unit)
    words = re.split(r"[\s_,]+", text.strip())
    for count in range(min(_LONGEST_UNIT_WORDS, len(words)), 0, -1):
        written = " ".join(words[-count:])
        unit = None if written.lower() in _WORDS else parse_unit(written)
        if unit is not None:
            name = " ".join(words[:-count])
            return Heading(plain(name) if name else plain(text), unit)
    return Heading(plain(text), None)


def plain(name: str) -> str:
    """Names that differ only in case, in marks between words, or in how "percent" is written, are the same."""
    small = name.lower().replace("\u00b5", "u").replace("\u03bc", "u").replace("%", " percent ")
    return " ".join(re.sub(r"(?<!\d)\.|\.(?!\d)|[^a-z0-9.]+", " ", small).split())
