"""Makes blocks: cells, rows, tables whose rows fill a grid, and short forms for paragraphs and headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from nicbench.report.document.blocks import (
    Block,
    Cell,
    Fact,
    Facts,
    FoldedBlocks,
    Heading,
    Listing,
    Paragraph,
    Role,
    Row,
    RowLook,
    Table,
    TableLook,
    Text,
    Tone,
    plain,
)
from nicbench.report.document.inlines import BREAK, Part, commands, inlines, set_tone

_OF_WORDS = frozenset({"facts", "system", "testbed"})
"""The kinds of tables whose cells all hold words."""
_FEW_REMARKS = 4


def heading(level: int, *parts: Part, id: str | None = None) -> Heading:
    """Returns a heading; ``level`` is 1 for a section of the page."""
    return Heading(level, inlines(*parts), id)


def paragraph(*parts: Part, role: Role = "") -> Paragraph:
    """Returns a paragraph of text."""
    return Paragraph(inlines(*parts), role)


def caption(*parts: Part) -> Paragraph:
    """Returns the text in small type that stands above or below a table."""
    return Paragraph(inlines(*parts), "caption")


def listing(items: Iterable[Part], *, ordered: bool = False) -> Listing:
    """Returns a list with an item on each line."""
    return Listing(tuple(inlines(item) for item in items), ordered)


def remarks(texts: Sequence[str], tone: Tone, about: str, *, is_detail: bool | None = None) -> Iterator[Block]:
    """Yields remarks: a few stand below their table; many are folded there on a page, and printed on paper.

    ``is_detail``: paper has only their number; without it, where they have no tone.
    """
    star = set_tone("*", tone) if tone else None
    told = tuple(caption(star, " " if star else None, text, ".") for text in texts)
    if len(told) > _FEW_REMARKS:
        summary = inlines(star, " " if star else None, f"{len(told)} {about}")
        yield FoldedBlocks(summary, told, "remarks", is_detail=not tone if is_detail is None else is_detail)
    else:
        yield from told


def cell(*parts: Part, columns: int = 1, tone: Tone = "") -> Cell:
    """Returns a cell of numbers, aligned right."""
    return Cell(inlines(*parts), columns, tone=tone)


def words(*parts: Part, columns: int = 1, tone: Tone = "") -> Cell:
    """Returns a cell of words, which is aligned left and may be broken."""
    return Cell(inlines(*parts), columns, words=True, tone=tone)


def name(*parts: Part, words: bool = False) -> Cell:
    """Returns the heading of a row."""
    return Cell(inlines(*parts), is_head=True, words=words)


def head(text: str, unit: str | None = None, *, words: bool = False, columns: int = 1) -> Cell:
    """Returns the heading of a column; a newline breaks the line, and a unit stands in brackets on a
    line of its own.
    """
    parts: list[Part] = []
    for line in text.split("\n"):
        parts += [BREAK, line] if parts else [line]
    if unit:
        parts += [BREAK, f"[{unit}]"]
    return Cell(inlines(*parts), columns, is_head=True, words=words)


def heads(*texts: str) -> tuple[Cell, ...]:
    """Returns the headings of columns of numbers."""
    return tuple(map(head, texts))


def word_heads(*texts: str) -> tuple[Cell, ...]:
    """Returns the headings of columns of words."""
    return tuple(head(text, words=True) for text in texts)


NOTHING = Cell(())
"""The empty cell in the corner of a table."""


def row(*cells: Cell, look: RowLook = "") -> Row:
    """Returns a row of these cells."""
    return Row(cells, look)


def table(
    head: Iterable[Iterable[Cell]], body: Iterable[Row | Iterable[Cell]], look: TableLook = "", caption: Part = None
) -> Table:
    """Returns a table of heading rows and body rows; whatever cells span, every row fills the table."""
    above = tuple(_as_row(cells) for cells in head)
    rows = tuple(_as_row(cells) for cells in body)
    if look in _OF_WORDS:
        above, rows = _of_words(above), _of_words(rows)
    columns = _width(above) or _width(rows) or 1
    return Table(columns, _fill_rows(above, columns), _fill_rows(rows, columns), inlines(caption), look)


def _of_words(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(
        replace(each, cells=tuple(one if one.words else replace(one, words=True) for one in each.cells))
        for each in rows
    )


def facts_table(facts: Facts) -> Table:
    """Returns facts as a table for paper, in which facts within others are indented one step further."""
    rows = tuple(row for fact in facts.facts for row in _branches(fact, 0))
    columns = _width(rows) or 1
    return Table(columns, (), _fill_rows(rows, columns), title=facts.title)


def _as_row(cells: Row | Iterable[Cell]) -> Row:
    return cells if isinstance(cells, Row) else Row(tuple(cells))


def _branches(fact: Fact, depth: int) -> Iterator[Row]:
    """Yields the rows of a fact: label and value, or for a group its label alone and its rows indented one step
    further.
    """
    label = Cell(fact.label, is_head=True, words=True, indent=depth)
    if fact.children:
        yield Row((replace(label, columns=2),), "about")
        for child in fact.children:
            yield from _branches(child, depth + 1)
    elif fact.beside:
        yield Row((replace(label, columns=2),), "about")
        yield from _beside(fact.beside, depth + 1)
    else:
        yield Row((label, Cell(commands(fact.code) if fact.code else fact.inlines, words=True)))


def _beside(beside: Table, depth: int) -> Iterator[Row]:
    """Yields the rows of a table within a value: the name of each row, and its cells with the headings of their
    columns.
    """
    titles = [plain(cell.inlines) for row in beside.head[-1:] for cell in row.cells]
    for each in beside.body:
        told = [
            f"{title}: {plain(cell.inlines)}" if title else plain(cell.inlines)
            for title, cell in zip(titles[1:], each.cells[1:], strict=False)
        ]
        label = replace(each.cells[0], indent=depth, is_head=True, words=True, columns=1)
        yield Row((label, Cell((Text("\n".join(told)),), words=True)))


def _width(rows: tuple[Row, ...]) -> int:
    return max((sum(cell.columns for cell in row.cells) for row in rows), default=0)


def _fill_rows(rows: tuple[Row, ...], width: int) -> tuple[Row, ...]:
    """Returns the rows so that no cell reaches beyond the table and none is missing."""
    if all(len(row.cells) == width and all(cell.columns == cell.rows == 1 for cell in row.cells) for row in rows):
        return rows
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
            if cell.columns > free:
                cell = replace(cell, columns=free)
            cells.append(cell)
            for column in range(at, at + cell.columns):
                reaching[column] = cell.rows
            at += cell.columns
        while at < width:
            if not reaching[at]:
                cells.append(NOTHING)
                reaching[at] = 1
            at += 1
        reaching = [max(0, left - 1) for left in reaching]
        filled.append(replace(row, cells=tuple(cells)))
    return tuple(filled)
