"""Reads the bytes of a CSV into cells with their positions: encodings, RFC 4180, and spreadsheets' variants."""

from __future__ import annotations

import codecs
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from nicbench.core.errors import Position, Problem, UsageError, WrongFileError, quote
from nicbench.core.frozen import frozen
from nicbench.core.units import count_of

MOST_BYTES: Final = 8 * 2**20
MOST_ROWS: Final = 10_000
MOST_COLUMNS: Final = 256
LONGEST_CELL: Final = 1_000
DELIMITERS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
_LINES_LOOKED_AT: Final = 50
_OWN: Final = ("run_id", "result", "span")
"""How the headings of exported results begin."""
_BLANK = " \u00a0"
MOST_BYTES_UNPACKED: Final = 64 * 2**20
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
"""How packed files begin."""
_ZIP: Final = b"PK\x03\x04"
"""How .xlsx and .ods begin, which are archives."""
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Reads a regular file of at most this many bytes; UsageError for anything else."""
    try:
        with path.open("rb") as stream:
            if not stat.S_ISREG(path.stat().st_mode):
                raise UsageError("is not a regular file", place=str(path), next_step="name a CSV of results")
            content = stream.read(most_bytes + 1)
    except OSError as error:
        step = "name a CSV of results that is there, and that you may read"
        raise UsageError(f"cannot be read: {error.strerror or error}", place=str(path), next_step=step) from error
    if len(content) > most_bytes:
        raise UsageError(
            f"is larger than {most_bytes // 2**20} MiB", place=str(path), next_step="import a part of it at a time"
        )
    return content


@frozen
class Dialect:
    """How a table is written; None where the file shows it. The headings are the lines ``heading_lines``, first to
    last; lines after ``last_line`` are notes. ``sheet`` is that of a workbook.
    """

    delimiter: str | None = None
    encoding: str | None = None
    heading_lines: tuple[int, int] = (1, 1)
    last_line: int | None = None
    sheet: str | None = None


PLAIN: Final = Dialect()


def unpack(content: bytes, path: str) -> bytes:
    """Unpacks gzip, within limits; returns other content unchanged. WrongFileError where it is damaged."""
    packer = next((name for mark, name in _PACKED.items() if content.startswith(mark)), None)
    if packer is None:
        return content
    if packer != "gzip":
        hint = "unpack it, or pack it by gzip"
        raise WrongFileError(path, [Problem(Position(1, 1), f"this is packed by {packer}", hint)])
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(content, MOST_BYTES_UNPACKED)
    except zlib.error as error:
        raise WrongFileError(path, [Problem(Position(1, 1), f"gzip cannot unpack it: {error}", None)]) from error
    if reader.unconsumed_tail or not reader.eof:
        whole = f"is larger than {MOST_BYTES_UNPACKED // 2**20} MiB when unpacked"
        what = whole if reader.unconsumed_tail else "is packed by gzip, and its end is missing"
        raise WrongFileError(path, [Problem(Position(1, 1), what, None)])
    return text


def decode(content: bytes, path: str, encoding: str | None = None) -> str:
    """Decodes UTF-8, UTF-16, or the encoding named; WrongFileError with the position of what does not fit it."""
    content = unpack(content, path)
    if content.startswith(_ZIP):
        hint = "save the sheet as CSV, and import that"
        raise WrongFileError(path, [Problem(Position(1, 1), "this is a workbook or an archive, not text", hint)])
    known = encoding or next((name for mark, name in _MARKS if content.startswith(mark)), None) or _guess_utf(content)
    try:
        codec = codecs.lookup(known)
        text = content.decode(codec.name)
    except LookupError as error:
        raise UsageError(f"{known!r} is no encoding", next_step="for example --encoding cp1252") from error
    except UnicodeError as error:
        at = error.start if isinstance(error, UnicodeDecodeError) else 0
        line_start = content.rfind(b"\n", 0, at) + 1
        position = Position(content.count(b"\n", 0, at) + 1, len(content[line_start:at].decode(known, "replace")) + 1)
        hint = "name the file's own encoding, for example --encoding cp1252"
        raise WrongFileError(path, [Problem(position, f"this is not {known} text", hint)]) from error
    text = text.removeprefix("\ufeff")
    if "\x00" in text:
        before = text[: text.index("\x00")]
        position = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        raise WrongFileError(path, [Problem(position, "this is no text: it holds a NUL", "is it a CSV?")])
    return text


def _guess_utf(content: bytes) -> str:
    """Recognises UTF-16 without a byte order mark: ASCII text has zero in every other byte."""
    first = content[:512]
    if len(first) >= 4 and len(content) % 2 == 0:
        if not any(first[1::2]):
            return "utf-16-le"
        if not any(first[0::2]):
            return "utf-16-be"
    return "utf-8"


@frozen
class Cell:
    """The stripped text of a cell, and where the cell begins."""

    text: str
    position: Position
    is_typed: bool = False
    """Whether the text is of a number that the file holds as one, so that its marks leave no question."""


@frozen
class Sheet:
    """A table of text: headings, and rows of equal length. ``ignored`` are headings that were left out.

    ``configurations`` are headings that name what is compared, where the format knows it.
    """

    heads: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    ignored: tuple[str, ...] = field(default=())
    configurations: tuple[str, ...] = field(default=())

    def index_of(self, head: str) -> int | None:
        """Returns the index of the column with this heading, or None."""
        return next((number for number, cell in enumerate(self.heads) if cell.text == head), None)

    def texts(self) -> tuple[str, ...]:
        """Returns the headings."""
        return tuple(cell.text for cell in self.heads)


def read_sheet(text: str, path: str, dialect: Dialect = PLAIN) -> Sheet:
    """Parses ``text``; blank lines, and those above the headings, are skipped. WrongFileError lists what is wrong.

    Without a delimiter it is the one that sets the cells of most lines apart alike.
    """
    return make_sheet(read_lines(text, path, dialect), path, dialect)


def read_lines(text: str, path: str, dialect: Dialect = PLAIN) -> list[list[Cell]]:
    """Parses the lines from the headings on that are not blank; WrongFileError where no delimiter separates cells."""
    if text.lstrip().startswith(("{", "[{")):
        hint = "name the tool that printed it, as in --from iperf3, or make a table of it"
        raise WrongFileError(path, [Problem(Position(1, 1), "this is JSON, not a table", hint)])
    if dialect.last_line is not None:
        text = "".join(text.splitlines(keepends=True)[: dialect.last_line])
    first = dialect.heading_lines[0]
    delimiter = dialect.delimiter
    skipped, rest = _skip_lines(text, first)
    if rest[:4].lower() == "sep=":  # a line that Excel writes
        delimiter = delimiter or rest[4:5]
        skipped, rest = _skip_lines(text, skipped + 2)
    mark = delimiter or _guess_delimiter(rest)
    lines = []
    for cells in _lines(rest, mark, path, skipped):
        if any(cell.text for cell in cells):
            lines.append(cells)
        if len(lines) > MOST_ROWS + 1:
            position = cells[0].position
            raise WrongFileError(
                path, [Problem(position, f"has more than {MOST_ROWS} rows", "import a part of it at a time")]
            )
    return lines


def make_sheet(
    lines: Sequence[Sequence[Cell]], path: str, dialect: Dialect = PLAIN, *, may_lack_headings: bool = False
) -> Sheet:
    """Checks the lines and makes rows as long as the headings; empty cells beyond their end are dropped.

    A column without a heading is refused, or named by its number where the format knows what it is.
    """
    first, last = dialect.heading_lines
    wanted = [
        cells
        for cells in lines
        if cells[0].position.line >= first and cells[0].position.line <= (dialect.last_line or cells[0].position.line)
    ]
    if not wanted:
        hint = "its first line must name its columns"
        raise WrongFileError(path, [Problem(Position(first, 1), "has no heading", hint)])
    top = 1 + sum(cells[0].position.line <= last for cells in wanted[1:]) if last > first else 1
    heads = _join_headings(wanted[:top])
    if may_lack_headings:
        heads = [one if one.text else replace(one, text=f"column {at}") for at, one in enumerate(heads, 1)]
    problems = []
    if len(heads) > MOST_COLUMNS:
        raise WrongFileError(
            path, [Problem(heads[0].position, f"has {len(heads)} columns, more than {MOST_COLUMNS}", None)]
        )
    if tuple(cell.text for cell in heads[: len(_OWN)]) == _OWN:
        hint = "name the run itself: `nicbench report`, `compare` and `gather` take its folder"
        raise WrongFileError(path, [Problem(heads[0].position, "this is what `nicbench export` writes", hint)])
    seen: dict[str, Position] = {}
    for cell in heads:
        if not cell.text:
            problems.append(Problem(cell.position, "this column has no heading", "name it, or remove it"))
        elif cell.text in seen:
            one = seen[cell.text]
            problems.append(
                Problem(cell.position, f"{quote(cell.text)} is a heading already, in column {one.column}", "rename one")
            )
        seen.setdefault(cell.text, cell.position)
    rows = []
    for cells in wanted[top:]:
        row = _strip_empty_end(cells)
        if len(row) > len(heads):
            counted = f"this row has {len(row)} cells and the file {count_of(len(heads), 'heading')}"
            hint = "quote what holds the delimiter, or name it: --delimiter semicolon"
            problems.append(Problem(row[len(heads)].position, counted, hint))
        last_cell = cells[-1].position
        row += [Cell("", last_cell)] * (len(heads) - len(row))
        rows.append(tuple(row[: len(heads)]))
    if not rows:
        hint = "its first line must name the columns; what a tool printed is named by --from, as in --from iperf3"
        problems.append(Problem(heads[0].position, "has headings and no rows", hint))
    if problems:
        raise WrongFileError(path, problems)
    return Sheet(tuple(heads), tuple(rows))


def _join_headings(lines: Sequence[Sequence[Cell]]) -> list[Cell]:
    """Returns one heading of each column: those of all lines, where a heading above is that of the columns beside it,
    too, as far as these have one of their own below.
    """
    joined = _strip_empty_end(lines[-1])
    for upper in reversed(lines[:-1]):
        width = max(len(joined), len(_strip_empty_end(upper)))
        above = ""
        found = []
        for index in range(width):
            below = joined[index] if index < len(joined) else Cell("", upper[index].position)
            own = upper[index].text if index < len(upper) else ""
            above = own or (above if below.text else "")
            text = below.text if above == below.text else f"{above} {below.text}".strip()
            found.append(Cell(text, below.position))
        joined = found
    return joined


def _strip_empty_end(cells: Sequence[Cell]) -> list[Cell]:
    kept = list(cells)
    while kept and not kept[-1].text:
        kept.pop()
    return kept


def _skip_lines(text: str, line: int) -> tuple[int, str]:
    """Returns the number of lines skipped, and the text after them."""
    start = 0
    for skipped in range(line - 1):
        end = text.find("\n", start)
        if end < 0:
            return skipped, ""
        start = end + 1
    return line - 1, text[start:]


def _guess_delimiter(text: str) -> str:
    """Guesses the delimiter that stands as often in the unquoted parts of most of the first lines; of equals, the one
    that stands most often in the first of them.
    """
    lines = list(islice((line for line in text.splitlines() if line.strip()), _LINES_LOOKED_AT))
    bare = ["".join(part for number, part in enumerate(line.split('"')) if number % 2 == 0) for line in lines]

    def rank(mark: str) -> tuple[int, int]:
        often = Counter(count for line in bare if (count := line.count(mark))).most_common(1)
        return (often[0][1] if often else 0, bare[0].count(mark) if bare else 0)

    return max(DELIMITERS.values(), key=rank)


# The standard library's `csv` is not used: its errors have no position, its cells do not say in which column they
# begin, and it takes "1"x for 1x (or, in strict mode, refuses blanks after a quote too), so that positions cannot be
# found out afterwards.
def _lines(text: str, delimiter: str, path: str, skipped: int) -> Iterator[list[Cell]]:
    """Yields the cells of each line; a quoted cell may hold delimiters, doubled quotes and line ends."""
    line, start, index, cells = 1 + skipped, 0, 0, []
    while index < len(text):
        begins = Position(line, index - start + 1)
        after = index
        while after < len(text) and text[after] in _BLANK and text[after] != delimiter:
            after += 1
        if text[after : after + 1] == '"':
            content, index = _read_quoted(text, after, begins, path)
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


def _read_quoted(text: str, opening: int, begins: Position, path: str) -> tuple[str, int]:
    """Returns the text between the quotes, and the index after the closing one."""
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
