"""Reads Parquet files of a run folder within bounds: a file of a few bytes can stand for more than any memory holds.

A file stores repeated values once, with a count. So rows and values are counted before they are read, and words are
read as dictionaries, measured, and only then expanded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nicbench.core.reading import Counts
from nicbench.core.trial import Purpose, contradiction_in
from nicbench.store import reading
from nicbench.store.files import damaged_error, storage_error


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one table: rows, and bytes in memory."""

    rows: int
    size_bytes: int


OF_SAMPLES: Final = Bounds(250_000, 2**30)
"""A trial of a second for three days; programs take such a table row by row."""
OF_FRAMES: Final = Bounds(100_000_000, 8 * 2**30)
"""Every frame of a day at 1,000 frames a second."""
_LONGEST_WORD_BYTES: Final = 16 * 2**20
"""Limit of a text, as of a journal's line, from which texts come."""
_ROWS: Final = 65_536  # read at one time
_UNREADABLE: Final = (pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError, MemoryError)


def read(path: Path, columns: Sequence[str] | None = None, *, bounds: Bounds = OF_SAMPLES) -> pa.Table:
    """Reads a table, or some of its columns. HostError where it is damaged, or larger than any run makes."""
    try:
        with reading.open_file(path) as stream:
            return _read_bounded(stream, None if columns is None else list(columns), bounds)
    except FileNotFoundError as error:
        raise storage_error(error, path) from error
    except OSError as error:
        if error.errno is None:  # how Arrow reports bytes that are no Parquet
            raise damaged_error(error, path) from error
        raise storage_error(error, path) from error
    except _UNREADABLE as error:
        raise damaged_error(error, path) from error


def read_trials(path: Path) -> pa.Table:
    """Reads trials.parquet. HostError also where the counts of a trial contradict themselves."""
    table = read(path)
    names = [name for name in (*Counts.model_fields, "id", "purpose") if name in table.column_names]
    for row in table.select(names).to_pylist():
        known = row.get("sent"), row.get("received"), row.get("lost")
        if None in known:  # what became of any frame is not known
            continue
        counts = {name: row[name] for name in names if name in Counts.model_fields}
        why = contradiction_in(counts, into_sink=row.get("purpose") == Purpose.CEILING)
        if why is not None:
            raise damaged_error(ValueError(f"{row.get('id')}: {why}"), path)
    return table


def refuse_excess(metadata: pq.FileMetaData, groups: Sequence[int], bounds: Bounds) -> None:
    """Raises ValueError where these row groups of a file have more rows, values or bytes than a table may have."""
    found = [metadata.row_group(number) for number in groups]
    values = (group.column(index).num_values for group in found for index in range(group.num_columns))
    if max(max(values, default=0), sum(group.num_rows for group in found)) > bounds.rows:
        raise ValueError(f"it has more than {bounds.rows} rows")
    if sum(group.total_byte_size for group in found) > bounds.size_bytes:
        raise _too_large(bounds)


def _read_bounded(stream: object, columns: list[str] | None, bounds: Bounds) -> pa.Table:
    with pq.ParquetFile(stream) as plain:
        schema, metadata = plain.schema_arrow, plain.metadata
    if metadata.num_rows > bounds.rows:
        raise ValueError(f"it has more than {bounds.rows} rows")
    refuse_excess(metadata, range(metadata.num_row_groups), bounds)
    words = [field.name for field in schema if pa.types.is_string(field.type)]
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata)
    batches, taken_bytes = [], 0
    with pq.ParquetFile(stream, read_dictionary=words) as file:
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            taken_bytes += sum(_bytes(column) for column in batch.columns)
            if taken_bytes > bounds.size_bytes:
                raise _too_large(bounds)
            batches.append(pa.Table.from_batches([batch]).select(wanted.names).cast(wanted))
    return pa.concat_tables(batches) if batches else wanted.empty_table()


def _too_large(bounds: Bounds) -> ValueError:
    return ValueError(f"it is larger than {bounds.size_bytes // 2**30} GiB")


def _bytes(column: pa.Array) -> int:
    """Computes the bytes that a column takes once its words are expanded. ValueError where a word is too long."""
    if not isinstance(column, pa.DictionaryArray):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) > _LONGEST_WORD_BYTES:
        raise ValueError(f"a text in it is longer than {_LONGEST_WORD_BYTES // 2**20} MiB")
    return pc.sum(pc.cast(pc.take(lengths, column.indices), pa.int64())).as_py() or 0
