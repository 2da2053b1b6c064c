"""The rows of one run: its headline, its figures, and its trials or rounds, read from its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from nicbench.compare.history.figures import FigureReader, settings_of
from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.events import MachinesUsed
from nicbench.lake.place import FIGURES, FORMAT, HEADLINE, ROUNDS, SETTINGS, TRIALS, Month
from nicbench.lake.tables import SCHEMAS, fit
from nicbench.store import manifest, parquet, reading
from nicbench.store.files import SUMMARY, TAGS, storage_error
from nicbench.store.folder import RunFolder, refuse_damaged_files
from nicbench.store.headline import INVENTORY, clean, time_of_name
from nicbench.store.listing import Tell, headline

_OWN: Final[Mapping[str, str]] = {TRIALS: "trials.parquet", ROUNDS: "rounds.parquet"}
_FIRST_EVENTS: Final = 8
"""The machines of a run are told at its beginning."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Tells whether a run was gathered as it is: ``tags`` is of its tags, ``digest`` of what was measured and of the
    format of the rows. So a run that was gathered in an older format is gathered again.
    """

    digest: str
    tags: str


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows of a run, by the name of their table."""

    run_id: str
    month: Month
    tables: Mapping[str, pa.Table] = field(repr=False)


def stamp_of(path: Path) -> Stamp | None:
    """Returns the stamp of a run folder; None where the run is not finished. HostError where it cannot be read."""
    try:
        measured = reading.read_bytes(path / manifest.NAME)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path / manifest.NAME) from error
    try:
        tags = _digest(reading.read_bytes(path / TAGS))
    except OSError:
        tags = ""
    return Stamp(_digest(FORMAT.encode() + measured), tags)


def _digest(content: bytes) -> str:
    # 64 bits: it tells a run from what it was before, among the runs of one name. It is a tenth of a headline as it is.
    return hashlib.sha256(content).hexdigest()[:16]


def read_rows(path: Path, stamp: Stamp, tell: Tell, reader: FigureReader) -> RunRows:
    """Reads a finished run. HostError where its folder is damaged, or something of it cannot be understood."""
    run = headline(path, tell)
    if run.trouble:
        raise HostError(run.trouble, place=str(path))
    folder = RunFolder.open(path)
    refuse_damaged_files(folder, SUMMARY, INVENTORY, *_OWN.values())
    row: dict[str, Any] = {name: list(each) if isinstance(each, tuple) else each for name, each in run.plain().items()}
    row |= {
        "started": datetime.fromisoformat(run.at) if run.at else None,
        "machines": _machines(folder),
        "digest": stamp.digest,
        "tags_digest": stamp.tags,
    }
    try:
        settings = settings_of(folder).text
        tables = {
            HEADLINE: pa.Table.from_pylist([row], schema=SCHEMAS[HEADLINE]),
            SETTINGS: pa.Table.from_arrays(
                [pa.array([run.run_id]), pa.array([settings]).dictionary_encode()], schema=SCHEMAS[SETTINGS]
            ),
            FIGURES: _figures(run.run_id, folder, reader),
            **{table: _own(run.run_id, path / name, table) for table, name in _OWN.items()},
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, pa.ArrowException) as error:
        raise HostError(f"cannot be understood: {error}", place=str(path)) from error
    # The time in the name comes first: by it a run is found again by its id alone.
    return RunRows(run.run_id, Month.of(time_of_name(run.run_id) or run.at), tables)


def _machines(folder: RunFolder) -> list[str]:
    try:
        for event in islice(folder.journal.events(), _FIRST_EVENTS):
            if isinstance(event, MachinesUsed):
                return list(dict.fromkeys(clean(machine.host_name) for machine in event.machines.values()))
    except NicbenchError:
        pass  # an import has no journal; a damaged one was refused before
    return []


def _figures(run_id: str, folder: RunFolder, reader: FigureReader) -> pa.Table:
    rows = []
    for place, measure, figure in reader.figures_of(folder):
        told = measure.told
        texts = (measure.test, measure.method, measure.configuration, measure.scope, measure.given)
        rows.append(
            (run_id, place, *texts, told.value, told.head, told.unit, told.is_main, told.higher_is_better, *figure)
        )
    schema = SCHEMAS[FIGURES]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(list(column), each.type) for column, each in zip(columns, schema, strict=True)], schema=schema
    )


def _own(run_id: str, path: Path, table: str) -> pa.Table:
    if not path.is_file():
        return SCHEMAS[table].empty_table()
    own = parquet.read_trials(path) if table == TRIALS else parquet.read(path)
    count = own.num_rows
    own = own.append_column("run_id", pa.array([run_id] * count, pa.string()))
    return fit(own.append_column("place", pa.array(range(count), pa.int32())), table)
