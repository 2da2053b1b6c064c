"""How a text is broken or shortened to fit into a diagram."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.report.glyphs import width

_ELLIPSIS = "…"
_BREAKABLE = " -_./:,"


def wrapped(text: str, room: float, size: float, *, most: int, bold: bool = False) -> tuple[str, ...]:
    """At most ``most`` lines, none wider than ``room``; what does not fit ends with an ellipsis."""
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most - 1 and width(rest, size, bold=bold) > room:
        at = _break(rest, room, size, bold=bold)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return (*lines, shortened(rest, room, size, bold=bold)) if rest else tuple(lines)


def shortened(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """In its middle, for the ends of names are what tells them apart."""
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
    """After which character a line ends: the last place where one may, else the last that fits; at least one."""
    fits = max(1, next((at for at in range(len(text), 0, -1) if width(text[:at], size, bold=bold) <= room), 1))
    places = [at for at in _places(text) if at <= fits]
    return places[-1] if places else fits


def _places(text: str) -> Iterator[int]:
    return (at + 1 for at, character in enumerate(text[:-1]) if character in _BREAKABLE)
