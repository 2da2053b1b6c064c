"""Parquet: one table, with the unit of each column in the metadata of its field."""

from __future__ import annotations

from typing import BinaryIO

from nicbench.export.document import FORMAT
from nicbench.export.formats.base import ExportFormat
from nicbench.export.source import ExportSource


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
