"""monitor.parquet: what the monitors sampled, one row a value, for other programs.

``session`` is the start of the run, from 1 (a resumed run has several); ``at_s`` when the interval ended, seconds since
that start; ``trial`` the trial in which the whole interval lies, null between trials. A ``count`` is what was counted
over ``interval_ns``: ``value / interval_ns * 1e9`` is a rate. A ``gauge`` was read at its end. Null: it could not be.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic_core import from_json

from nicbench.model.monitor import MonitorCost
from nicbench.store import monitor_log, reading
from nicbench.store.files import damaged_error, storage_error, sync_folder, writing_atomically

NAME = "monitor.parquet"
_ROWS = 200_000  # kept in memory at one time
_NO_LINE = (LookupError, TypeError, ValueError, ArithmeticError)
_NO_TABLE = (pa.ArrowException, AttributeError, MemoryError, *_NO_LINE)
_WORDS = ["host", "trial", "metric", "of", "kind"]
_LONGEST_WORD_BYTES = 4096
_MOST_ROWS = 20_000_000
"""Of the metrics that are asked for: two weeks of two CPUs sampled each second."""
_MOST_ROWS_OF_ALL = 20 * _MOST_ROWS
_METADATA = b"nicbench.monitor"

SCHEMA = pa.schema(
    [
        pa.field("session", pa.int32(), nullable=False),
        pa.field("host", pa.string(), nullable=False),
        pa.field("at_s", pa.float64(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("interval_ns", pa.int64(), nullable=False),
        pa.field("trial", pa.string()),
        pa.field("metric", pa.string(), nullable=False),
        pa.field("of", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("value", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Monitored:
    """What was sampled, and what it cost, by host; of a run in several sessions the costs are added up."""

    table: pa.Table
    costs: dict[str, MonitorCost]


def finish(folder: Path) -> None:
    """Makes the table of the log and takes the log away; what is in the table already stays. It may be done again."""
    log = folder / monitor_log.NAME
    if not log.is_file():
        return
    try:
        about = _about(folder)
        parser = _Parser(about)
        with (
            writing_atomically(folder / NAME) as stream,
            pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer,
        ):
            for batch in itertools.chain(_earlier(folder), parser.batches(log)):
                writer.write_batch(batch)
            writer.add_key_value_metadata({_METADATA: json.dumps(about.dumped()).encode()})
        log.unlink()
        sync_folder(folder)
    except OSError as error:
        raise storage_error(error, folder / NAME) from error
    except _NO_TABLE as error:
        raise damaged_error(error, folder / NAME) from error


def read(folder: Path, metrics: tuple[str, ...] | None) -> Monitored | None:
    """Rows of these metrics (None: of all), from the table and the log of a run that goes on; None: there are none."""
    try:
        return _read(folder, metrics)
    except OSError as error:
        raise storage_error(error, folder / NAME) from error
    except _NO_TABLE as error:
        raise damaged_error(error, folder / NAME) from error


def _read(folder: Path, metrics: tuple[str, ...] | None) -> Monitored | None:
    tables: list[pa.Table] = []
    about = _about(folder)
    with contextlib.suppress(FileNotFoundError), reading.opened(folder / NAME) as stream:
        tables.append(_filtered(stream, metrics))
    log = folder / monitor_log.NAME
    if os.path.lexists(log):
        batches = _Parser(about, None if metrics is None else frozenset(metrics)).batches(log)
        tables.append(pa.Table.from_batches(batches, schema=SCHEMA))
    return Monitored(pa.concat_tables(tables), _summed(about.costs)) if tables else None


def _filtered(stream: BinaryIO, metrics: tuple[str, ...] | None) -> pa.Table:
    """The rows of these metrics. Bounded in rows and words: a table of a few bytes can stand for billions of both."""
    batches, rows = [], 0
    # As dictionaries: a word that stands in every row takes memory once.
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
    values = words.dictionary if isinstance(words, pa.DictionaryArray) else words
    return pc.max(pc.binary_length(values)).as_py() or 0


Costs = list[tuple[str, MonitorCost]]


@dataclass
class _About:
    """What the table keeps beside its rows: the sessions that are in it, by when each began, and what they cost."""

    sessions: list[int] = field(default_factory=list)
    costs: Costs = field(default_factory=list)

    def dumped(self) -> dict[str, Any]:
        costs = [{"host": host, **cost.model_dump()} for host, cost in self.costs]
        return {"format": "1.0", "sessions": self.sessions, "costs": costs}


def _about(folder: Path) -> _About:
    try:
        with reading.opened(folder / NAME) as stream:
            content = from_json((pq.read_metadata(stream).metadata or {}).get(_METADATA, b"{}"), allow_inf_nan=False)
    except FileNotFoundError:
        return _About()
    costs = [(str(each.pop("host")), MonitorCost.model_validate(each)) for each in content.get("costs", [])]
    return _About([int(began_ns) for began_ns in content.get("sessions", [])], costs)


def _summed(costs: Costs) -> dict[str, MonitorCost]:
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


def _earlier(folder: Path) -> Iterator[pa.RecordBatch]:
    if (folder / NAME).is_file():
        with pq.ParquetFile(folder / NAME) as file:
            yield from file.iter_batches(batch_size=_ROWS)


@dataclass
class _Host:
    """What is known of a host so far."""

    series: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    trial: str | None = None
    ahead_ns: int = 0


@dataclass
class _Parser:
    """Reads a log line by line, and adds to ``about`` what it finds. What is no line, as after a crash, is left out."""

    about: _About
    metrics: frozenset[str] | None = None

    def batches(self, log: Path) -> Iterator[pa.RecordBatch]:
        """The rows. A session that is in the table already was copied before a crash took the log's removal."""
        began_ns, known_before = -1, True
        hosts: dict[str, _Host] = {}
        columns: list[list[Any]] = [[] for _ in SCHEMA]
        with reading.opened(log) as stream:
            for text in reading.lines(stream, log):
                line = _object(text)
                if isinstance(line.get("began_ns"), int) and line["began_ns"] != began_ns:
                    began_ns, hosts = line["began_ns"], {}
                    known_before = began_ns in self.about.sessions
                    if not known_before:
                        self.about.sessions.append(began_ns)
                host = line.get("host")
                if known_before or not isinstance(host, str):
                    continue
                with contextlib.suppress(*_NO_LINE):
                    self._line(line, host, began_ns, hosts.setdefault(host, _Host()), columns)
                if len(columns[0]) >= _ROWS:
                    yield _batch(columns)
                    columns = [[] for _ in SCHEMA]
        yield _batch(columns)

    def _line(self, line: dict[str, Any], host: str, began_ns: int, known: _Host, columns: list[list[Any]]) -> None:
        if "trial" in line:
            known.trial = (
                None if line["trial"] is None else f"{'r' if line.get('is_round') else 't'}{line['trial']:04d}"
            )
        elif "ahead_ns" in line:
            known.ahead_ns = int(line["ahead_ns"])
        elif "cost" in line:
            self.about.costs.append((host, MonitorCost.model_validate(line["cost"])))
        elif isinstance(line.get("event"), dict):
            self._event(line["event"], len(self.about.sessions), began_ns, host, known, columns)

    def _event(
        self, event: dict[str, Any], session: int, began_ns: int, host: str, known: _Host, columns: list[list[Any]]
    ) -> None:
        if event.get("event") == "ready":
            known.series, known.trial = {}, None
        elif event.get("event") == "series":
            for each in event["series"]:
                known.series[each["series"]] = (each["metric"], each["of"], each["kind"])
        elif event.get("event") == "sample":
            time_ns, interval_ns = event["time_ns"], event["interval_ns"]
            head = (session, host, (time_ns + known.ahead_ns - began_ns) / 1e9, time_ns, interval_ns, known.trial)
            for series, value in event["values"]:
                named = known.series.get(series)
                if named is None or (self.metrics is not None and named[0] not in self.metrics):
                    continue
                for column, cell in zip(columns, (*head, *named, value), strict=True):
                    column.append(cell)


def _batch(columns: list[list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(column, type=each.type) for column, each in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _object(text: bytes) -> dict[str, Any]:
    try:
        line = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}
