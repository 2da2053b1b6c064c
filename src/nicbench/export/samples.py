"""The samples of a run as Arrow tables: from their Parquet files, or from the journal of a run that goes on."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.export.tables import Column, Kind, Table, plain
from nicbench.export.units import unit_of
from nicbench.store import round_table, trial_table
from nicbench.store.files import damaged_error, storage_error
from nicbench.store.folder import RunFolder

TRIALS: Final = "trials.parquet"
ROUNDS: Final = "rounds.parquet"
_NO_SAMPLE: Final = {
    TRIALS: lambda: trial_table.parquet(()),
    ROUNDS: lambda: round_table.parquet(()),
}


def trials(folder: RunFolder) -> pa.Table:
    """A row for each trial; none where the run has rounds."""
    if folder.finished:
        return _stored(folder.path, TRIALS)
    return _read(trial_table.parquet(folder.journal.trials().values()))


def rounds(folder: RunFolder) -> pa.Table:
    """A row for each job of each round; none where the run has trials."""
    if folder.finished:
        return _stored(folder.path, ROUNDS)
    return _read(round_table.parquet(folder.journal.rounds().values()))


def stored_table(path: Path) -> pa.Table:
    """A Parquet file of a run folder; HostError where it is damaged."""
    try:
        return pq.read_table(path)
    except OSError as error:
        if error.errno is None:  # Arrow's word for bytes that are no Parquet
            raise damaged_error(error, path) from error
        raise storage_error(error, path) from error
    except (pa.ArrowException, ValueError) as error:
        raise damaged_error(error, path) from error


def frames(folder: Path, columns: Sequence[str] | None, rounds: Sequence[str] | None) -> pa.Table:
    """The files of every frame's times as one table, or of some columns and rounds; no row where there are none."""
    files = sorted(path for path in folder.glob("*.parquet") if rounds is None or path.stem in rounds)
    try:
        tables = [pq.read_table(path, columns=columns and list(columns), partitioning=None) for path in files]
        return pa.concat_tables(tables) if tables else pa.table({})
    except OSError as error:
        raise storage_error(error, folder) from error
    except (pa.ArrowException, ValueError) as error:
        raise damaged_error(error, folder) from error


def as_table(name: str, found: pa.Table) -> Table:
    """The same in the shape of the other tables; lists are JSON."""
    columns = tuple(Column(field.name, _kind(field.type), unit_of(field.name)) for field in found.schema)
    cells = [[plain(cell) for cell in column.to_pylist()] for column in found.columns]
    return Table(name, columns, tuple(zip(*cells, strict=True)))


def _stored(folder: Path, name: str) -> pa.Table:
    path = folder / name
    return stored_table(path) if path.is_file() else _read(_NO_SAMPLE[name]())


def _read(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind):
        return "integer"
    return "number" if pa.types.is_floating(kind) else "text"
