"""Files of tables and documents: CSV, JSON, Parquet and XLSX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, BinaryIO, Final

from nicbench.core.errors import UsageError
from nicbench.export.document import FORMAT, harmless_cell, replace_controls
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import LARGEST_EXACT, Cell, Column, Table
from nicbench.store.files import json_text


class CsvFormat(ExportFormat):
    """Lines end with CR LF (RFC 4180 section 2); unknown is an empty cell, a flag ``true`` or ``false``."""

    kind = "csv"
    suffix = ".csv"
    one_table = True

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        found = source.table(table)
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow([harmless_cell(column.name) for column in found.columns])
        writer.writerows([_cell(cell) for cell in row] for row in found.rows)
        text.detach()


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return harmless_cell(cell)
    # repr() of a float is the shortest text that reads back as the same number.
    return ("true" if cell else "false") if isinstance(cell, bool) else repr(cell)


class JsonFormat(ExportFormat):
    """Numbers are those of summary.json, digit by digit; unknown is null."""

    kind = "json"
    suffix = ".json"

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        stream.write((json_text(source.document, indent=2) + "\n").encode())


class ParquetFormat(ExportFormat):
    """Whole numbers are int64, others float64, unknown is null."""

    kind = "parquet"
    suffix = ".parquet"
    is_text = False
    one_table = True

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        import pyarrow.parquet as pq  # here: it takes long to load

        from nicbench.export.arrow import arrow_table

        metadata = {"nicbench.export": f'{{"format": "{FORMAT}", "table": "{table}"}}'}
        pq.write_table(arrow_table(source.table(table)).replace_schema_metadata(metadata), stream, compression="zstd")


_MOST_ROWS: Final = 1_048_576
_MOST_COLUMNS: Final = 16_384
_LONGEST_TEXT: Final = 32_767
_NARROWEST, _WIDEST = 10, 40
_MADE: Final = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""In every file, so that the same run is the same bytes."""


class _Exact(float):
    """A number that is written with all its digits: the library would keep 16 of the 17 that a float can need."""

    def __format__(self, form: str) -> str:
        return repr(float(self))


class XlsxFormat(ExportFormat):
    """Units stand in the headings, which stay in sight; no cell is a formula or a link, whatever its text is."""

    kind = "xlsx"
    suffix = ".xlsx"
    is_text = False

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        import xlsxwriter  # here: only this kind needs it

        tables = list(_tables(source))
        for found in tables:
            _check(found)
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False,
                   "strings_to_numbers": False}  # fmt: skip
        with xlsxwriter.Workbook(stream, options) as book:
            book.set_properties({"title": _text(source.document.run.title)[:255], "created": _MADE})
            head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
            for found in tables:
                _sheet(book.add_worksheet(found.name), found, head)


def _tables(source: ExportSource) -> Iterator[Table]:
    yield source.table("results")
    yield source.table("values")
    for name in ("trials", "rounds"):
        found = source.table(name)
        if found.rows:
            yield found
    yield source.settings
    yield source.machine


def _check(table: Table) -> None:
    if len(table.rows) >= _MOST_ROWS or len(table.columns) > _MOST_COLUMNS:
        raise UsageError(
            f"the table {table.name!r} has {len(table.rows)} rows and {len(table.columns)} columns;"
            f" a sheet holds {_MOST_ROWS - 1} and {_MOST_COLUMNS}",
            place="--to xlsx",
            next_step=f"--to parquet --table {table.name} holds them all",
        )


def _sheet(sheet: Any, table: Table, head: Any) -> None:
    for place, column in enumerate(table.columns):
        heading = _heading(column)
        sheet.set_column(place, place, min(max(_NARROWEST, len(heading)), _WIDEST))
        sheet.write_string(0, place, heading, head)
    for number, row in enumerate(table.rows, start=1):
        for place, cell in enumerate(row):
            if cell is not None and cell != "":
                _write(sheet, number, place, cell)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(table.rows), max(0, len(table.columns) - 1))


def _heading(column: Column) -> str:
    return _text(f"{column.name} [{column.unit}]" if column.unit else column.name)


def _write(sheet: Any, row: int, place: int, cell: Cell) -> None:
    if isinstance(cell, bool):
        sheet.write_boolean(row, place, cell)
    elif isinstance(cell, float) or (isinstance(cell, int) and abs(cell) <= LARGEST_EXACT):
        sheet.write_number(row, place, _Exact(cell) if isinstance(cell, float) else cell)
    else:  # a whole number beyond what a spreadsheet can count is text, so that no digit is lost
        sheet.write_string(row, place, _text(str(cell)))


@lru_cache(maxsize=4096)  # most cells of a long table hold one of a few words
def _text(text: str) -> str:
    clean = replace_controls(text)[: _LONGEST_TEXT - 1]
    # The library takes text in these tags for its own rich text, and would write it as it is.
    return f"{clean} " if clean.startswith("<r>") and clean.endswith("</r>") else clean
