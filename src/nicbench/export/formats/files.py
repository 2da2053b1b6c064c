"""Files of tables and documents: CSV, JSON, Parquet and XLSX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

from nicbench.export.document import FORMAT, harmless_cell
from nicbench.export.formats._workbook import write_workbook
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import Cell, Table
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


class XlsxFormat(ExportFormat):
    """Units stand in the headings, which stay in sight; no cell is a formula or a link, whatever its text is."""

    kind = "xlsx"
    suffix = ".xlsx"
    is_text = False

    def write(self, source: ExportSource, table: str, stream: BinaryIO) -> None:
        write_workbook(stream, source.document.run.title, tuple(_tables(source)))


def _tables(source: ExportSource) -> Iterator[Table]:
    yield source.table("results")
    yield source.table("values")
    for name in ("trials", "rounds"):
        found = source.table(name)
        if found.rows:
            yield found
    yield source.settings
    yield source.machine
