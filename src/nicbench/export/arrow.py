"""Arrow tables: the tables of an export, and the samples that a run folder has as Parquet."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.export.tables import Cell, Column, Kind, Table, plain, unit_of
from nicbench.store import tables as stored
from nicbench.store.files import damaged_error
from nicbench.store.folder import FRAMES, RunFolder, refuse_damaged_files

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
    TRIALS: lambda: stored.trials_parquet(()),
    ROUNDS: lambda: stored.rounds_parquet(()),
}


def trials(folder: RunFolder) -> pa.Table:
    """A row for each trial; none where the run has rounds."""
    if folder.finished:
        return _read_stored(folder, TRIALS, stored.read_trials)
    return _read_table(stored.trials_parquet(folder.journal.trials().values()))


def rounds(folder: RunFolder) -> pa.Table:
    """A row for each job of each round; none where the run has trials."""
    if folder.finished:
        return _read_stored(folder, ROUNDS, stored.read)
    return _read_table(stored.rounds_parquet(folder.journal.rounds().values()))


def frames(folder: RunFolder, columns: Sequence[str] | None, rounds: Sequence[str] | None) -> pa.Table:
    """The files of every frame's times as one table, or of some columns and rounds; without rows in their absence."""
    files = sorted(path for path in (folder.path / FRAMES).glob("*.parquet") if rounds is None or path.stem in rounds)
    refuse_damaged_files(folder, *(f"{FRAMES}/{path.name}" for path in files))
    tables = [stored.read(path, columns, bounds=stored.OF_FRAMES) for path in files]
    try:
        return pa.concat_tables(tables) if tables else pa.table({})
    except pa.ArrowException as error:
        raise damaged_error(error, folder.path / FRAMES) from error


def as_table(name: str, found: pa.Table) -> Table:
    """The same in the shape of the other tables; lists are JSON."""
    columns = tuple(Column(field.name, _kind(field.type), unit_of(field.name)) for field in found.schema)
    cells = [[plain(cell) for cell in column.to_pylist()] for column in found.columns]
    return Table(name, columns, tuple(zip(*cells, strict=True)))


def _read_stored(folder: RunFolder, name: str, read: Callable[[Path], pa.Table]) -> pa.Table:
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
