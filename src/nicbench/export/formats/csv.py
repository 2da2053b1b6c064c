"""CSV: one table, RFC 4180 in UTF-8, with a header line. Text that looks like a formula is defused."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource
from nicbench.export.tables import Cell
from nicbench.export.text import harmless_cell


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
