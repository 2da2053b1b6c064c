"""Translates the engine's replies into a ``Reading``, with percentiles from the histograms. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from nicbench.core.base import Frozen
from nicbench.core.errors import EngineError
from nicbench.core.reading import (
    Arrivals,
    Capture,
    Counts,
    FlowGroup,
    FlowReport,
    Flows,
    Intervals,
    Reordering,
    Stamps,
    Times,
    TrafficClasses,
    TransmitDelay,
    TransmitGaps,
    Variation,
    sum_of_known,
)
from nicbench.core.trial import (
    CpuTime,
    Health,
    Latency,
    Looks,
    PortReading,
    Reading,
    SharedCore,
    StreamReading,
    WorkerHealth,
    require_identities,
)
from nicbench.stats.latency import add_percentiles, merge

# The receiver's part of a reading, of which older engines leave parts out.


RAW = "raw"
_COUNTED_BY_PORTS = ("foreign", "misdirected", "stale", "corrupted_unattributed")
"""The folder inside the run folder that holds files written by the engine."""


def parse_received(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``StreamReading`` that the receiver measures."""
    reordering, variation, intervals = raw.get("reordering"), raw.get("variation"), raw.get("intervals")
    return {
        "checked_bytes": raw.get("checked_bytes"),
        "reordering": Reordering(**_present_fields(Reordering, reordering)) if reordering else None,
        "variation": Variation(**_present_fields(Variation, variation)) if variation else None,
        "intervals": Intervals(**_present_fields(Intervals, intervals)) if intervals else None,
        "arrivals": Arrivals(**_present_fields(Arrivals, raw["arrivals"])) if raw.get("arrivals") else None,
        "last_jump_ns": raw.get("last_jump_ns"),
        "groups": tuple(FlowGroup(**_present_fields(FlowGroup, group)) for group in raw.get("groups") or ()),
        "flows": Flows(**_present_fields(Flows, raw["flows"])) if raw.get("flows") else None,
        "traffic_classes": TrafficClasses(**_present_fields(TrafficClasses, classes))
        if (classes := raw.get("traffic_classes"))
        else None,
    }


def parse_recorded(drain: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of ``Reading`` about files that the engine wrote, with their names in the run folder."""
    capture, flows = drain.get("capture"), drain.get("flow_report")
    return {
        "capture": Capture(name=_path_in_run_folder(capture), **_present_fields(Capture, capture)) if capture else None,
        "flow_report": FlowReport(name=_path_in_run_folder(flows), **_present_fields(FlowReport, flows))
        if flows
        else None,
    }


def _present_fields(kind: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the model that are present. A newer engine may send more: those are left out."""
    return {name: raw[name] for name in kind.model_fields if name in raw}


def _path_in_run_folder(raw: Mapping[str, Any]) -> str:
    return f"{RAW}/{PurePosixPath(raw['path']).name}"


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
    """Translates the reply to ``drain`` and the ``late`` counts of ``settle``, one per stream, into a ``Reading``.

    A frame that came after the drain is late, not lost (protocol, "Meanings"), so it is taken off ``lost`` here.
    EngineError if the replies do not form a reading.
    """
    try:
        return _reading(drain, late)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _inconsistent(error) from error


def require_consistent(reading: Reading, *, into_sink: bool = False) -> Reading:
    """Returns the reading of a tester. EngineError where its counts contradict themselves."""
    try:
        require_identities(reading, into_sink=into_sink)
    except ValueError as error:
        raise _inconsistent(error) from error
    return reading


def _inconsistent(error: Exception) -> EngineError:
    why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    step = "build engine and controller from the same source (`make install`), or update the tester"
    return EngineError(f"the tester's counts are inconsistent: {why}", kind="protocol", next_step=step)


def _reading(drain: Mapping[str, Any], late: Sequence[int]) -> Reading:
    streams = tuple(_stream(raw, count) for raw, count in zip(drain["streams"], late, strict=True))
    ports = tuple(
        PortReading(
            name=raw["name"],
            arrived=raw.get("arrived"),
            foreign=raw["foreign"],
            misdirected=raw["misdirected"],
            stale=raw.get("stale"),
            corrupted_unattributed=raw["corrupted_unattributed"],
            receive_overrun=raw["receive_overrun"],
            counters=raw.get("counters", {}),
            link_changed=bool(raw.get("link_changed", False)),
            timestamps=_stamps(raw["timestamps"]) if raw.get("timestamps") else None,
        )
        for raw in drain["ports"]
    )
    of_ports: dict[str, Any] = {name: sum_of_known(getattr(port, name) for port in ports) for name in _COUNTED_BY_PORTS}
    total = Counts.sum_of(stream.counts for stream in streams).replace(**of_ports)
    return Reading(
        transmit_ns=drain["transmit_ns"],
        sending_ns=drain.get("sending_ns"),
        sent_while_sending=drain.get("sent_while_sending"),
        counts=total,
        streams=streams,
        ports=ports,
        latency=merge([stream.latency for stream in streams if stream.latency]),
        health=parse_health(drain["health"]),
        **parse_recorded(drain),
    )


def set_aside(reading: Reading, names: Collection[str]) -> Reading:
    """Returns the reading with these streams kept apart from its counts."""
    kept = tuple(stream for stream in reading.streams if stream.name not in names)
    of_ports = {name: getattr(reading.counts, name) for name in _COUNTED_BY_PORTS}
    return reading.replace(
        streams=kept,
        beside=tuple(stream for stream in reading.streams if stream.name in names),
        counts=Counts.sum_of(stream.counts for stream in kept).replace(**of_ports),
        latency=merge([stream.latency for stream in kept if stream.latency]),
    )


def _stream(raw: Mapping[str, Any], late: int) -> StreamReading:
    counts = {name: raw[name] for name in _STREAM_COUNTS}
    counts["lost"] = max(0, raw["lost"] - late)
    # Where more came late than was lost, frames of others stood in the place of those that were still under way; where
    # still more did, they left the port after its counters were read.
    unattributed, beyond = raw.get("unattributed"), max(0, late - raw["lost"])
    counts["unattributed"] = None if unattributed is None else max(0, unattributed - beyond)
    sent_since = min(counts["unsent_tester"], max(0, beyond - (unattributed or 0)))
    counts["sent"] += sent_since
    counts["unsent_tester"] -= sent_since
    counts["corrupted_copies"] = raw.get("corrupted_copies")
    return StreamReading(
        name=raw["name"],
        counts=Counts(**counts, late=raw.get("late", 0) + late),
        maximum_burst=raw.get("maximum_burst"),
        transmit_gaps=_gaps(raw),
        latency=_latency(raw["latency"]) if raw.get("latency") else None,
        **parse_received(raw),
    )


def _gaps(raw: Mapping[str, Any]) -> TransmitGaps | None:
    own, late, errors = (
        _present_fields(Times, raw[name]) if raw.get(name) else None
        for name in ("transmit_gaps", "lateness", "gap_errors")
    )
    return (
        None if own is None else TransmitGaps(**own, lateness=late and Times(**late), errors=errors and Times(**errors))
    )


def _latency(raw: Mapping[str, Any]) -> Latency:
    shared = raw.get("shared_core")
    return add_percentiles(
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
            shared_core=SharedCore(**_fields_or_none(SharedCore, shared))
            if (shared := raw.get("shared_core"))
            else None,
        )
    )


def _stamps(raw: Mapping[str, Any]) -> Stamps:
    delay = raw.get("transmit_delay")
    return Stamps(
        **{
            **_fields_or_none(Stamps, raw),
            "transmit_delay": TransmitDelay(**_fields_or_none(TransmitDelay, delay)) if delay else None,
        }
    )


def parse_health(raw: Mapping[str, Any]) -> Health:
    """How the engine's loop and machine fared; what a reply leaves out is unknown."""
    known = {name: raw.get(name) for name in Health.model_fields if name not in ("cpus", "core_clock_hz", "workers")}
    clock = raw.get("core_clock_hz")
    cpus = tuple(_cpu_time(row) for row in raw.get("cpus") or ())
    workers = tuple(WorkerHealth(**_fields_or_none(WorkerHealth, row)) for row in raw.get("workers") or ())
    return Health(**known, core_clock_hz=tuple(clock) if clock else None, cpus=cpus, workers=workers)


def _cpu_time(raw: Mapping[str, Any]) -> CpuTime:
    looks = Looks(**_fields_or_none(Looks, raw["looks"])) if raw.get("looks") else None
    return CpuTime(**{**_fields_or_none(CpuTime, raw), "looks": looks})


def _fields_or_none(model: type[Frozen], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the model; None for one that is missing. A newer engine may send more: those are left out."""
    return {name: raw.get(name) for name in model.model_fields}
