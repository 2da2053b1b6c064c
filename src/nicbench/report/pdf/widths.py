"""How wide the columns of a table are, and what gives way where they do not fit: type, paper turned, or parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nicbench.report.document.blocks import Cell, Drawing, Inlines, Row, Table, Text
from nicbench.report.pdf.breaking import tokens

PORTRAIT = 510.0
"""Points between the margins of A4; the template has the same margins."""
LANDSCAPE = 757.0
_PADDING = 0.9
"""Left and right of a cell together, in units of the type's size, as all estimates are."""
_SPARE = 1.04
"""Glyphs are estimated, not measured: so much wider is a column."""
_SIZES = ((8.5, False), (8.0, False), (7.5, False), (7.0, False), (6.5, False), (8.0, True), (7.0, True), (6.5, True))
_OF_PARTS = (7.5, False)
_WIDE = frozenset("mwMWOQGDHNUCAR%@—…≥≤±→\u00d7")
_NARROW = frozenset("iljtfrI.,:;'|!()[]/ ·“”\u2019-")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table, or a part of one, as it goes onto paper: widths of columns and size of type in points."""

    table: Table
    widths: tuple[float, ...]
    size: float
    turned: bool


def fitted(table: Table) -> tuple[Fitted, ...]:
    """One, or where even small type on turned paper is too wide, parts that all begin with the first column."""
    least, wished = _needs(table)
    for size, turned in _SIZES:
        width = LANDSCAPE if turned else PORTRAIT
        if _total(least, size) <= width:
            return (Fitted(table, _shared(least, wished, size, width), size, turned),)
    size, turned = _OF_PARTS
    parts = _divided(least, size, LANDSCAPE if turned else PORTRAIT)
    return tuple(
        found
        for number, columns in enumerate(parts, start=1)
        for found in fitted(_part(table, columns, number, len(parts)))
    )


def _needs(table: Table) -> tuple[list[float], list[float]]:
    """Of each column, in units of the type's size: the least it takes, and what it would need to break no line."""
    least, wished = [1.0] * table.columns, [1.0] * table.columns
    spanning: list[tuple[int, int, float]] = []
    for rows, in_head in ((table.head, True), (table.body, False)):
        for row, places in zip(rows, _places(rows, table.columns), strict=True):
            for cell, at in zip(row.cells, places, strict=True):
                narrow, wide = _extent(cell, in_head)
                if cell.columns == 1:
                    least[at] = max(least[at], narrow)
                    wished[at] = max(wished[at], wide)
                elif row.look != "about":
                    spanning.append((at, cell.columns, narrow))
    for at, columns, narrow in spanning:
        missing = (narrow - sum(least[at : at + columns])) / columns
        if missing > 0:
            for column in range(at, at + columns):
                least[column] += missing
    return least, [max(one, other) for one, other in zip(least, wished, strict=True)]


def _extent(cell: Cell, in_head: bool) -> tuple[float, float]:
    lines = _lines(cell.inlines)
    whole = max((extent(line) for line in lines), default=0.0) + cell.indent
    if in_head or cell.words or whole > 24:
        longest = max((extent(token) for line in lines for token in tokens(line)), default=0.0) + cell.indent
        return longest, whole
    return whole, whole


def _lines(inlines: Inlines) -> list[str]:
    text = "".join(run.text if isinstance(run, Text) else "\n" for run in inlines)
    drawings = [run for run in inlines if isinstance(run, Drawing)]
    return [*text.split("\n"), *("0" * 14 for _ in drawings)]


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


def _total(widths: Sequence[float], size: float) -> float:
    return sum((_SPARE * width + _PADDING) * size for width in widths)


def _shared(least: Sequence[float], wished: Sequence[float], size: float, width: float) -> tuple[float, ...]:
    """Each column has its least; of what is left those that lack little have it first, the others share the rest."""
    widths = [(_SPARE * each + _PADDING) * size for each in least]
    lacking = [_SPARE * size * (high - low) for low, high in zip(least, wished, strict=True)]
    room = width - sum(widths)
    by_need = sorted(range(len(widths)), key=lambda column: (lacking[column], column))
    for number, column in enumerate(by_need):
        given = min(lacking[column], room / (len(by_need) - number))
        widths[column] += given
        room -= given
    return tuple(round(each, 2) for each in widths)


def _divided(least: Sequence[float], size: float, width: float) -> list[list[int]]:
    """Columns of each part, without the first; every part has at least one."""
    first = _total(least[:1], size)
    parts: list[list[int]] = [[]]
    taken = first
    for column in range(1, len(least)):
        needs = _total(least[column : column + 1], size)
        if parts[-1] and taken + needs > width:
            parts.append([])
            taken = first
        parts[-1].append(column)
        taken += needs
    return parts


def _part(table: Table, columns: list[int], number: int, parts: int) -> Table:
    kept = {0, *columns}
    title = f"{table.title}, part {number} of {parts}" if parts > 1 else table.title
    return replace(
        table,
        title=title,
        columns=len(kept),
        head=_cut(table.head, table.columns, kept),
        body=_cut(table.body, table.columns, kept),
    )


def _cut(rows: tuple[Row, ...], columns: int, kept: set[int]) -> tuple[Row, ...]:
    cut = []
    for row, places in zip(rows, _places(rows, columns), strict=True):
        cells = []
        for cell, at in zip(row.cells, places, strict=True):
            left = len(kept & set(range(at, at + cell.columns)))
            if left:
                cells.append(replace(cell, columns=left))
        cut.append(replace(row, cells=tuple(cells)))
    return tuple(cut)


def _places(rows: tuple[Row, ...], columns: int) -> list[list[int]]:
    """The first column of every cell; cells from above are gone around."""
    found = []
    reaching = [0] * columns
    for row in rows:
        places, at = [], 0
        for cell in row.cells:
            while reaching[at]:
                at += 1
            places.append(at)
            for column in range(at, at + cell.columns):
                reaching[column] = cell.rows
            at += cell.columns
        reaching = [max(0, left - 1) for left in reaching]
        found.append(places)
    return found
