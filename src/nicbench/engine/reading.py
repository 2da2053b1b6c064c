"""The engine's reading as ``Reading``: a pure translation, with the percentiles taken from the histograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicbench.engine.received import received, recorded
from nicbench.model.base import Frozen
from nicbench.model.counts import Counts
from nicbench.model.stamps import Stamps, TransmitDelay
from nicbench.model.trial import (
    CpuTime,
    Health,
    Latency,
    PortReading,
    Reading,
    StreamReading,
    TransmitGaps,
    WorkerHealth,
)
from nicbench.stats.latency import merge, with_percentiles

_STREAM_COUNTS = (
    "intended",
    "sent",
    "unsent_tester",
    "unsent_backpressure",
    "received",
    "lost",
    "duplicated",
    "reordered",
    "corrupted",
)


def parse_reading(drain: Mapping[str, Any], late: Sequence[int]) -> Reading:
    """The reply to ``drain`` and the ``late`` counts of ``settle``, one per stream.

    A frame that came after the drain is late, not lost (protocol, "Meanings"), so it is taken off ``lost`` here.
    """
    streams = tuple(_stream(raw, count) for raw, count in zip(drain["streams"], late, strict=True))
    ports = tuple(
        PortReading(
            name=raw["name"],
            foreign=raw["foreign"],
            corrupted_unattributed=raw["corrupted_unattributed"],
            receive_overrun=raw["receive_overrun"],
            counters=raw.get("counters", {}),
            link_changed=bool(raw.get("link_changed", False)),
            timestamps=_stamps(raw["timestamps"]) if raw.get("timestamps") else None,
        )
        for raw in drain["ports"]
    )
    total = Counts.sum_of(stream.counts for stream in streams).model_copy(
        update={
            "foreign": sum(raw["foreign"] for raw in drain["ports"]),
            "corrupted_unattributed": sum(raw["corrupted_unattributed"] for raw in drain["ports"]),
        }
    )
    return Reading(
        transmit_ns=drain["transmit_ns"],
        sending_ns=drain.get("sending_ns"),
        sent_while_sending=drain.get("sent_while_sending"),
        counts=total,
        streams=streams,
        ports=ports,
        latency=merge([stream.latency for stream in streams if stream.latency]),
        health=_health(drain["health"]),
        **recorded(drain),
    )


def _stream(raw: Mapping[str, Any], late: int) -> StreamReading:
    counts = {name: raw[name] for name in _STREAM_COUNTS}
    counts["lost"] = max(0, raw["lost"] - late)
    counts["unattributed"] = raw.get("unattributed", 0)
    return StreamReading(
        name=raw["name"],
        counts=Counts(**counts, late=raw.get("late", 0) + late),
        maximum_burst=raw.get("maximum_burst"),
        transmit_gaps=TransmitGaps(**_known(TransmitGaps, raw["transmit_gaps"])) if raw.get("transmit_gaps") else None,
        latency=_latency(raw["latency"]) if raw.get("latency") else None,
        **received(raw),
    )


def _latency(raw: Mapping[str, Any]) -> Latency:
    return with_percentiles(
        Latency(
            source=raw["source"],
            received_by=raw.get("received_by", "tsc"),
            resolution_ns=raw.get("resolution_ns"),
            uncertainty_ns=raw.get("uncertainty_ns"),
            negative=raw.get("negative", 0),
            negative_maximum_ns=raw.get("negative_maximum_ns", 0),
            count=raw["count"],
            minimum_ns=raw["minimum_ns"],
            mean_ns=raw["mean_ns"],
            maximum_ns=raw["maximum_ns"],
            histogram=raw["histogram"],
        )
    )


def _stamps(raw: Mapping[str, Any]) -> Stamps:
    delay = raw.get("transmit_delay")
    return Stamps(
        **{**_known(Stamps, raw), "transmit_delay": TransmitDelay(**_known(TransmitDelay, delay)) if delay else None}
    )


def _health(raw: Mapping[str, Any]) -> Health:
    known = {name: raw.get(name) for name in Health.model_fields if name not in ("cpus", "core_clock_hz", "workers")}
    clock = raw.get("core_clock_hz")
    cpus = tuple(CpuTime(**{name: row.get(name) for name in CpuTime.model_fields}) for row in raw.get("cpus") or ())
    workers = tuple(WorkerHealth(**_known(WorkerHealth, row)) for row in raw.get("workers") or ())
    return Health(**known, core_clock_hz=tuple(clock) if clock else None, cpus=cpus, workers=workers)


def _known(model: type[Frozen], raw: Mapping[str, Any]) -> dict[str, Any]:
    """What the model has a field for: a newer engine may say more."""
    return {name: raw.get(name) for name in model.model_fields}
