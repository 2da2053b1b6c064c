"""Arrow tables: those of an export, and the samples of a run.

The unit of a column, and what it is about, are metadata of its field. Samples come from their Parquet files, or from
the journal of a run that goes on. Parquet files of a run folder are read within bounds: a file of a few bytes can stand
for more than any memory holds. A file stores repeated values once, with a count. So rows and values are counted before
they are read, and words are read as dictionaries, measured, and only then expanded.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nicbench.export.tables import Cell, Column, Kind, Table, plain, unit_of
from nicbench.store import reading, record_tables
from nicbench.store.files import damaged_error, storage_error
from nicbench.store.folder import FRAMES, RunFolder, refuse_damaged_files

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
        with reading.open_file(path) as stream:
            return _read_bounded(stream, None if columns is None else list(columns))
    except FileNotFoundError as error:
        raise storage_error(error, path) from error
    except OSError as error:
        if error.errno is None:  # how Arrow reports bytes that are no Parquet
            raise damaged_error(error, path) from error
        raise storage_error(error, path) from error
    except _UNREADABLE as error:
        raise damaged_error(error, path) from error


def _read_bounded(stream: object, columns: list[str] | None) -> pa.Table:
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


_TYPES: Final[dict[Kind, pa.DataType]] = {
    "text": pa.string(),
    "number": pa.float64(),
    "integer": pa.int64(),
    "flag": pa.bool_(),
}


def arrow_table(table: Table) -> pa.Table:
    """Every column with the type of its kind; None is null."""
    fields, arrays = [], []
    for place, column in enumerate(table.columns):
        told = {"unit": column.unit, "about": column.about}
        metadata = {key: text for key, text in told.items() if text}
        fields.append(pa.field(column.name, _TYPES[column.kind], metadata=metadata or None))
        cells = [_cell(row[place], column.kind) for row in table.rows]
        arrays.append(pa.array(cells, type=_TYPES[column.kind]))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _cell(cell: Cell, kind: Kind) -> Cell:
    if cell is None:
        return None
    if kind == "number":
        return float(cell)
    return str(cell) if kind == "text" else cell


TRIALS: Final = "trials.parquet"
ROUNDS: Final = "rounds.parquet"
_NO_SAMPLE: Final = {
    TRIALS: lambda: record_tables.trials_parquet(()),
    ROUNDS: lambda: record_tables.rounds_parquet(()),
}


def trials(folder: RunFolder) -> pa.Table:
    """A row for each trial; none where the run has rounds."""
    if folder.finished:
        return _read_stored(folder, TRIALS)
    return _read_table(record_tables.trials_parquet(folder.journal.trials().values()))


def rounds(folder: RunFolder) -> pa.Table:
    """A row for each job of each round; none where the run has trials."""
    if folder.finished:
        return _read_stored(folder, ROUNDS)
    return _read_table(record_tables.rounds_parquet(folder.journal.rounds().values()))


def frames(folder: RunFolder, columns: Sequence[str] | None, rounds: Sequence[str] | None) -> pa.Table:
    """The files of every frame's times as one table, or of some columns and rounds; no row where there are none."""
    files = sorted(path for path in (folder.path / FRAMES).glob("*.parquet") if rounds is None or path.stem in rounds)
    refuse_damaged_files(folder, *(f"{FRAMES}/{path.name}" for path in files))
    tables = [read(path, columns) for path in files]
    try:
        return pa.concat_tables(tables) if tables else pa.table({})
    except pa.ArrowException as error:
        raise damaged_error(error, folder.path / FRAMES) from error


def as_table(name: str, found: pa.Table) -> Table:
    """The same in the shape of the other tables; lists are JSON."""
    columns = tuple(Column(field.name, _kind(field.type), unit_of(field.name)) for field in found.schema)
    cells = [[plain(cell) for cell in column.to_pylist()] for column in found.columns]
    return Table(name, columns, tuple(zip(*cells, strict=True)))


def _read_stored(folder: RunFolder, name: str) -> pa.Table:
    refuse_damaged_files(folder, name)
    path = folder.path / name
    return read(path) if os.path.lexists(path) else _read_table(_NO_SAMPLE[name]())


def _read_table(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind):
        return "integer"
    return "number" if pa.types.is_floating(kind) else "text"
