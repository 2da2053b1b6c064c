"""Reads a sheet of an XLSX workbook into cells with their places: numbers as it holds them, merged cells filled.

A number is a number here, whatever marks a country writes it with. One that is shown as a percentage is multiplied by
100, as people see it. Dates are not read as numbers: spreadsheets make dates of figures like 1.5 when they open a CSV.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import replace
from decimal import Decimal
from io import BytesIO
from typing import Final
from xml.etree import ElementTree

from nicbench.core.errors import Position, Problem, WrongFileError, quote
from nicbench.core.number_reader import plain_number
from nicbench.importing.cells import MOST_COLUMNS, MOST_ROWS, Cell

_MOST_BYTES: Final = 64 * 2**20
_MAIN: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PLACE: Final = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_PERCENT_FORMATS: Final = frozenset({9, 10})
_DATE_FORMATS: Final = frozenset({*range(14, 23), *range(45, 48)})
_NOT_SHOWN: Final = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
"""The parts of a number format that are text, or a condition."""
_SHEET_HINT: Final = "save the sheet as CSV, and import that"


def read_workbook(content: bytes, path: str, sheet: str | None = None) -> list[list[Cell]]:
    """Returns the rows of a sheet that have cells; without a name, of the only sheet that has any.

    WrongFileError where the file is not an XLSX workbook, or where several sheets have cells and none is named.
    """
    try:
        return _Workbook(content, path).rows(sheet)
    except _UNREADABLE as error:
        raise _unreadable(error, path) from error


def sheet_names(content: bytes, path: str) -> tuple[str, ...]:
    """Returns the sheets of a workbook that are shown and have cells."""
    try:
        return tuple(_Workbook(content, path).filled())
    except _UNREADABLE as error:
        raise _unreadable(error, path) from error


_UNREADABLE: Final = (
    zipfile.BadZipFile,
    ElementTree.ParseError,
    KeyError,
    IndexError,
    ValueError,
    NotImplementedError,
    EOFError,
    zlib.error,
)


def _unreadable(error: Exception, path: str) -> WrongFileError:
    problem = Problem(Position(1, 1), f"this is no workbook that can be read: {error}", _SHEET_HINT)
    return WrongFileError(path, [problem])


def is_workbook(content: bytes) -> bool:
    """Whether this is an archive with the parts of an XLSX workbook."""
    return content.startswith(b"PK\x03\x04") and b"xl/workbook.xml" in content


class _Workbook:
    def __init__(self, content: bytes, path: str) -> None:
        self._archive = zipfile.ZipFile(BytesIO(content))
        self._path = path
        self._left = _MOST_BYTES
        self._strings = self._read_strings()
        self._formats = self._read_formats()

    def rows(self, sheet: str | None) -> list[list[Cell]]:
        sheets = self._sheets()
        if sheet is not None and sheet not in sheets:
            names = ", ".join(map(quote, sheets))
            raise self._wrong(f"there is no sheet {quote(sheet)}", f"its sheets are {names}")
        if sheet is not None:
            return self._read_sheet(sheets[sheet])
        filled = self.filled()
        if len(filled) > 1:
            first = next(iter(filled))
            names = ", ".join(map(quote, filled))
            raise self._wrong(f"{len(filled)} of its sheets are filled: {names}", "name one", ("--sheet", first))
        return next(iter(filled.values()), [])

    def filled(self) -> dict[str, list[list[Cell]]]:
        """Returns the rows of the sheets that have any."""
        return {name: rows for name, part in self._sheets().items() if (rows := self._read_sheet(part))}

    def _wrong(self, message: str, hint: str | None, flags: tuple[str, ...] = ()) -> WrongFileError:
        return WrongFileError(self._path, [Problem(Position(1, 1), message, hint, flags)])

    def _part(self, name: str) -> ElementTree.Element | None:
        """Parses a part of the archive, None if it has no such part; all parts together are limited in size."""
        if name not in self._archive.NameToInfo:
            return None
        with self._archive.open(name) as stream:
            text = stream.read(self._left + 1)
        self._left -= len(text)
        if self._left < 0:
            raise self._wrong(f"is larger than {_MOST_BYTES // 2**20} MiB when unpacked", _SHEET_HINT)
        if b"<!DOCTYPE" in text or b"<\x00!\x00D" in text:
            raise self._wrong("holds a document type, which no spreadsheet writes", _SHEET_HINT)
        return ElementTree.fromstring(text)  # noqa: S314 - see the import

    def _sheets(self) -> dict[str, str]:
        """Returns the parts of the sheets that are shown, by their names."""
        book, relations = self._part("xl/workbook.xml"), self._part("xl/_rels/workbook.xml.rels")
        if book is None or relations is None:
            raise self._wrong("this is a workbook or an archive, not a table", _SHEET_HINT)
        targets = {one.get("Id"): one.get("Target", "") for one in relations}
        shown = [one for one in book.iter(f"{_MAIN}sheet") if one.get("state", "visible") == "visible"]
        parts = {one.get("name", ""): targets.get(one.get(_RELATION), "") for one in shown}
        return {
            name: target.lstrip("/") if target.startswith("/") else f"xl/{target}" for name, target in parts.items()
        }

    def _read_strings(self) -> list[str]:
        table = self._part("xl/sharedStrings.xml")
        return [] if table is None else [_text_of(one) for one in table.iter(f"{_MAIN}si")]

    def _read_formats(self) -> list[str]:
        """Returns of each style "percent", "date" or ""."""
        styles = self._part("xl/styles.xml")
        if styles is None:
            return []
        codes = {int(one.get("numFmtId", "0")): one.get("formatCode", "") for one in styles.iter(f"{_MAIN}numFmt")}
        crossed = styles.find(f"{_MAIN}cellXfs")
        return [_kind_of(int(one.get("numFmtId", "0")), codes) for one in (crossed if crossed is not None else ())]

    def _read_sheet(self, part: str) -> list[list[Cell]]:
        sheet = self._part(part)
        if sheet is None:
            return []
        cells = {}
        for one in sheet.iter(f"{_MAIN}c"):
            place = _place_of(one.get("r", ""))
            text, is_typed = self._content(one, place)
            if text:
                cells[place] = Cell(text, Position(*place), is_typed)
        for merged in sheet.iter(f"{_MAIN}mergeCell"):
            self._fill(cells, merged.get("ref", ""))
        if max((column for _, column in cells), default=0) > MOST_COLUMNS:
            raise self._wrong(f"has more than {MOST_COLUMNS} columns", None)
        lines = sorted({line for line, _ in cells})
        if len(lines) > MOST_ROWS + 1:
            raise self._wrong(f"has more than {MOST_ROWS} rows", "import a part of it at a time")
        width = max((column for _, column in cells), default=0)
        return [
            [cells.get((line, column)) or Cell("", Position(line, column)) for column in range(1, width + 1)]
            for line in lines
        ]

    def _content(self, cell: ElementTree.Element, place: tuple[int, int]) -> tuple[str, bool]:
        """Returns the text of a cell, and whether it is that of a number."""
        kind, value = cell.get("t", "n"), cell.findtext(f"{_MAIN}v")
        if kind == "inlineStr":
            return _text_of(cell), False
        if value is None:
            if cell.find(f"{_MAIN}f") is not None:
                hint = "open the workbook in a spreadsheet, which calculates it, and save it"
                raise WrongFileError(self._path, [Problem(Position(*place), "this formula has no result", hint)])
            return "", False
        if kind == "s":
            return self._strings[int(value)].strip(), False
        if kind != "n":
            return value.strip(), False
        style = int(cell.get("s", "0"))
        shown_as = self._formats[style] if style < len(self._formats) else ""
        if shown_as == "date":
            return f"the date {value}", False
        # Fifteen digits are what a spreadsheet keeps; the file has what the binary number makes of them.
        number = Decimal(f"{plain_number(value):.15g}")
        return (f"{number.scaleb(2):f} %" if shown_as == "percent" else f"{number:f}"), True

    def _fill(self, cells: dict[tuple[int, int], Cell], area: str) -> None:
        """Fills merged cells with their first one; only where that are few, as people merge them."""
        first, _, last = area.partition(":")
        (top, left), (bottom, right) = _place_of(first), _place_of(last or first)
        content = cells.get((top, left))
        if content is None or bottom - top > MOST_ROWS or right - left > MOST_COLUMNS:
            return
        for line in range(top, bottom + 1):
            for column in range(left, right + 1):
                cells[line, column] = replace(content, position=Position(line, column))


def _place_of(name: str) -> tuple[int, int]:
    """Returns line and column of a cell by its name: C12 is (12, 3)."""
    match = _PLACE.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no place of a cell")
    column = 0
    for letter in match[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    return int(match[2]), column


def _text_of(item: ElementTree.Element) -> str:
    """Returns the text of its runs, without how it is spoken."""
    spoken = {id(text) for one in item.iter(f"{_MAIN}rPh") for text in one.iter(f"{_MAIN}t")}
    texts = [text.text or "" for text in item.iter(f"{_MAIN}t") if id(text) not in spoken]
    return " ".join("".join(texts).split())


def _kind_of(number: int, codes: dict[int, str]) -> str:
    shown = _NOT_SHOWN.sub("", codes.get(number, ""))
    if number in _PERCENT_FORMATS or "%" in shown:
        return "percent"
    is_date = number in _DATE_FORMATS or re.search(r"[ymdhs]", shown.lower().replace("general", "")) is not None
    return "date" if is_date else ""
