"""What came of a service in a trial, each direction by itself, and what follows from it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.core.frame_size import mean_bytes
from nicbench.core.pattern import way_of_stream
from nicbench.core.reading import Intervals
from nicbench.core.result import Bounded
from nicbench.core.traffic import StreamLoad
from nicbench.core.trial import StreamReading, Trial
from nicbench.core.units import l2_bits_per_s
from nicbench.methods._results import Values
from nicbench.methods.services._service import Service

SEVERELY_ERRORED_LOSS: Final = 0.5
"""A second in which more than this share of the frames is lost is severely errored (ITU-T Y.1563)."""
UNAVAILABLE_AFTER: Final = 10
"""So many consecutive severely errored seconds begin unavailable time, so many others end it (ITU-T Y.1563)."""
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a service in one direction. ``committed`` figures are of its own stream, rates of both.

    Rates are those of layer 2, known as exactly as the time in which the frames were sent: ``uncertainty`` is a share.
    None is unknown.
    """

    loss_ratio: float | None
    delay_ns: float | None
    delay_variation_ns: int | None
    committed_bits_per_s: float
    bits_per_s: float
    duration_s: float
    uncertainty: float
    sent_frames: int = 0
    received_frames: int = 0
    availability: float | None = None


def ways_of_trial(trial: Trial) -> list[tuple[dict[str, str], list[StreamReading]]]:
    """Returns the streams of each way, with its name where there are several."""
    ways: dict[str, list[StreamReading]] = {}
    for stream in trial.reading.streams:
        ways.setdefault(stream.name.partition(" ")[0], []).append(stream)
    named = []
    for name, streams in ways.items():
        way, ports = way_of_stream(name), trial.reading.ports
        words = f"{ports[way[0]].name} to {ports[way[1]].name}" if way and max(way) < len(ports) else name
        named.append(({"way": words} if len(ways) > 1 else {}, streams))
    return named


def _own(readings: Sequence[StreamReading], stream: str) -> StreamReading | None:
    """Returns the reading of a stream by its name in the traffic; of a single one, that one."""
    return next((one for one in readings if one.name.partition(" ")[2] in ("", stream)), None)


def seen_of(trial: Trial, readings: Sequence[StreamReading], service: Service, loads: Sequence[StreamLoad]) -> Seen:
    """Returns what came of a service in one direction."""
    reading = trial.reading
    duration_s = reading.offering_ns / 1e9
    names = service.streams() if len(trial.request.streams) > 1 else (trial.request.streams[0].stream,)
    parts = [(load, own) for load in loads if load.stream in names and (own := _own(readings, load.stream)) is not None]
    rates = [l2_bits_per_s(own.counts.received / duration_s, mean_bytes(load.size)) for load, own in parts]
    load, own = parts[0]
    latency, offered = own.latency, own.counts.sent + own.counts.unsent_backpressure
    tail = latency.percentiles_ns.get("99.9") if latency is not None else None
    return Seen(
        loss_ratio=own.counts.loss_ratio if offered else None,
        delay_ns=latency.mean_ns if latency is not None else None,
        delay_variation_ns=None if latency is None or tail is None else tail - latency.minimum_ns,
        committed_bits_per_s=rates[0],
        bits_per_s=sum(rates),
        duration_s=duration_s,
        uncertainty=min(1.0, reading.health.held_up_ns / max(1, reading.offering_ns)),
        sent_frames=sum(one.counts.sent for _, one in parts),
        received_frames=sum(one.counts.received for _, one in parts),
        availability=availability_of(own.intervals, load.load_frames_per_s, trial.request.duration_s),
    )


def values_of(seen: Seen) -> Values:
    """Returns what came of a service as values of a result."""
    return {
        "information_rate_bits_per_s": Bounded(
            value=seen.bits_per_s,
            lower=seen.bits_per_s * (1.0 - seen.uncertainty),
            upper=seen.bits_per_s * (1.0 + seen.uncertainty),
        ),
        "committed_rate_bits_per_s": seen.committed_bits_per_s,
        "sent_frames": seen.sent_frames,
        "received_frames": seen.received_frames,
        "loss_percent": None if seen.loss_ratio is None else 100.0 * seen.loss_ratio,
        "delay_mean_ns": seen.delay_ns,
        "delay_variation_ns": seen.delay_variation_ns,
    }


def policed_rate(service: Service, seen: Seen) -> Values:
    """Returns the rate of the policer: a bucket that is never full passes rate x time, and its burst once at most."""
    if seen.received_frames >= seen.sent_frames:
        return {"policed_rate_bits_per_s": Bounded(value=None, reason_null="nothing was held back")}
    least = max(0.0, seen.bits_per_s - 8.0 * service.burst / seen.duration_s)
    lower, upper = least * (1.0 - seen.uncertainty), seen.bits_per_s * (1.0 + seen.uncertainty)
    return {"policed_rate_bits_per_s": Bounded(value=least, lower=lower, upper=upper)}


def availability_of(intervals: Intervals | None, load_frames_per_s: float, duration_s: float) -> float | None:
    """Returns the share of available time (ITU-T Y.1563); None where the tester keeps no intervals.

    Seconds are as many whole intervals as last a second or more. One is severely errored where over half of what was
    sent in it is missing; ten of them in a row begin unavailable time, ten others in a row end it.
    """
    if intervals is None or not load_frames_per_s:
        return None
    number = -(-_SECOND_NS // intervals.interval_ns)
    block_s = number * intervals.interval_ns / 1e9
    blocks = int(duration_s / block_s + 1e-9)
    least = (1.0 - SEVERELY_ERRORED_LOSS) * load_frames_per_s * block_s
    received = [sum(intervals.received[number * block : number * (block + 1)]) for block in range(blocks)]
    return available_share([frames < least for frames in received])


def available_share(errored: Sequence[bool]) -> float | None:
    """Returns the share of seconds that are available, of severely ``errored`` ones or not; None without a second."""
    if not errored:
        return None
    available, is_up, run = [True] * len(errored), True, 0
    for number, bad in enumerate(errored):
        run = run + 1 if bad == is_up else 0
        available[number] = is_up
        if run == UNAVAILABLE_AFTER:
            is_up, run = not is_up, 0
            available[number - UNAVAILABLE_AFTER + 1 : number + 1] = [is_up] * UNAVAILABLE_AFTER
    return sum(available) / len(available)
