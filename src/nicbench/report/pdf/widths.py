"""Fits tables onto paper: column widths, and smaller type, landscape paper or several parts where a table is too wide.

Long names and numbers get places to break, so that they do not run off the paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from nicbench.core.errors import NicbenchError
from nicbench.report.document.blocks import Cell, Drawing, Inlines, Row, Table, Text, plain
from nicbench.report.document.making import PLACE_TO_BREAK
from nicbench.report.glyphs import extent

LONGEST = 24
"""Maximum number of characters in a row without a place to break."""
MOST = 4000
"""Maximum number of characters of one text; a longer one would fill many sheets that nobody reads on paper."""
_LONG = re.compile(rf"[^\s{PLACE_TO_BREAK}]{{{LONGEST + 1},}}")
_AFTER = re.compile(r"(?<=[/._:,;=&?+@\-])(?=\w)")
PORTRAIT = 510.0
"""Width in points between the margins of A4; the template has the same margins."""
LANDSCAPE = 757.0
_PADDING = 0.9
"""Left and right padding of a cell together, in units of the type size, like all estimated widths."""
_SPARE = 1.04
"""Factor by which a column is wider than estimated, because glyph widths are only estimates."""
_UPRIGHT = ((8.5, False), (8.0, False), (7.5, False), (7.0, False), (6.5, False))
_TURNED = ((8.0, True), (7.0, True), (6.5, True))
_CRAMPED = (5.0, True)
"""Type size for a part too wide even for landscape: the columns that name its rows and a single other column."""
_OF_PARTS = 7.5
_MOST_GROUPS = 4
_READABLE = 7.0
_MOST_LINES = 5
_FEW = 5
"""In a table with fewer columns, long cells do not make the type smaller."""


class FittedTable(NamedTuple):
    """How a table, or a part of one, is laid out on paper: column widths and type size in points."""

    table: Table
    widths: tuple[float, ...]
    size: float
    turned: bool

    @property
    def most_lines(self) -> int:
        """The estimated number of lines of the highest row."""
        return max(self.lines, default=0)

    @property
    def lines(self) -> list[int]:
        """The estimated number of lines of each row of the body."""
        places = _places(self.table.body, self.table.columns)
        return [
            max((self._lines(cell, at) for cell, at in zip(row.cells, placed, strict=True)), default=1)
            for row, placed in zip(self.table.body, places, strict=True)
        ]

    def _lines(self, cell: Cell, at: int) -> int:
        width = sum(self.widths[at : at + cell.columns]) / self.size - _PADDING - cell.indent
        return sum(max(1, math.ceil(extent(line) / max(1.0, width) - 0.05)) for line in _lines(cell.inlines))


def fit_tables(table: Table) -> tuple[FittedTable, ...]:
    """Returns the table as a whole, or parts that all begin with the columns that tell the rows apart.

    The parts are the groups of columns below the upper headings, where these fit on upright paper. Otherwise, where the
    whole does not fit on landscape paper even in small type, each part has as many columns as fit.
    """
    least, wished = _needs(table)
    whole = _choose_size(table, least, wished, _UPRIGHT)
    if whole:
        return (whole,)
    names = _names(table)
    groups = _group_columns(table, names)
    if 1 < len(groups) <= _MOST_GROUPS:
        parts = [_fit_part(table, names, group, number, groups) for number, group in enumerate(groups, start=1)]
        if all(part and part.size >= _READABLE for part in parts):
            return tuple(part for part in parts if part)
    whole = _choose_size(table, least, wished, _TURNED)
    if whole:
        return (whole,)
    names = names if _total(least[:names], _OF_PARTS) <= PORTRAIT / 2 else 1
    groups = _divide_columns(least, names)
    parts = [_fit_part(table, names, group, number, groups) for number, group in enumerate(groups, start=1)]
    if not all(parts):  # two columns always fit, as every word has places to break: a defect of nicbench
        raise NicbenchError(
            f"the table {table.title!r} has a column that is wider than the paper", next_step="report it"
        )
    return tuple(part for part in parts if part)


def _choose_size(
    table: Table, least: Sequence[float], wished: Sequence[float], sizes: Sequence[tuple[float, bool]]
) -> FittedTable | None:
    """Returns the table in the largest type at which no row has too many lines.

    Where some row has too many lines at every size that fits, the last such size is used. None where no size fits, or
    where ``sizes`` ends with an upright size, so that landscape can be tried next.
    """
    found = None
    for size, turned in sizes:
        width = LANDSCAPE if turned else PORTRAIT
        if _total(least, size) <= width:
            fits = FittedTable(table, _share_width(least, wished, size, width), size, turned)
            if fits.most_lines <= _MOST_LINES or len(least) < _FEW:
                return fits
            found = fits
    return found if sizes[-1][1] else None


def _fit_part(table: Table, names: int, columns: list[int], number: int, groups: list[list[int]]) -> FittedTable | None:
    part = _part(table, {*range(names), *columns}, number, len(groups))
    least, wished = _needs(part)
    return _choose_size(part, least, wished, (*_UPRIGHT, *_TURNED, _CRAMPED))


def _names(table: Table) -> int:
    """Returns how many columns, at most four, counted from the left, are needed to tell the rows apart."""
    for names in range(1, min(5, table.columns)):
        told = [tuple(plain(cell.inlines) for cell in row.cells[:names]) for row in table.body if row.look != "about"]
        if len(set(told)) == len(told):
            return names
    return 1


def _group_columns(table: Table, names: int) -> list[list[int]]:
    """Returns the columns below each upper heading; none with one heading row, or where a heading spans row names."""
    if len(table.head) < 2:
        return []
    groups = []
    for cell, at in zip(table.head[0].cells, _places(table.head, table.columns)[0], strict=True):
        columns = [column for column in range(at, at + cell.columns) if column >= names]
        if columns and (at < names or cell.columns < 2):
            return []
        if columns:
            groups.append(columns)
    return groups


def _needs(table: Table) -> tuple[list[float], list[float]]:
    """Returns for each column, in units of the type size, its minimum width and the width at which no line breaks."""
    least, wished = [1.0] * table.columns, [1.0] * table.columns
    spanning = []
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


def _total(widths: Sequence[float], size: float) -> float:
    return sum((_SPARE * width + _PADDING) * size for width in widths)


def _share_width(least: Sequence[float], wished: Sequence[float], size: float, width: float) -> tuple[float, ...]:
    """Gives each column its minimum width, then shares the remaining width, satisfying the smallest needs first."""
    widths = [(_SPARE * each + _PADDING) * size for each in least]
    lacking = [_SPARE * size * (high - low) for low, high in zip(least, wished, strict=True)]
    room = width - sum(widths)
    by_need = sorted(range(len(widths)), key=lambda column: (lacking[column], column))
    for number, column in enumerate(by_need):
        given = min(lacking[column], room / (len(by_need) - number))
        widths[column] += given
        room -= given
    return tuple(round(each, 2) for each in widths)


def _divide_columns(least: Sequence[float], names: int) -> list[list[int]]:
    """Divides the columns that do not name rows into as few parts as possible, of about the same width."""
    parts = _fill_parts(least, names, PORTRAIT)
    for share in range(50, 100, 5):
        even = _fill_parts(least, names, PORTRAIT * share / 100)
        if len(even) == len(parts):
            return even
    return parts


def _fill_parts(least: Sequence[float], names: int, width: float) -> list[list[int]]:
    """Fills one part after another up to ``width``; every part has at least one column."""
    begun = _total(least[:names], _OF_PARTS)
    parts: list[list[int]] = [[]]
    taken = begun
    for column in range(names, len(least)):
        needs = _total(least[column : column + 1], _OF_PARTS)
        if parts[-1] and taken + needs > width:
            parts.append([])
            taken = begun
        parts[-1].append(column)
        taken += needs
    return parts


def _part(table: Table, kept: set[int], number: int, parts: int) -> Table:
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
    """Returns the first column of every cell; places that cells of earlier rows reach into are skipped."""
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


def breakable(text: str, longest: int = LONGEST) -> str:
    """Returns the text with places to break in every long word: after punctuation where possible, else anywhere."""
    if len(text) > MOST:
        text = f"{text[:MOST]} … ({len(text) - MOST:,} more characters are in report.html)"
    return _LONG.sub(lambda word: _broken(word[0], longest), text)


def _broken(word: str, longest: int) -> str:
    parts = _AFTER.sub(PLACE_TO_BREAK, word).split(PLACE_TO_BREAK)
    return PLACE_TO_BREAK.join(
        PLACE_TO_BREAK.join(part[at : at + longest] for at in range(0, len(part), longest)) for part in parts
    )


def tokens(text: str) -> list[str]:
    """Returns the pieces of text between places to break."""
    return [token for token in re.split(rf"[ \n{PLACE_TO_BREAK}]+", text) if token]
