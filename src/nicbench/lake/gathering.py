"""Gathers run folders into a lake: each run once, by its id. Killed at any moment and repeated, it gives the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from nicbench.compare.history.figures import FigureReader, settings_of
from nicbench.core.errors import HostError, NicbenchError, UsageError
from nicbench.core.events import MachinesUsed
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.lake.place import FIGURES, FORMAT, HEADLINE, ROUNDS, SETTINGS, TABLES, TRIALS, Lake, Month
from nicbench.lake.tables import SCHEMAS, fit, merge
from nicbench.store import files, manifest, tables
from nicbench.store.files import SUMMARY, TAGS, storage_error
from nicbench.store.folder import RunFolder, is_run_folder, refuse_damaged_files
from nicbench.store.listing import INVENTORY, Tell, clean, headline, time_of_name

# The rows of one run: its headline, its figures, and its trials or rounds, read from its folder.

_OWN: Final = {TRIALS: "trials.parquet", ROUNDS: "rounds.parquet"}
_FIRST_EVENTS: Final = 8
"""The machines of a run stand in its first events."""


@frozen
class Stamp:
    """Shows whether the lake has a run unchanged: ``tags`` stands for its tags, ``digest`` for what was measured and
    for the format of the rows. So a run that was gathered in an older format is gathered again.
    """

    digest: str
    tags: str


@frozen
class RunRows:
    """The rows of a run, by the name of their table."""

    run_id: str
    month: Month
    tables: Mapping[str, pa.Table] = field(repr=False)


def stamp_of(path: Path) -> Stamp | None:
    """Returns the stamp of a run folder; None where the run is not finished. HostError where it cannot be read."""
    try:
        measured = files.read_bytes(path / manifest.NAME)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path / manifest.NAME) from error
    try:
        tags = _digest(files.read_bytes(path / TAGS))
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
    own = tables.read_trials(path) if table == TRIALS else tables.read(path)
    count = own.num_rows
    own = own.append_column("run_id", pa.array([run_id] * count, pa.string()))
    return fit(own.append_column("place", pa.array(range(count), pa.int32())), table)


_AT_ONCE: Final = 1000
"""Runs that are read before their months are written."""


@frozen
class Gathered:
    """What became of the runs. ``added`` and ``updated`` are ids; ``skipped`` says which were left out, and why.

    ``known`` is how many were in the lake already, as they are. ``strangers`` lie in the lake and do not belong there.
    """

    added: tuple[str, ...]
    updated: tuple[str, ...]
    known: int
    skipped: tuple[str, ...]
    strangers: tuple[str, ...]


def gather(
    runs: Iterable[Path],
    lake: str | Path,
    tell: Tell = lambda _: None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Gathered:
    """Appends runs to the lake at a path or address, which is made where it is missing.

    ``runs`` are run folders, or folders of them. ``tell`` returns the line on a run's results that lists show;
    ``progress`` is given how many of how many runs are done. A run that is damaged, not finished, or another one of a
    known id is skipped and named, and costs the others nothing. BusyError where another process gathers; HostError
    where the lake cannot be written: what was gathered before stays.
    """
    folders = sorted(set(_run_folders(runs)), key=lambda path: (path.name, path))
    opened = Lake.open(lake, create=True)
    added: list[str] = []
    updated: list[str] = []
    skipped = []
    known, reader = 0, FigureReader()
    with opened.locked():
        for begin in range(0, len(folders), _AT_ONCE):
            some = folders[begin : begin + _AT_ONCE]
            before = find_known(opened, [clean(path.name) for path in some])
            fresh = {}
            for path in some:
                run_id = clean(path.name)
                try:
                    stamp = stamp_of(path)
                    reason = _why_not(path, stamp, before.get(run_id), again=run_id in fresh)
                    if reason:
                        skipped.append(f"{path}: {reason}")
                    elif stamp is None or reason is not None:
                        known += 1
                    else:
                        fresh[run_id] = read_rows(path, stamp, tell, reader)
                        (updated if run_id in before else added).append(run_id)
                except NicbenchError as error:
                    skipped.append(f"{path}: {error.message}")
            _write(opened, fresh.values())
            progress(begin + len(some), len(folders))
        return Gathered(tuple(added), tuple(updated), known, tuple(skipped), tuple(opened.strangers()))


def _run_folders(runs: Iterable[Path]) -> Iterator[Path]:
    for path in runs:
        if not path.is_dir():
            step = "name a run folder, or a folder of them"
            raise UsageError("there is no such folder", place=str(path), next_step=step)
        if is_run_folder(path):
            yield path.resolve()
        else:
            yield from (each.resolve() for each in path.iterdir() if is_run_folder(each))


def _why_not(path: Path, stamp: Stamp | None, found: KnownRun | None, *, again: bool) -> str | None:
    """Returns why a run is left out, empty if the lake has it unchanged; None if it is to be gathered."""
    if stamp is None:
        return "is not finished"
    if again:
        return "has the name of a run that was gathered just now from another folder"
    if found is None:
        return None
    there = Path(found.path)
    elsewhere = there != path and is_run_folder(there)
    if found.stamp == stamp:
        return "" if there == path or elsewhere else None  # it was moved: where it is now is kept
    if elsewhere and found.stamp.digest != stamp.digest and not _is_copy(there, stamp):
        return f"has the name of another run, which was gathered from {found.path}"
    return None


def _is_copy(there: Path, stamp: Stamp) -> bool:
    """Whether a run that was gathered in an older format from another folder is unchanged."""
    try:
        now = stamp_of(there)
    except HostError:
        return False
    return now is not None and now.digest == stamp.digest


def _write(lake: Lake, fresh: Iterable[RunRows]) -> None:
    months = grouped((run.month, run) for run in fresh)
    for month, runs in sorted(months.items()):
        replaced = [run.run_id for run in runs]
        for table in TABLES:
            merge(lake, month, table, [run.tables[table] for run in runs], replaced)


@frozen
class KnownRun:
    """A run of the lake."""

    path: str
    stamp: Stamp


def find_known(lake: Lake, ids: Sequence[str]) -> dict[str, KnownRun]:
    """Finds runs of a lake by their ids. HostError where one of its files cannot be read."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found = {}
    for month in lake.months_of(ids):
        for part in lake.parts(month, HEADLINE):
            rows = part.read(["run_id", "path", "digest", "tags_digest"])
            for row in rows.filter(pc.is_in(rows.column("run_id"), wanted)).to_pylist():
                found[row["run_id"]] = KnownRun(row["path"], Stamp(row["digest"], row["tags_digest"]))
    return found
