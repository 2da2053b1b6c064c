"""The samples of monitors: monitor.ndjson during a run, monitor.parquet at its end, also of other programs' recordings.

Each line of monitor.ndjson holds ``began_ns``, the start of the run, with ``wall_ns``, the same as UNIX time; or a host
and one of: ``event``, an unchanged line of its monitor; ``trial``, the trial or round that begins or, null, ends;
``cost``; or for another machine ``ahead_ns``, by how much this machine's monotonic clock is ahead of its clock.

monitor.parquet has one row for each value, for other programs. ``session`` is the start of the run, from 1 (a resumed
run has several); ``at_s`` when the interval ended, in seconds since that start; ``trial`` the trial in which the whole
interval lies, null between trials. A trial that a killed session left is made again in the next, under its number: what
was recorded of it before is of ``t0007 (unfinished)``, so that an id is of one session. A ``count`` was counted over
``interval_ns``: ``value / interval_ns * 1e9`` is a rate. A ``gauge`` was read at the interval's end. A null value could
not be read.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.machine import MonitorCost
from nicbench.store import files
from nicbench.store.files import damaged_error, storage_error, sync_folder, writing_atomically
from nicbench.store.tables import NUMBER, TEXT, WHOLE, known, optional

# Reads monitor.ndjson line by line, as it was written or as it grows; ``monitor_samples`` says what its lines are.
# It needs no tables, so that a page can follow a monitor without loading what writes them.

Row = tuple[int, str, float, int, int, str | None, str, str, str, int | None]
"""Session, host, seconds since the session began, time, interval (both ns), trial, metric, of what, kind, value."""
Costs = list[tuple[str, MonitorCost]]
"""The costs of monitors, by host; a host has one for each session."""
NO_LINE: Final = (LookupError, TypeError, ValueError, ArithmeticError)
"""What a line that no monitor wrote may raise."""


@dataclass
class _Host:
    """What the log has said of a host so far."""

    series: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    trial: str | None = None
    ahead_ns: int = 0


@dataclass
class LogParser:
    """Adds what it reads to ``sessions`` (when each began), ``walls`` (the same by wall time, None where it is not
    known) and ``costs``. Sessions that are there already are skipped.

    ``metrics`` are those of which rows are wanted, None for all. Invalid lines (a crash) are skipped.
    """

    sessions: list[int]
    costs: Costs
    metrics: frozenset[str] | None = None
    walls: list[int | None] = field(default_factory=list)
    begun: set[tuple[int, str]] = field(default_factory=set)
    """Each trial or round that began, with its session: one that was not finished begins again in a later session."""
    _began_ns: int = -1
    _known_before: bool = True
    _hosts: dict[str, _Host] = field(default_factory=dict)

    def rows_of(self, text: bytes) -> Iterable[Row]:
        """Takes a line, and returns its rows: none for a line without samples."""
        line = _object(text)
        if isinstance(line.get("began_ns"), int) and line["began_ns"] != self._began_ns:
            self._began_ns, self._hosts = line["began_ns"], {}
            self._known_before = self._began_ns in self.sessions
            if not self._known_before:
                self.sessions.append(self._began_ns)
                wall_ns = line.get("wall_ns")
                self.walls.append(wall_ns if isinstance(wall_ns, int) else None)
        host = line.get("host")
        found: list[Row] = []
        if not self._known_before and isinstance(host, str):
            with contextlib.suppress(*NO_LINE):
                found += self._line(line, host, self._hosts.setdefault(host, _Host()))
        return found

    def _line(self, line: dict[str, Any], host: str, known: _Host) -> Iterator[Row]:
        if "trial" in line:
            known.trial = (
                None if line["trial"] is None else f"{'r' if line.get('is_round') else 't'}{line['trial']:04d}"
            )
            if known.trial is not None:
                self.begun.add((len(self.sessions), known.trial))
        elif "ahead_ns" in line:
            known.ahead_ns = int(line["ahead_ns"])
        elif "cost" in line:
            self.costs.append((host, MonitorCost.model_validate(line["cost"])))
        elif isinstance(line.get("event"), dict):
            yield from self._event(line["event"], host, known)

    def _event(self, event: dict[str, Any], host: str, known: _Host) -> Iterator[Row]:
        if event.get("event") == "ready":
            known.series, known.trial = {}, None
        elif event.get("event") == "series":
            for each in event["series"]:
                known.series[each["series"]] = (each["metric"], each["of"], each["kind"])
        elif event.get("event") == "sample":
            time_ns, interval_ns = event["time_ns"], event["interval_ns"]
            at_s = (time_ns + known.ahead_ns - self._began_ns) / 1e9
            for series, value in event["values"]:
                named = known.series.get(series)
                if named is None or (self.metrics is not None and named[0] not in self.metrics):
                    continue
                yield (len(self.sessions), host, at_s, time_ns, interval_ns, known.trial, *named, value)


def _object(text: bytes) -> dict[str, Any]:
    try:
        line = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


LOG_NAME = "monitor.ndjson"
NAME = "monitor.parquet"
SAMPLE = '{"event":"sample"'
"""The beginning of a sample's line; samples are many and are kept as they are."""


class MonitorLog:
    """Appends to monitor.ndjson, line by line, so that a killed run keeps it.

    ``began_ns`` is the (monotonic) start of this session, from which times in the table count. ``redact`` removes from
    names what identifies a machine: an interface may be named after its MAC address.
    """

    def __init__(self, folder: Path, began_ns: int | None = None, redact: Callable[[Any], Any] | None = None) -> None:
        self._redact = redact
        self._path = folder / LOG_NAME
        self._began_ns = time.monotonic_ns() if began_ns is None else began_ns
        self._wall_ns = time.time_ns() - time.monotonic_ns() + self._began_ns
        self._descriptor: int | None = None

    def event(self, host: str, line: str) -> None:
        """Writes a line of a monitor; samples are numbers, which need no redaction."""
        if self._redact is not None and not line.startswith(SAMPLE):
            line = json.dumps(self._redact(json.loads(line)))
        self._write(f'{{"host":{json.dumps(host)},"event":{line}}}\n')

    def trial(self, host: str, number: int | None) -> None:
        """Writes that the host's samples from now on belong to a trial; None: to none."""
        self._write(json.dumps({"host": host, "trial": number}) + "\n")

    def round(self, host: str, number: int) -> None:
        """Writes that the host's samples from now on belong to a round, until ``trial`` ends it with None."""
        self._write(json.dumps({"host": host, "trial": number, "is_round": True}) + "\n")

    def clock(self, host: str, ahead_ns: int) -> None:
        """Writes how far this machine's monotonic clock is ahead of the host's, which booted at another time."""
        self._write(json.dumps({"host": host, "ahead_ns": ahead_ns}) + "\n")

    def cost(self, host: str, cost: MonitorCost) -> None:
        """Writes what the host's monitor has cost."""
        self._write(json.dumps({"host": host, "cost": cost.model_dump()}) + "\n")

    def close(self) -> None:
        """Closes the file; a later line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, text: str) -> None:
        try:
            if self._descriptor is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o644)
                # A line that a crash cut short ends here.
                text = "\n" + json.dumps({"began_ns": self._began_ns, "wall_ns": self._wall_ns}) + "\n" + text
            os.write(self._descriptor, text.encode())
        except OSError as error:
            raise storage_error(error, self._path) from error


# monitor.parquet.

_ROWS = 200_000  # kept in memory at one time
_NO_TABLE = (pa.ArrowException, AttributeError, MemoryError, *NO_LINE)
_WORDS = ["host", "trial", "metric", "of", "kind"]
_LONGEST_WORD_BYTES = 4096
_MOST_ROWS = 20_000_000
"""Limit of the rows of the requested metrics: two weeks of two CPUs sampled each second."""
_MOST_ROWS_OF_ALL = 20 * _MOST_ROWS
_METADATA = b"nicbench.monitor"
_UNFINISHED: Final = " (unfinished)"

SCHEMA = pa.schema(
    [
        pa.field("session", pa.int32(), nullable=False),
        *known(TEXT, "host"),
        *known(NUMBER, "at_s"),
        *known(WHOLE, "time_ns", "interval_ns"),
        *optional(TEXT, "trial"),
        *known(TEXT, "metric", "of", "kind"),
        *optional(WHOLE, "value"),
    ]
)


@frozen
class MonitorTable:
    """The samples, and the monitors' costs by host, summed over the sessions of a run.

    ``walls``: when each session began, as UNIX time in nanoseconds; None where it is not known.
    """

    table: pa.Table
    costs: dict[str, MonitorCost]
    walls: tuple[int | None, ...] = ()


def finish(folder: Path) -> None:
    """Adds the log to the table and removes the log. It may be repeated."""
    log = folder / LOG_NAME
    if not log.is_file():
        return
    try:
        about = _about(folder)
        with (
            writing_atomically(folder / NAME) as stream,
            pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer,
        ):
            made_again = _made_again(_read_earlier(folder, ["session", "trial"]), about, log)
            for batch in itertools.chain(_read_earlier(folder, SCHEMA.names), _batches(about, log)):
                writer.write_batch(_tell_apart(batch, made_again))
            writer.add_key_value_metadata({_METADATA: json.dumps(about.dump()).encode()})
        log.unlink()
        sync_folder(folder)
    except OSError as error:
        raise storage_error(error, folder / NAME) from error
    except _NO_TABLE as error:
        raise damaged_error(error, folder / NAME) from error


def read(folder: Path, metrics: tuple[str, ...] | None) -> MonitorTable | None:
    """Reads the rows of some metrics (None: all) from the table, and from the log of a run in progress.

    None where there is neither.
    """
    try:
        return _read(folder, metrics)
    except OSError as error:
        raise storage_error(error, folder / NAME) from error
    except _NO_TABLE as error:
        raise damaged_error(error, folder / NAME) from error


def _read(folder: Path, metrics: tuple[str, ...] | None) -> MonitorTable | None:
    tables = []
    about = _about(folder)
    with contextlib.suppress(FileNotFoundError), files.open_file(folder / NAME) as stream:
        tables.append(_read_filtered(stream, metrics))
    log = folder / LOG_NAME
    known_log = log if os.path.lexists(log) else None
    made_again = _made_again(itertools.chain.from_iterable(map(pa.Table.to_batches, tables)), about, known_log)
    if known_log is not None:
        tables.append(pa.Table.from_batches(_batches(about, log, metrics), schema=SCHEMA))
    if not tables:
        return None
    batches = [_tell_apart(batch, made_again) for table in tables for batch in table.to_batches()]
    return MonitorTable(pa.Table.from_batches(batches, SCHEMA), _add_costs(about.costs), tuple(about.walls))


def _made_again(earlier: Iterable[pa.RecordBatch], about: _About, log: Path | None) -> dict[int, list[str]]:
    """Finds the trials and rounds, by session, that a later session made again: those that were not finished.

    ``earlier`` is what the table has, ``log`` what is to be added to it.
    """
    begun = set()
    for batch in earlier:
        pairs = pa.Table.from_batches([batch.select(["session", "trial"])]).group_by(["session", "trial"]).aggregate([])
        begun |= set(zip(pairs["session"].to_pylist(), pairs["trial"].to_pylist(), strict=True))
    parser = LogParser(list(about.sessions), [], frozenset())
    if log is not None:
        with files.open_file(log) as stream:
            for line in files.iterate_lines(stream, log):
                if b'"trial"' in line or b'"began_ns"' in line:  # samples are many, and say nothing of this
                    list(parser.rows_of(line))
    # One that an earlier end of the run has marked stays as it is.
    known = [(session, trial) for session, trial in begun | parser.begun if trial and not trial.endswith(_UNFINISHED)]
    last: dict[str, int] = {}
    for session, trial in known:
        last[trial] = max(session, last.get(trial, 0))
    found = grouped((session, trial) for session, trial in known if session < last[trial])
    return found


def _tell_apart(batch: pa.RecordBatch, made_again: Mapping[int, list[str]]) -> pa.RecordBatch:
    """Gives the rows of trials that were made again an id of their own."""
    import pyarrow.compute as pc  # imported here: it makes hundreds of functions, and a run without monitors needs none

    session, trial = batch.column("session"), batch.column("trial")
    for number, trials in made_again.items():
        is_one = pc.and_(pc.equal(session, number), pc.is_in(trial, value_set=pa.array(trials, pa.string())))
        trial = pc.if_else(is_one, pc.binary_join_element_wise(trial, _UNFINISHED, ""), trial)
    columns = [trial if name == "trial" else batch.column(name) for name in SCHEMA.names]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _read_filtered(stream: BinaryIO, metrics: tuple[str, ...] | None) -> pa.Table:
    """Reads the rows of some metrics, within bounds: a table of a few bytes can stand for billions of rows."""
    import pyarrow.compute as pc

    batches, rows = [], 0
    # Words are read as dictionaries, so that one that is in every row takes memory once.
    with pq.ParquetFile(stream, read_dictionary=_WORDS) as file:
        if file.metadata.num_rows > _MOST_ROWS_OF_ALL:
            raise ValueError(f"it has more than {_MOST_ROWS_OF_ALL} rows")
        for batch in file.iter_batches(batch_size=_ROWS, columns=SCHEMA.names):
            if any(_longest(batch.column(name)) > _LONGEST_WORD_BYTES for name in _WORDS):
                raise ValueError(f"a name in it is longer than {_LONGEST_WORD_BYTES} bytes")
            found = batch
            if metrics is not None:
                found = batch.filter(pc.is_in(batch.column("metric").cast(pa.string()), value_set=pa.array(metrics)))
            rows += found.num_rows
            if rows > _MOST_ROWS:
                raise ValueError(f"it has more than {_MOST_ROWS} rows of what the CPUs did")
            if found.num_rows:
                batches.append(pa.Table.from_batches([found]).select(SCHEMA.names).cast(SCHEMA))
    return pa.concat_tables(batches) if batches else SCHEMA.empty_table()


def _longest(words: pa.Array) -> int:
    import pyarrow.compute as pc

    values = words.dictionary if isinstance(words, pa.DictionaryArray) else words
    return pc.max(pc.binary_length(values)).as_py() or 0


@dataclass
class _About:
    """The metadata of the table: the sessions in it, by when each began, and their costs."""

    sessions: list[int] = field(default_factory=list)
    walls: list[int | None] = field(default_factory=list)
    costs: Costs = field(default_factory=list)

    def dump(self) -> dict[str, Any]:
        costs = [{"host": host, **cost.model_dump()} for host, cost in self.costs]
        return {"format": "1.0", "sessions": self.sessions, "walls": self.walls, "costs": costs}


def _about(folder: Path) -> _About:
    try:
        with files.open_file(folder / NAME) as stream:
            content = from_json((pq.read_metadata(stream).metadata or {}).get(_METADATA, b"{}"), allow_inf_nan=False)
    except FileNotFoundError:
        return _About()
    costs = [(str(each.pop("host")), MonitorCost.model_validate(each)) for each in content.get("costs", [])]
    sessions = [int(began_ns) for began_ns in content.get("sessions", [])]
    walls = [None if wall_ns is None else int(wall_ns) for wall_ns in content.get("walls", [])]
    # Earlier tables have no walls.
    return _About(sessions, (walls + [None] * len(sessions))[: len(sessions)], costs)


def _add_costs(costs: Costs) -> dict[str, MonitorCost]:
    found: dict[str, MonitorCost] = {}
    for host, cost in costs:
        before = found.get(host)
        found[host] = (
            cost
            if before is None
            else MonitorCost(
                cpu_ns=before.cpu_ns + cost.cpu_ns,
                elapsed_ns=before.elapsed_ns + cost.elapsed_ns,
                samples=before.samples + cost.samples,
                maximum_sample_ns=max(before.maximum_sample_ns, cost.maximum_sample_ns),
                resident_bytes=max(filter(None, (before.resident_bytes, cost.resident_bytes)), default=None),
            )
        )
    return found


def _read_earlier(folder: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if (folder / NAME).is_file():
        with pq.ParquetFile(folder / NAME) as file:
            yield from file.iter_batches(batch_size=_ROWS, columns=columns)


def _batches(about: _About, log: Path, metrics: tuple[str, ...] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a log, without sessions that are in the table already (a crash prevented its removal)."""
    parser = LogParser(about.sessions, about.costs, None if metrics is None else frozenset(metrics), about.walls)
    rows: list[Row] = []
    with files.open_file(log) as stream:
        for line in files.iterate_lines(stream, log):
            rows += parser.rows_of(line)
            if len(rows) >= _ROWS:
                yield _batch(rows)
                rows = []
    yield _batch(rows)


def _batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
    arrays = [pa.array(column, type=each.type) for column, each in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


# Recordings of other programs, written at once as the same table.


_RECORDED_ROWS: Final = 100_000
"""Rows kept in memory at one time."""


def write(folder: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Writes rows in the order of ``SCHEMA``, those of a sample together. HostError where they cannot be written."""
    left = iter(rows)
    # One session; the cost of the recording is unknown.
    about = {b"nicbench.monitor": json.dumps({"format": "1.0", "sessions": [0], "costs": []}).encode()}
    with writing_atomically(folder / NAME) as stream, pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        while part := list(islice(left, _RECORDED_ROWS)):
            columns = zip(*part, strict=True)
            arrays = [pa.array(column, type=each.type) for column, each in zip(columns, SCHEMA, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        writer.add_key_value_metadata(about)
