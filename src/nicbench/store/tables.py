"""Parquet files of a run folder: the tables of trials and rounds, and reading such files within bounds."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.core.frozen import frozen
from nicbench.core.reading import Counts
from nicbench.core.round import Flow, FrameFigures, Job, JobOutcome, Round
from nicbench.core.trial import Purpose, Trial, contradiction_in
from nicbench.stats.latency import percentiles_ns
from nicbench.store import files
from nicbench.store.files import damaged_error, json_text, storage_error

TEXT: Final = pa.string()
WHOLE: Final = pa.int64()
NUMBER: Final = pa.float64()
FLAG: Final = pa.bool_()
TEXTS: Final = pa.list_(TEXT)


def known(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Returns columns of which every row has a value."""
    return [pa.field(name, kind, nullable=False) for name in names]


def optional(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Returns columns whose values may be null."""
    return [pa.field(name, kind) for name in names]


# trials.parquet and rounds.parquet: a row for each trial, and one for each job of each round, of the journal.

# trials.parquet: load, counts, health and verdict of each trial, for other programs.


_COUNTS = (
    "intended", "sent", "unsent_tester", "unsent_backpressure", "received", "lost", "late", "duplicated", "reordered",
    "corrupted", "corrupted_copies", "unattributed", "corrupted_unattributed", "foreign", "misdirected",
    "stale",
)  # fmt: skip
_ALWAYS_KNOWN = frozenset({"intended", "sent", "unsent_tester", "unsent_backpressure"})
_FATES = ("received", "lost", "loss_ratio")
"""Null where it is not known what became of any frame."""
_TRIAL_PERCENTILES = {"50": "p50", "99": "p99", "99.9": "p99_9", "99.99": "p99_99", "99.999": "p99_999"}

TRIAL_SCHEMA = pa.schema(
    [
        *known(TEXT, "id", "key", "test", "configuration"),
        *known(WHOLE, "run"),
        *known(FLAG, "warm_up"),
        *known(TEXT, "parameters_json"),
        *known(WHOLE, "repeat"),
        *known(TEXT, "purpose"),
        *optional(NUMBER, "at_s"),
        *optional(WHOLE, "frame_bytes"),  # null: a mix
        *optional(TEXT, "mix"),
        *optional(NUMBER, "load_frames_per_s_per_port"),  # null: as fast as the ports take frames
        *known(FLAG, "bidirectional"),
        *known(NUMBER, "duration_s", "drain_s", "settle_s"),
        *known(WHOLE, "transmit_ns"),
        *optional(WHOLE, "sending_ns", "sent_while_sending"),
        *(pa.field(name, pa.int64(), nullable=name not in _ALWAYS_KNOWN) for name in _COUNTS),
        *optional(WHOLE, "uncounted"),  # sent beside these; null: nothing
        *optional(NUMBER, "loss_ratio"),
        *optional(WHOLE, "unexplained", "longest_gap_ns", "total_gap_ns"),
        *optional(NUMBER, "core_clock_before_hz", "core_clock_after_hz"),
        *optional(TEXT, "latency_source", "latency_received_by"),
        *optional(NUMBER, "latency_uncertainty_ns"),
        *optional(WHOLE, "latency_negative_frames"),
        *optional(WHOLE, "latency_sample_of_frames"),  # null: every frame was timed
        *optional(WHOLE, "latency_minimum_ns"),
        *optional(NUMBER, "latency_mean_ns"),
        *optional(WHOLE, *(f"latency_{name}_ns" for name in _TRIAL_PERCENTILES.values())),
        *optional(WHOLE, "latency_maximum_ns"),
        *known(FLAG, "valid"),
        *known(TEXTS, "reasons", "findings"),
    ]
)


def trials_parquet(trials: Iterable[Trial]) -> bytes:
    """Makes the table of trials as the bytes of a parquet file."""
    table = pa.Table.from_pylist([_row(trial) for trial in trials], schema=TRIAL_SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _row(trial: Trial) -> dict[str, Any]:
    reading, request, health = trial.reading, trial.request, trial.reading.health
    clock_before, clock_after = health.core_clock_hz or (None, None)
    row: dict[str, Any] = {
        "id": trial.id,
        "key": trial.key,
        "test": trial.test,
        "configuration": trial.configuration,
        "run": trial.run,
        "warm_up": trial.warm_up,
        "parameters_json": json_text(trial.parameters, indent=None),
        "repeat": trial.repeat,
        "purpose": request.purpose.value,
        "at_s": trial.at_s,
        "frame_bytes": None if request.mix else int(request.frame_bytes),
        "mix": request.mix.name if request.mix else None,
        "load_frames_per_s_per_port": request.load_frames_per_s,
        "bidirectional": request.bidirectional,
        "duration_s": request.duration_s,
        "drain_s": request.drain_s,
        "settle_s": request.settle_s,
        "transmit_ns": reading.transmit_ns,
        "sending_ns": reading.sending_ns,
        "sent_while_sending": reading.sent_while_sending,
        "loss_ratio": reading.counts.loss_ratio,
        "unexplained": reading.unexplained,
        "longest_gap_ns": health.longest_gap_ns,
        "total_gap_ns": health.total_gap_ns,
        "core_clock_before_hz": clock_before,
        "core_clock_after_hz": clock_after,
        "valid": trial.verdict.valid,
        "reasons": [reason.value for reason in trial.verdict.reasons],
        "findings": list(trial.verdict.texts),
    }
    row.update({name: getattr(reading.counts, name) for name in _COUNTS})
    if reading.uncounted is not None:
        row.update({} if reading.is_counted else dict.fromkeys(_FATES), uncounted=reading.uncounted.sent)
    if reading.latency is not None:
        row.update(
            latency_source=reading.latency.source,
            latency_received_by=reading.latency.received_by,
            latency_uncertainty_ns=reading.latency.uncertainty_ns,
            latency_negative_frames=reading.latency.negative,
            latency_sample_of_frames=reading.latency.sample_of,
            latency_minimum_ns=reading.latency.minimum_ns,
            latency_mean_ns=reading.latency.mean_ns,
            latency_maximum_ns=reading.latency.maximum_ns,
        )
        for percentile, name in _TRIAL_PERCENTILES.items():
            row[f"latency_{name}_ns"] = reading.latency.percentiles_ns.get(percentile)
    return row


# rounds.parquet: request and figures of each job of each round, for other programs. Figures are those that the tools
# printed, of payload. ``forward`` is from the client to the server. Null is unknown or does not apply. Interface
# counters, bonds and CPUs are of the whole round, and are in each of its rows as JSON.


_OF_FLOW = (
    ("sent_bytes", WHOLE), ("received_bytes", WHOLE), ("sent_bits_per_s", NUMBER),
    ("received_bits_per_s", NUMBER), ("duration_s", NUMBER), ("retransmissions", WHOLE),
    ("datagrams", WHOLE), ("lost_datagrams", WHOLE), ("jitter_s", NUMBER),
)  # fmt: skip
_WAYS = ("forward", "reverse")
_OF_LATENCY = ("count", "minimum_ns", "mean_ns", "maximum_ns", "stdev_ns")
_OF_FRAMES = (
    ("engine", TEXT), ("frames_per_s", NUMBER), ("bytes_per_s", NUMBER), ("frames", WHOLE),
    ("dropped_frames", WHOLE), ("due_frames", WHOLE), ("completion_p50_ns", WHOLE),
    ("completion_p99_ns", WHOLE), ("completion_maximum_ns", WHOLE),
)  # fmt: skip
_ROUND_PERCENTILES = {"50": "p50", "99": "p99", "99.9": "p99_9", "99.99": "p99_99"}

ROUND_SCHEMA = pa.schema(
    [
        *known(TEXT, "round", "key", "test", "configuration"),
        *known(WHOLE, "run"),
        *known(FLAG, "warm_up"),
        *known(TEXT, "parameters_json"),
        *known(WHOLE, "repeat"),
        *optional(NUMBER, "at_s"),
        *known(FLAG, "valid"),
        *known(TEXTS, "reasons", "findings"),
        *known(WHOLE, "job"),  # its place in the round, from 1
        *known(TEXT, "role", "workload"),
        *optional(TEXT, "version", "server_version"),
        *known(TEXT, "client"),
        *optional(TEXT, "server"),
        *known(TEXT, "operation", "transport", "direction"),
        *optional(NUMBER, "asked_duration_s"),
        *optional(WHOLE, "asked_bytes", "write_bytes"),
        *known(WHOLE, "streams"),
        *known(TEXT, "ask_json"),
        *optional(TEXT, "failure"),
        *optional(NUMBER, "began_s", "took_s"),
        *(pa.field(f"{way}_{name}", kind) for way in _WAYS for name, kind in _OF_FLOW),
        *optional(NUMBER, "transactions_per_s"),
        *(pa.field(name, kind) for name, kind in _OF_FRAMES),
        *optional(NUMBER, "memory_bytes_per_s", "client_cpu_share", "server_cpu_share"),
        *optional(TEXT, "congestion_control"),
        *optional(WHOLE, "mss_bytes"),
        *optional(TEXT, "latency_basis"),
        *optional(NUMBER, *(f"latency_{name}" for name in _OF_LATENCY)),
        *optional(NUMBER, *(f"latency_{name}_ns" for name in _ROUND_PERCENTILES.values())),
        *known(TEXT, "client_command", "server_command"),
        *known(TEXTS, "reading"),
        *known(TEXT, "cpu_json", "counters_json", "bonds_json"),
    ]
)


def rounds_parquet(rounds: Iterable[Round]) -> bytes:
    """Makes the table of jobs as the bytes of a parquet file."""
    table = pa.Table.from_pylist([row for one in rounds for row in _rows(one)], schema=ROUND_SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _rows(one: Round) -> Iterator[dict[str, Any]]:
    shared: dict[str, Any] = {
        "round": one.id,
        "key": one.key,
        "test": one.test,
        "configuration": one.configuration,
        "run": one.run,
        "warm_up": one.warm_up,
        "parameters_json": json_text(one.parameters, indent=None),
        "repeat": one.repeat,
        "at_s": one.at_s,
        "valid": one.verdict.valid,
        "reasons": [reason.value for reason in one.verdict.reasons],
        "findings": list(one.verdict.texts),
        "cpu_json": json_text([cpu.model_dump(mode="json") for cpu in one.cpu], indent=None),
        "counters_json": json_text(one.counters, indent=None),
        "bonds_json": json_text([seen.model_dump(mode="json") for seen in one.bonds], indent=None),
    }
    for number, (job, outcome) in enumerate(zip(one.request.jobs, one.outcomes, strict=True), 1):
        yield {**shared, "job": number, **_of_job(job), **_of_outcome(outcome)}


def _of_job(job: Job) -> dict[str, Any]:
    ask = job.ask
    return {
        "role": job.role,
        "workload": job.workload,
        "client": job.client,
        "server": job.server,
        "operation": ask.operation,
        "transport": ask.transport,
        "direction": ask.direction,
        "asked_duration_s": ask.duration_s,
        "asked_bytes": ask.total_bytes,
        "write_bytes": ask.write_bytes,
        "streams": ask.streams,
        "ask_json": json_text(ask, indent=None),
    }


def _of_outcome(outcome: JobOutcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "version": outcome.version,
        "server_version": outcome.server_version,
        "failure": outcome.failure,
        "began_s": outcome.began_s,
        "took_s": outcome.took_s,
        "client_command": shlex.join(outcome.client_command),
        "server_command": shlex.join(outcome.server_command),
        "files": list(outcome.files),
    }
    figures = outcome.figures
    if figures is None:
        return found
    for flow in figures.flows:
        found |= _of_flow(flow)
    names = ("transactions_per_s", "memory_bytes_per_s", "client_cpu_share", "server_cpu_share")
    found |= {name: getattr(figures, name) for name in (*names, "congestion_control", "mss_bytes")}
    if figures.frames is not None:
        found |= _of_frames(figures.frames)
    if figures.latency is not None:
        found["latency_basis"] = figures.latency.basis
        found |= {f"latency_{name}": getattr(figures.latency, name) for name in _OF_LATENCY}
        known = figures.latency.percentiles_ns
        found |= {f"latency_{name}_ns": known.get(percentile) for percentile, name in _ROUND_PERCENTILES.items()}
    return found


def _of_frames(figures: FrameFigures) -> dict[str, Any]:
    """Makes the cells of frame figures; a percentile for which there are too few frames is null."""
    names = ("engine", "frames_per_s", "bytes_per_s", "frames", "dropped_frames", "due_frames")
    found = {name: getattr(figures, name) for name in names}
    times = figures.completion
    if times is None:
        return found
    known = percentiles_ns(times.histogram, maximum_ns=times.maximum_ns)
    told = {f"completion_p{name}_ns": known.get(name) for name in ("50", "99")}
    return {**found, **told, "completion_maximum_ns": times.maximum_ns}


def _of_flow(flow: Flow) -> dict[str, Any]:
    return {f"{flow.direction}_{name}": getattr(flow, name) for name, _ in _OF_FLOW}


# Reads Parquet files of a run folder within bounds: a file of a few bytes can stand for more than any memory holds.
# A file stores repeated values once, with a count. So rows and values are counted before they are read, and words are
# read as dictionaries, measured, and only then expanded.


@frozen
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
        with files.open_file(path) as stream:
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
    import pyarrow.compute as pc  # imported here, as in monitor_samples

    lengths = pc.binary_length(column.dictionary)
    if (pc.max(lengths).as_py() or 0) > _LONGEST_WORD_BYTES:
        raise ValueError(f"a text in it is longer than {_LONGEST_WORD_BYTES // 2**20} MiB")
    return pc.sum(pc.cast(pc.take(lengths, column.indices), WHOLE)).as_py() or 0
