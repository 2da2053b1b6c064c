"""From a ``table`` to rows that fill a grid; a table within a cell becomes rows that are indented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from nicbench.report.document.blocks import Cell, Inlines, Row, Table, Text, plain
from nicbench.report.document.inlines import Inliner, tone_of
from nicbench.report.document.tree import Element

_LEFT = frozenset({"facts", "testbed"})
"""Tables of words, whatever stands in a cell."""


def read_table(element: Element, title: str, inliner: Inliner) -> Table:
    """The table with ``title``; every row of it fills all columns."""
    if "tree" in element.classes or any(cell.every("table") for cell in element.every("td")):
        rows = tuple(_branches(element, inliner, 0))
        width = max((sum(cell.columns for cell in row.cells) for row in rows), default=1)
        return Table(title, width, (), _filled(rows, width))
    left = bool(element.classes & _LEFT)
    head = tuple(_row(row, inliner, left, True) for part in element.elements("thead") for row in part.elements("tr"))
    parts = [*element.elements("tbody"), *element.elements("tfoot")]
    body = tuple(_row(row, inliner, left, False) for part in parts for row in part.elements("tr"))
    width = _width(head) or _width(body) or 1
    captions = element.elements("caption")
    caption = inliner.inlines(captions[0].children) if captions else ()
    return Table(title, width, _filled(head, width), _filled(body, width), caption)


def _row(row: Element, inliner: Inliner, left: bool, in_head: bool) -> Row:
    cells = tuple(_cell(cell, inliner, left, in_head) for cell in row.elements("th", "td"))
    return Row(cells, _look(row))


def _look(row: Element) -> Literal["", "made", "about", "spoilt"]:
    for name in ("made", "about", "spoilt"):
        if name in row.classes:
            return name
    return ""


def _cell(cell: Element, inliner: Inliner, left: bool, in_head: bool) -> Cell:
    classes = cell.classes
    return Cell(
        _lines_of_code(cell, inliner),
        columns=_span(cell, "colspan"),
        rows=_span(cell, "rowspan"),
        is_head=cell.tag == "th" or in_head,
        words=left or "words" in classes or "about" in classes,
        tone=tone_of(classes),
    )


def _lines_of_code(cell: Element, inliner: Inliner) -> Inlines:
    """Several command lines in a cell stand each on a line of its own, as on the page."""
    codes = cell.elements("code")
    if len(codes) < 2 or len(codes) != len(cell.elements("code", "span", "b", "a")):
        return inliner.inlines(cell.children)
    parts = [inliner.inlines([code]) for code in codes]
    return tuple(run for number, part in enumerate(parts) for run in ((Text("\n"), *part) if number else part))


def _span(cell: Element, name: str) -> int:
    text = cell.attributes.get(name, "1")
    return max(1, int(text)) if text.isdigit() else 1


def _branches(table: Element, inliner: Inliner, depth: int) -> Iterator[Row]:
    """Label and value; a group is its label alone, and its rows one step further in."""
    for part in table.elements("tbody"):
        for row in part.elements("tr"):
            label, *values = row.elements("th", "td")
            name = Cell(inliner.inlines(label.children), is_head=True, words=True, indent=depth)
            inner = [found for value in values for found in value.every("table")[:1]]
            if not inner:
                yield Row((name, *(_cell(value, inliner, True, False) for value in values)))
            elif "tree" in inner[0].classes:
                yield Row((replace(name, columns=2),), "about")
                for value in values:
                    for child in _outermost(value):
                        yield from _branches(child, inliner, depth + 1)
            else:
                yield Row((replace(name, columns=2),), "about")
                yield from _beside(read_table(inner[0], "", inliner), depth + 1)


def _outermost(element: Element) -> Iterator[Element]:
    for child in element.children:
        if isinstance(child, Element):
            if child.tag == "table":
                yield child
            else:
                yield from _outermost(child)


def _beside(table: Table, depth: int) -> Iterator[Row]:
    """A table within a value: each row's name, and its cells by the heads of their columns."""
    heads = [plain(cell.inlines) for row in table.head[-1:] for cell in row.cells]
    for row in table.body:
        told = [
            f"{head}: {plain(cell.inlines)}" if head else plain(cell.inlines)
            for head, cell in zip(heads[1:], row.cells[1:], strict=False)
        ]
        name = replace(row.cells[0], indent=depth, is_head=True, words=True, columns=1)
        yield Row((name, Cell((Text("\n".join(told)),), words=True)))


def _width(rows: tuple[Row, ...]) -> int:
    return max((sum(cell.columns for cell in row.cells) for row in rows), default=0)


def _filled(rows: tuple[Row, ...], width: int) -> tuple[Row, ...]:
    """No cell reaches beyond the table, and none is missing."""
    filled = []
    reaching: list[int] = [0] * width  # for how many more rows a cell from above holds each column
    for row in rows:
        cells: list[Cell] = []
        at = 0
        for cell in row.cells:
            while at < width and reaching[at]:
                at += 1
            free = next((end for end in range(at, width) if reaching[end]), width) - at
            if free <= 0:
                break
            cell = replace(cell, columns=min(cell.columns, free))
            cells.append(cell)
            for column in range(at, at + cell.columns):
                reaching[column] = cell.rows
            at += cell.columns
        while at < width:
            if not reaching[at]:
                cells.append(Cell(()))
                reaching[at] = 1
            at += 1
        reaching = [max(0, left - 1) for left in reaching]
        filled.append(replace(row, cells=tuple(cells)))
    return tuple(filled)
