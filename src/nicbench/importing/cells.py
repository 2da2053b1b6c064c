"""The cells of a CSV with their places: RFC 4180, and what spreadsheets make of it. Bounded in every direction.

The standard library's reader does not say in which column of a line a cell begins, which is what an error must name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nicbench.problems import Position, Problem, WrongFileError, quote

MOST_ROWS: Final = 10_000
MOST_COLUMNS: Final = 256
LONGEST_CELL: Final = 1_000
DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
_BLANK = " \u00a0"


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell without blanks around it, and where the cell begins."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table as text: headings, and rows that each have as many cells. ``ignored`` are headings left out."""

    heads: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    ignored: tuple[str, ...] = field(default=())

    def index_of(self, head: str) -> int | None:
        """Which column has this heading; None where none has."""
        return next((number for number, cell in enumerate(self.heads) if cell.text == head), None)

    def texts(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(cell.text for cell in self.heads)


def read_sheet(text: str, path: str, delimiter: str | None = None, heading_line: int = 1) -> Sheet:
    """The sheet in ``text``; blank lines do not count, and above ``heading_line`` nothing is read.

    Without a ``delimiter`` it is the one of ``DELIMITERS`` that the headings have most of. WrongFileError lists what
    is wrong.
    """
    skipped, rest = _from_line(text, heading_line)
    if rest[:4].lower() == "sep=":  # a line of Excel's
        delimiter = delimiter or rest[4:5]
        skipped, rest = _from_line(text, skipped + 2)
    mark = delimiter or _delimiter_of(rest)
    lines: list[list[Cell]] = []
    for cells in _lines(rest, mark, path, skipped):
        if any(cell.text for cell in cells):
            lines.append(cells)
        if len(lines) > MOST_ROWS + 1:
            position = cells[0].position
            raise WrongFileError(
                path, [Problem(position, f"has more than {MOST_ROWS} rows", "import a part of it at a time")]
            )
    if not lines:
        raise WrongFileError(
            path, [Problem(Position(1 + skipped, 1), "has no heading", "its first line must name its columns")]
        )
    return _checked(lines, path)


def _checked(lines: Sequence[list[Cell]], path: str) -> Sheet:
    """With rows as long as the headings: empty cells beyond their end are nobody's."""
    heads = _without_empty_end(lines[0])
    problems = []
    if len(heads) > MOST_COLUMNS:
        raise WrongFileError(
            path, [Problem(heads[0].position, f"has {len(heads)} columns, more than {MOST_COLUMNS}", None)]
        )
    seen: dict[str, Position] = {}
    for cell in heads:
        if not cell.text:
            problems.append(Problem(cell.position, "this column has no heading", "name it, or remove it"))
        elif cell.text in seen:
            first = seen[cell.text]
            problems.append(
                Problem(
                    cell.position, f"{quote(cell.text)} is a heading already, in column {first.column}", "rename one"
                )
            )
        seen.setdefault(cell.text, cell.position)
    rows = []
    for cells in lines[1:]:
        row = _without_empty_end(cells)
        if len(row) > len(heads):
            counted = f"this row has {len(row)} cells, there are {len(heads)} headings"
            hint = "quote what holds the delimiter, or name it: --delimiter semicolon"
            problems.append(Problem(row[len(heads)].position, counted, hint))
        last = cells[-1].position
        row += [Cell("", last)] * (len(heads) - len(row))
        rows.append(tuple(row[: len(heads)]))
    if not rows:
        problems.append(Problem(heads[0].position, "has headings and no rows", None))
    if problems:
        raise WrongFileError(path, problems)
    return Sheet(tuple(heads), tuple(rows))


def _without_empty_end(cells: Sequence[Cell]) -> list[Cell]:
    kept = list(cells)
    while kept and not kept[-1].text:
        kept.pop()
    return kept


def _from_line(text: str, line: int) -> tuple[int, str]:
    """How many lines were left out, and what follows them."""
    start = 0
    for skipped in range(line - 1):
        end = text.find("\n", start)
        if end < 0:
            return skipped, ""
        start = end + 1
    return line - 1, text[start:]


def _delimiter_of(text: str) -> str:
    """Of the first line that holds anything, without what is quoted in it."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    bare = "".join(part for number, part in enumerate(first.split('"')) if number % 2 == 0)
    return max(DELIMITERS.values(), key=bare.count)


def _lines(text: str, delimiter: str, path: str, skipped: int) -> Iterator[list[Cell]]:
    """The cells of each line; what is quoted may hold delimiters, doubled quotes and line ends."""
    line, start, index, cells = 1 + skipped, 0, 0, []
    while index < len(text):
        begins = Position(line, index - start + 1)
        after = index
        while after < len(text) and text[after] in _BLANK and text[after] != delimiter:
            after += 1
        if text[after : after + 1] == '"':
            content, index = _quoted(text, after, begins, path)
            breaks = content.count("\n")
            if breaks:
                line, start = line + breaks, text.rfind("\n", 0, index) + 1
            while index < len(text) and text[index] in _BLANK and text[index] != delimiter:
                index += 1
            if index < len(text) and text[index] not in (delimiter, "\r", "\n"):
                position = Position(line, index - start + 1)
                raise WrongFileError(
                    path, [Problem(position, "there is text after the closing quote", 'a quote within is doubled: ""')]
                )
            content = content.strip()
        else:
            end = index
            while end < len(text) and text[end] not in (delimiter, "\r", "\n"):
                end += 1
            content, index = text[index:end].strip(), end
        if len(content) > LONGEST_CELL:
            raise WrongFileError(
                path, [Problem(begins, f"this cell has more than {LONGEST_CELL} characters", "is it a CSV of results?")]
            )
        cells.append(Cell(content, begins))
        if index < len(text) and text[index] == delimiter:
            index += 1
            if index < len(text):
                continue
            cells.append(Cell("", Position(line, index - start + 1)))
            break
        index += 2 if text[index : index + 2] == "\r\n" else 1
        line, start = line + 1, index
        yield cells
        cells = []
    if cells:
        yield cells


def _quoted(text: str, opening: int, begins: Position, path: str) -> tuple[str, int]:
    """What stands between the quotes, and the index after the closing one."""
    parts, index = [], opening + 1
    while True:
        end = text.find('"', index)
        if end < 0:
            raise WrongFileError(path, [Problem(begins, "this quote is never closed", "close it, or remove it")])
        parts.append(text[index:end])
        if text[end + 1 : end + 2] != '"':
            return "".join(parts), end + 1
        parts.append('"')
        index = end + 2
