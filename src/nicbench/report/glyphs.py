"""How wide a text is, and how it is broken or shortened to fit. Widths are in units of the font size.

No font is read, so that a report looks the same everywhere. The letters of a diagram are those of the reader's machine,
so ``width`` is for DejaVu Sans, the widest font to expect. The letters of a PDF are our own, so ``extent`` is for
Source Sans Pro. Both are upper estimates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_WIDTHS = {
    **dict.fromkeys("ijl'|I", 0.36),
    **dict.fromkeys(" .,:;!ftr()[]-/\\·", 0.44),
    **dict.fromkeys("mMW@%", 1.03),
    **dict.fromkeys("wOQGDHNU&", 0.88),
    **dict.fromkeys("+<>=~", 0.88),
}
_CAPITAL, _OTHER, _FOREIGN = 0.76, 0.66, 1.06
_BOLD = 1.12
_WIDE = frozenset("mwMWOQGDHNUCAR%@—…≥≤±→\u00d7")
_NARROW = frozenset("iljtfrI.,:;'|!()[]/ ·“”\u2019-")


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Returns the width of a text; no font in use makes it wider."""
    return sum(map(_unit, text)) * size * (_BOLD if bold else 1.0)


@lru_cache(maxsize=1024)
def _unit(character: str) -> float:
    if not character.isascii():
        return _WIDTHS.get(character, _FOREIGN)
    return _WIDTHS.get(character, _CAPITAL if character.isupper() else _OTHER)


def extent(text: str) -> float:
    """Returns the width of a line in units of the font size, as an upper estimate."""
    width = 0.0
    for character in text:
        if character in _WIDE:
            width += 0.8
        elif character in _NARROW:
            width += 0.32
        elif "A" <= character <= "Z" or character == "_":
            width += 0.62
        elif ord(character) < 0x250 or "\u2000" <= character <= "\u206f":
            width += 0.525
        else:
            width += 1.0
    return width


_ELLIPSIS = "…"
_BREAKABLE = " -_./:,"


def wrap(text: str, room: float, size: float, *, most: int, bold: bool = False) -> tuple[str, ...]:
    """Returns at most ``most`` lines, none wider than ``room``; a text that does not fit ends with an ellipsis."""
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most - 1 and width(rest, size, bold=bold) > room:
        at = _break(rest, room, size, bold=bold)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return (*lines, shorten(rest, room, size, bold=bold)) if rest else tuple(lines)


def shorten(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """Returns the text shortened in the middle, because the ends of names distinguish them."""
    if width(text, size, bold=bold) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        head = (kept + 1) // 2
        short = (
            f"{text[:head]}{_ELLIPSIS}{text[len(text) - (kept - head) :]}"
            if kept > head
            else f"{text[:head]}{_ELLIPSIS}"
        )
        if width(short, size, bold=bold) <= room:
            return short
    return _ELLIPSIS


def _break(text: str, room: float, size: float, *, bold: bool) -> int:
    """Returns after how many characters a line ends, at least 1: at the last place where it may be broken, or else
    where it is full.
    """
    fits = max(1, next((at for at in range(len(text), 0, -1) if width(text[:at], size, bold=bold) <= room), 1))
    places = [at for at in _places(text) if at <= fits]
    return places[-1] if places else fits


def _places(text: str) -> Iterator[int]:
    return (at + 1 for at, character in enumerate(text[:-1]) if character in _BREAKABLE)
