"""Makes runs of text and blocks: steering characters in the text of others are made visible, white space is collapsed,
and the rows of a table fill a grid.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from nicbench.core.redaction import make_visible
from nicbench.core.result import Result
from nicbench.report.document.blocks import (
    Block,
    Cell,
    Drawing,
    Fact,
    Facts,
    FoldedBlocks,
    Heading,
    Inline,
    Inlines,
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

Part: TypeAlias = str | Inline | Inlines | None
"""A part of a line; a string is plain text."""
Optional: TypeAlias = Cell | Literal[False] | None
"""A cell, or nothing where a table lacks its column."""
BREAK: Final = Text("\n")
PLACE_TO_BREAK: Final = "\u200b"
_SPACE = re.compile(r"[ \t\n\r\f]+")
_UNTIDY = re.compile(r"[\t\n\r\f]|  |^ | $")
_AFTER = re.compile(r"(?<=[/._])(?=\w)")
_SEVERAL_RUNS = re.compile(r"(?P<median>.*\S) \((?P<runs>[^()]* to [^()]*|\d+ of \d+ runs)\)")
_TONES: Final[dict[str, Tone]] = {
    "valid": "good",
    "disturbed": "warn",
    "incomplete": "bad",
    "imported": "quiet",
}


def inlines(*parts: Part) -> Inlines:
    """Returns the parts one after another, with white space as on a page: one space between words, none at the ends."""
    if len(parts) == 1 and isinstance(only := parts[0], str):
        text = make_visible(only)
        if not _UNTIDY.search(text):
            return (Text(text),) if text else ()
    return _tidy(_runs(parts))


def join_inlines(separator: Part, items: Iterable[Part]) -> Inlines:
    """Returns the items with the separator between them."""
    parts: list[Part] = []
    for item in items:
        parts += [separator, item] if parts else [item]
    return inlines(*parts)


def lines(items: Iterable[Part]) -> Inlines:
    """Returns the items, each on a line of its own."""
    return join_inlines(BREAK, items)


def strong(text: str, tone: Tone = "") -> Text:
    """Returns bold text."""
    return Text(_collapse(text), strong=True, tone=tone)


def set_tone(text: str, tone: Tone, title: str = "") -> Text:
    """Returns text with the emphasis of a tone."""
    return Text(_collapse(text), tone=tone, title=make_visible(title))


def small(text: str) -> Text:
    """Returns small text, which stands beneath a number or next to a name."""
    return Text(_collapse(text), small=True, tone="quiet")


def badge(text: str, tone: Tone = "quiet") -> Text:
    """Returns a word in a frame."""
    return Text(_collapse(text), badge=True, tone=tone)


def code(text: str) -> Text:
    """Returns a command line or a name in the form in which one types it."""
    return Text(_collapse(text), code=True)


def superscript(text: str) -> Text:
    """Returns a superscript, such as an exponent."""
    return Text(text, raised=True)


def link(text: str, target: str, title: str = "") -> Text:
    """Returns a link; ``target`` is ``#`` and the id of a heading, or an address."""
    return Text(_collapse(text), link=target, title=title)


def file_link(name: str) -> Text:
    """Returns the name of a file of the run folder as a link to it; a name that leads out of the folder becomes plain
    text.
    """
    parts = name.split("/")
    leads_there = all(parts) and ".." not in parts and "\\" not in name
    return Text(_collapse(name), link=f"./{quote(name)}" if leads_there else None)


def breakable(text: str) -> Text:
    """Returns a long name that may be broken after its slashes, dots and underscores."""
    return Text(_AFTER.sub(PLACE_TO_BREAK, _collapse(text)))


def breakable_code(text: str) -> Text:
    """Returns a long name as code, which may be broken after its slashes, dots and underscores."""
    return replace(breakable(text), code=True)


def median_and_runs(text: str, *, is_main: bool = False) -> Inlines:
    """Returns the value of several runs as the median with the range of the runs beneath it; any other
    text unchanged.
    """
    found = _SEVERAL_RUNS.fullmatch(text)
    if found is None:
        return inlines(strong(text) if is_main else text)
    median = found["median"]
    return inlines(strong(median) if is_main else median, BREAK, small(found["runs"]))


def mark(result: Result) -> Inlines:
    """Returns what follows a value that is not simply valid: an asterisk, or a dagger for an erratum of its source."""
    if result.imported:
        return (link("†", "#errata", "erratum of the source"),) if result.imported.errata else ()
    verdict = result.verdict.value
    return () if verdict == "valid" else (set_tone("*", tone_of(verdict), verdict),)


def tone_of(verdict: str) -> Tone:
    """Returns the emphasis of a verdict."""
    return _TONES.get(verdict, "")


def _collapse(text: str) -> str:
    return _SPACE.sub(" ", make_visible(text))


def _runs(parts: Iterable[Part]) -> Iterable[Inline]:
    for part in parts:
        if isinstance(part, str):
            yield Text(_collapse(part))
        elif isinstance(part, Text | Drawing):
            yield part
        elif part is not None:
            yield from part


def _tidy(runs: Iterable[Inline]) -> Inlines:
    """Joins runs of equal style, collapses spaces across runs, and removes spaces and empty lines at the ends."""
    tidy: list[Inline] = []
    for run in runs:
        last = tidy[-1] if tidy else None
        if isinstance(run, Drawing):
            tidy.append(run)
            continue
        text = run.text
        ends = last.text[-1:] if isinstance(last, Text) else ("" if last else "\n")
        if ends in (" ", "\n"):
            text = text.lstrip(" ")
        if not text or (text == "\n" and ends == "\n"):
            continue
        if text[0] == "\n" and isinstance(last, Text):
            tidy[-1] = last = replace(last, text=last.text.rstrip(" "))
        if isinstance(last, Text) and _look(last) == _look(run):
            tidy[-1] = replace(last, text=last.text + text)
        else:
            tidy.append(run if text == run.text else replace(run, text=text))
    while tidy and isinstance(last := tidy[-1], Text):
        text = last.text.rstrip(" \n")
        if text:
            tidy[-1] = last if text == last.text else replace(last, text=text)
            break
        tidy.pop()
    return tuple(run for run in tidy if not isinstance(run, Text) or run.text)


def _look(run: Text) -> tuple[object, ...]:
    return run.strong, run.code, run.raised, run.small, run.badge, run.tone, run.link, run.title


def command(line: str) -> Text:
    """Returns a command line, which a page breaks only between its arguments."""
    return code(line)


def commands(texts: Sequence[str]) -> Inlines:
    """Returns several commands, each on a line of its own."""
    return lines(map(code, texts))


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


def heads(*texts: str | Literal[False]) -> tuple[Cell, ...]:
    """Returns the headings of columns of numbers; False stands for a column that the table lacks."""
    return tuple(head(text) for text in texts if text is not False)


def word_heads(*texts: str | Literal[False]) -> tuple[Cell, ...]:
    """Returns the headings of columns of words; False stands for a column that the table lacks."""
    return tuple(head(text, words=True) for text in texts if text is not False)


NOTHING = Cell(())
"""The empty cell in the corner of a table."""


def row(*cells: Cell, look: RowLook = "") -> Row:
    """Returns a row of these cells."""
    return Row(cells, look)


def about_row(title: Part, columns: int) -> Row:
    """Returns the row that stands above those of a group, over all columns, with what the group is about."""
    return Row((Cell(inlines(title), columns, is_head=True, words=True),), "about", begins_group=True)


def table(
    head: Iterable[Iterable[Optional]],
    body: Iterable[Row | Iterable[Optional]],
    look: TableLook = "",
    caption: Part = None,
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


def _as_row(cells: Row | Iterable[Optional]) -> Row:
    return cells if isinstance(cells, Row) else Row(tuple(one for one in cells if one))


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
        cells = []
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
