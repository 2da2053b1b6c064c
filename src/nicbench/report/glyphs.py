"""How wide a text is: no font is asked, so that a report looks alike everywhere. Widths are in units of a font's size.

A diagram's letters are those of the reader's machine, so ``width`` is that of DejaVu Sans, the widest that they may be;
a PDF's are our own, so ``extent`` is that of Source Sans Pro. Both are estimates from above.
"""

from __future__ import annotations

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
    """No font in use is wider."""
    units = sum(_WIDTHS.get(each, _unit(each)) for each in text)
    return units * size * (_BOLD if bold else 1.0)


def _unit(character: str) -> float:
    if not character.isascii():
        return _FOREIGN
    return _CAPITAL if character.isupper() else _OTHER


def extent(text: str) -> float:
    """How wide a line is, in units of the type's size; an estimate from above."""
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
