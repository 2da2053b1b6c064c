"""Computes a trial's figures by port, by way between ports, and in all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicbench.core.headers import UNICAST
from nicbench.core.pattern import Way, way_of_stream
from nicbench.core.reading import Counts, PassedFrames, PortFigures, PortFrames, WayFrames
from nicbench.core.trial import Latency, StreamReading, Trial
from nicbench.stats.latency import merge


def find_telling_trial(trials: Sequence[Trial]) -> Trial | None:
    """Returns the trial at the highest load without a failed frame; else the one with the least loss."""
    if not trials:
        return None
    return min(trials, key=lambda trial: (trial.reading.counts.loss_ratio, -(trial.request.sent_frames_per_s or 0.0)))


def port_figures(trial: Trial) -> PortFigures | None:
    """Computes the figures of each port; None where stream names do not say which ports they run between."""
    reading = trial.reading
    by_way: dict[Way, list[StreamReading]] = {}
    for stream in reading.streams:
        way = way_of_stream(stream.name)
        if way is None or max(way) >= len(reading.ports):
            return None
        by_way.setdefault(way, []).append(stream)
    names = [port.name for port in reading.ports]
    offered = _offered_by_port(trial, by_way)
    ways = {way: _way_figures(way, streams, names, trial.offering_ns) for way, streams in by_way.items()}
    return PortFigures(
        trial=trial.id,
        load_frames_per_s=trial.request.sent_frames_per_s,
        ways=tuple(ways.values()),
        ports=tuple(
            _port_figures(number, ways, offered.get(number, 0), trial)
            for number in range(len(names))
            if any(number in way for way in ways)
        ),
        combined=PassedFrames(
            **_count_fields(reading.counts, reading.latency, trial.offering_ns, sum(offered.values()))
        ),
    )


def _offered_by_port(trial: Trial, by_way: Mapping[Way, Sequence[StreamReading]]) -> dict[int, int]:
    """Returns the frames that each port offered; those to groups once, though they are expected at several ports."""
    found: dict[int, int] = {}
    of_groups: dict[int, int] = {}
    for (transmit, _), streams in by_way.items():
        for stream in streams:
            offered = stream.counts.offered
            if trial.request.groups is not None and not stream.name.endswith(UNICAST):
                of_groups[transmit] = max(of_groups.get(transmit, 0), offered)
            else:
                found[transmit] = found.get(transmit, 0) + offered
    return {port: found.get(port, 0) + of_groups.get(port, 0) for port in (*found, *of_groups)}


def _way_figures(way: Way, streams: Sequence[StreamReading], names: Sequence[str], offering_ns: int) -> WayFrames:
    counts = Counts.sum_of(stream.counts for stream in streams)
    latency = merge([stream.latency for stream in streams if stream.latency])
    transmit, receive = way
    return WayFrames(
        transmit_port=names[transmit],
        receive_port=names[receive],
        **_count_fields(counts, latency, offering_ns),
    )


def _port_figures(number: int, ways: dict[Way, WayFrames], offered: int, trial: Trial) -> PortFrames:
    port = trial.reading.ports[number]
    gets = [passed for (_, receive), passed in ways.items() if receive == number]
    received = sum(passed.received_frames for passed in gets)
    return PortFrames(
        port=port.name,
        offered_frames=offered,
        expected_frames=sum(passed.offered_frames for passed in gets),
        received_frames=received,
        offered_frames_per_s=_rate(offered, trial.offering_ns),
        received_frames_per_s=_rate(received, trial.offering_ns),
        foreign_frames=port.foreign,
        misdirected_frames=port.misdirected,
    )


def _count_fields(
    counts: Counts, latency: Latency | None, offering_ns: int, offered: int | None = None
) -> dict[str, Any]:
    """Returns the fields; ``offered`` where it is not what ``counts`` say, as these count the copies of a frame."""
    offered = counts.offered if offered is None else offered
    timed = {}
    if latency is not None:
        timed = {
            "latency_minimum_ns": latency.minimum_ns,
            "latency_mean_ns": latency.mean_ns,
            "latency_p50_ns": latency.percentiles_ns.get("50"),
            "latency_p99_ns": latency.percentiles_ns.get("99"),
            "latency_maximum_ns": latency.maximum_ns,
        }
    return {
        "offered_frames": offered,
        "received_frames": counts.received,
        "lost_frames": counts.lost,
        "failed_frames": counts.failed,
        "loss_ratio": counts.loss_ratio,
        "offered_frames_per_s": _rate(offered, offering_ns),
        "received_frames_per_s": _rate(counts.received, offering_ns),
        **timed,
    }


def _rate(frames: int, offering_ns: int) -> float:
    return frames * 1e9 / max(1, offering_ns)
