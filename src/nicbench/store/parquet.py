"""Reads Parquet files of a run folder within bounds: a file of a few bytes can stand for more than any memory holds.

A file stores repeated values once, with a count. So rows and values are counted before they are read, and words are
read as dictionaries, measured, and only then expanded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nicbench.store import reading
from nicbench.store.files import damaged_error, storage_error

MOST_ROWS: Final = 100_000_000
"""Limit of one table: every frame of a day at 1,000 frames a second."""
MOST_BYTES: Final = 8 * 2**30
"""Limit of one table in memory."""
_LONGEST_WORD_BYTES: Final = 16 * 2**20
"""Limit of a text, as of a journal's line, from which texts come."""
_ROWS: Final = 65_536  # read at one time
_UNREADABLE: Final = (pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)


def read(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Reads a table, or some of its columns. HostError where it is damaged, or larger than any run makes."""
    try:
        with reading.opened(path) as stream:
            return _read(stream, None if columns is None else list(columns))
    except FileNotFoundError as error:
        raise storage_error(error, path) from error
    except OSError as error:
        if error.errno is None:  # how Arrow reports bytes that are no Parquet
            raise damaged_error(error, path) from error
        raise storage_error(error, path) from error
    except _UNREADABLE as error:
        raise damaged_error(error, path) from error


def _read(stream: object, columns: list[str] | None) -> pa.Table:
    with pq.ParquetFile(stream) as plain:
        schema, metadata = plain.schema_arrow, plain.metadata
    words = [field.name for field in schema if pa.types.is_string(field.type)]
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    most_values = max(
        (group.column(index).num_values for group in groups for index in range(group.num_columns)), default=0
    )
    if metadata.num_rows > MOST_ROWS or most_values > MOST_ROWS:
        raise ValueError(f"it has more than {MOST_ROWS} rows")
    if sum(group.total_byte_size for group in groups) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES // 2**30} GiB")
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata)
    batches, taken_bytes = [], 0
    with pq.ParquetFile(stream, read_dictionary=words) as file:
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            taken_bytes += sum(_bytes(column) for column in batch.columns)
            if taken_bytes > MOST_BYTES:
                raise ValueError(f"it is larger than {MOST_BYTES // 2**30} GiB")
            batches.append(pa.Table.from_batches([batch]).select(wanted.names).cast(wanted))
    return pa.concat_tables(batches) if batches else wanted.empty_table()


def _bytes(column: pa.Array) -> int:
    """Computes the bytes that a column takes once its words are expanded. ValueError where a word is too long."""
    if not isinstance(column, pa.DictionaryArray):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) > _LONGEST_WORD_BYTES:
        raise ValueError(f"a text in it is longer than {_LONGEST_WORD_BYTES // 2**20} MiB")
    return pc.sum(pc.cast(pc.take(lengths, column.indices), pa.int64())).as_py() or 0
