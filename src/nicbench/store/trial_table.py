"""trials.parquet: one row for each trial of the journal, with load, counts, health and verdict, for other programs."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nicbench.model.trial import Trial
from nicbench.store.files import json_text

_COUNTS = (
    "intended", "sent", "unsent_tester", "unsent_backpressure", "received", "lost", "late", "duplicated", "reordered",
    "corrupted", "unattributed", "corrupted_unattributed", "foreign",
)  # fmt: skip
_ALWAYS_KNOWN = frozenset({"intended", "sent", "unsent_tester", "unsent_backpressure", "received", "lost"})
_PERCENTILES = {"50": "p50", "99": "p99", "99.9": "p99_9", "99.99": "p99_99", "99.999": "p99_999"}

_SCHEMA = pa.schema(
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
        pa.field("loss_ratio", pa.float64(), nullable=False),
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
        *(pa.field(f"latency_{name}_ns", pa.int64()) for name in _PERCENTILES.values()),
        pa.field("latency_maximum_ns", pa.int64()),
        pa.field("valid", pa.bool_(), nullable=False),
        pa.field("reasons", pa.list_(pa.string()), nullable=False),
        pa.field("findings", pa.list_(pa.string()), nullable=False),
    ]
)


def parquet(trials: Iterable[Trial]) -> bytes:
    """The table as the bytes of a parquet file."""
    table = pa.Table.from_pylist([_row(trial) for trial in trials], schema=_SCHEMA)
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
        for percentile, name in _PERCENTILES.items():
            row[f"latency_{name}_ns"] = reading.latency.percentiles_ns.get(percentile)
    return row
