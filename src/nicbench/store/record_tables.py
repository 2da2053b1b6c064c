"""trials.parquet and rounds.parquet: a row for each trial, and one for each job of each round, of the journal."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.core.round import Flow, FrameFigures, Job, JobOutcome, Round
from nicbench.core.trial import Trial
from nicbench.stats.latency import percentiles_ns
from nicbench.store.files import json_text

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
        pa.field("id", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("test", pa.string(), nullable=False),
        pa.field("configuration", pa.string(), nullable=False),
        pa.field("run", pa.int64(), nullable=False),
        pa.field("warm_up", pa.bool_(), nullable=False),
        pa.field("parameters_json", pa.string(), nullable=False),
        pa.field("repeat", pa.int64(), nullable=False),
        pa.field("purpose", pa.string(), nullable=False),
        pa.field("at_s", pa.float64()),
        pa.field("frame_bytes", pa.int64()),  # null: a mix
        pa.field("mix", pa.string()),
        pa.field("load_frames_per_s_per_port", pa.float64()),  # null: as fast as the ports take frames
        pa.field("bidirectional", pa.bool_(), nullable=False),
        pa.field("duration_s", pa.float64(), nullable=False),
        pa.field("drain_s", pa.float64(), nullable=False),
        pa.field("settle_s", pa.float64(), nullable=False),
        pa.field("transmit_ns", pa.int64(), nullable=False),
        pa.field("sending_ns", pa.int64()),
        pa.field("sent_while_sending", pa.int64()),
        *(pa.field(name, pa.int64(), nullable=name not in _ALWAYS_KNOWN) for name in _COUNTS),
        pa.field("uncounted", pa.int64()),  # sent beside these; null: nothing
        pa.field("loss_ratio", pa.float64()),
        pa.field("unexplained", pa.int64()),
        pa.field("longest_gap_ns", pa.int64()),
        pa.field("total_gap_ns", pa.int64()),
        pa.field("core_clock_before_hz", pa.float64()),
        pa.field("core_clock_after_hz", pa.float64()),
        pa.field("latency_source", pa.string()),
        pa.field("latency_received_by", pa.string()),
        pa.field("latency_uncertainty_ns", pa.float64()),
        pa.field("latency_negative_frames", pa.int64()),
        pa.field("latency_sample_of_frames", pa.int64()),  # null: every frame was timed
        pa.field("latency_minimum_ns", pa.int64()),
        pa.field("latency_mean_ns", pa.float64()),
        *(pa.field(f"latency_{name}_ns", pa.int64()) for name in _TRIAL_PERCENTILES.values()),
        pa.field("latency_maximum_ns", pa.int64()),
        pa.field("valid", pa.bool_(), nullable=False),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
        pa.field("findings", pa.list_(pa.string()), nullable=False),
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
        "findings": [finding.text for finding in trial.verdict.findings],
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
    ("sent_bytes", pa.int64()), ("received_bytes", pa.int64()), ("sent_bits_per_s", pa.float64()),
    ("received_bits_per_s", pa.float64()), ("duration_s", pa.float64()), ("retransmissions", pa.int64()),
    ("datagrams", pa.int64()), ("lost_datagrams", pa.int64()), ("jitter_s", pa.float64()),
)  # fmt: skip
_WAYS = ("forward", "reverse")
_OF_LATENCY = ("count", "minimum_ns", "mean_ns", "maximum_ns", "stdev_ns")
_OF_FRAMES = (
    ("engine", pa.string()), ("frames_per_s", pa.float64()), ("bytes_per_s", pa.float64()), ("frames", pa.int64()),
    ("dropped_frames", pa.int64()), ("due_frames", pa.int64()), ("completion_p50_ns", pa.int64()),
    ("completion_p99_ns", pa.int64()), ("completion_maximum_ns", pa.int64()),
)  # fmt: skip
_ROUND_PERCENTILES = {"50": "p50", "99": "p99", "99.9": "p99_9", "99.99": "p99_99"}

ROUND_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("round", "key", "test", "configuration")),
        pa.field("run", pa.int64(), nullable=False),
        pa.field("warm_up", pa.bool_(), nullable=False),
        pa.field("parameters_json", pa.string(), nullable=False),
        pa.field("repeat", pa.int64(), nullable=False),
        pa.field("at_s", pa.float64()),
        pa.field("valid", pa.bool_(), nullable=False),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
        pa.field("findings", pa.list_(pa.string()), nullable=False),
        pa.field("job", pa.int64(), nullable=False),  # its place in the round, from 1
        pa.field("role", pa.string(), nullable=False),
        pa.field("workload", pa.string(), nullable=False),
        pa.field("version", pa.string()),
        pa.field("server_version", pa.string()),
        pa.field("client", pa.string(), nullable=False),
        pa.field("server", pa.string()),
        *(pa.field(name, pa.string(), nullable=False) for name in ("operation", "transport", "direction")),
        pa.field("asked_duration_s", pa.float64()),
        pa.field("asked_bytes", pa.int64()),
        pa.field("write_bytes", pa.int64()),
        pa.field("streams", pa.int64(), nullable=False),
        pa.field("ask_json", pa.string(), nullable=False),
        pa.field("failure", pa.string()),
        pa.field("began_s", pa.float64()),
        pa.field("took_s", pa.float64()),
        *(pa.field(f"{way}_{name}", kind) for way in _WAYS for name, kind in _OF_FLOW),
        pa.field("transactions_per_s", pa.float64()),
        *(pa.field(name, kind) for name, kind in _OF_FRAMES),
        pa.field("memory_bytes_per_s", pa.float64()),
        pa.field("client_cpu_share", pa.float64()),
        pa.field("server_cpu_share", pa.float64()),
        pa.field("congestion_control", pa.string()),
        pa.field("mss_bytes", pa.int64()),
        pa.field("latency_basis", pa.string()),
        *(pa.field(f"latency_{name}", pa.float64()) for name in _OF_LATENCY),
        *(pa.field(f"latency_{name}_ns", pa.float64()) for name in _ROUND_PERCENTILES.values()),
        pa.field("client_command", pa.string(), nullable=False),
        pa.field("server_command", pa.string(), nullable=False),
        pa.field("files", pa.list_(pa.string()), nullable=False),
        pa.field("cpu_json", pa.string(), nullable=False),
        pa.field("counters_json", pa.string(), nullable=False),
        pa.field("bonds_json", pa.string(), nullable=False),
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
        "findings": [finding.text for finding in one.verdict.findings],
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
