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
    availability: Availability | None = None


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
    latency, offered = own.latency, own.counts.offered
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
        availability=availability_of(own, load.load_frames_per_s, trial.request.duration_s),
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


@dataclass(frozen=True, slots=True)
class Availability:
    """The share of available time, between two bounds; they are equal where every second is known."""

    lower: float
    upper: float

    @property
    def value(self) -> Bounded | float:
        """The share in percent as the value of a result; without a figure, but with its bounds in words, if unknown."""
        if self.lower == self.upper:
            return 100.0 * self.lower
        ends = f"{100.0 * self.lower:.6g} to {100.0 * self.upper:.6g} %"
        return Bounded(value=None, reason_null=f"the availability is {ends}: counts are too coarse to tell each second")


def availability_of(own: StreamReading, load_frames_per_s: float, duration_s: float) -> Availability | None:
    """Returns the share of available time (ITU-T Y.1563) of a stream; None where the tester keeps no intervals."""
    if own.counts.sent and not own.counts.received:
        return Availability(0.0, 0.0)
    if own.intervals is None or not load_frames_per_s or duration_s < 1.0:
        return None
    return availability_in(own.intervals, load_frames_per_s, int(duration_s + 1e-9))


def availability_in(intervals: Intervals, load_frames_per_s: float, seconds: int) -> Availability:
    """Returns the bounds of the share of available time in so many seconds.

    A second is severely errored where over half of what was sent in it is missing. Intervals of a long test are not
    parts of whole seconds: frames of one that reaches beyond a second came in that second or beside it. So a second
    may be errored that need not be; and ten may only be where half of ten seconds' frames are missing in all.
    """
    bad = (1.0 - SEVERELY_ERRORED_LOSS) * load_frames_per_s
    surely, possibly = [], []
    for second in range(seconds):
        least, most = _frames_between(intervals, load_frames_per_s, second, second + 1)
        surely.append(most < bad)
        possibly.append(least < bad)
    begins = [
        _frames_between(intervals, load_frames_per_s, start, start + UNAVAILABLE_AFTER)[0] < UNAVAILABLE_AFTER * bad
        for start in range(seconds)
    ]
    lower, upper = available_share(possibly, begins), available_share(surely)
    return Availability(0.0 if lower is None else lower, 1.0 if upper is None else upper)


def _frames_between(intervals: Intervals, load_frames_per_s: float, from_s: int, to_s: int) -> tuple[float, float]:
    """Returns the fewest and the most frames that came between two seconds, at no more than the load."""
    width_ns, start, end = intervals.interval_ns, from_s * _SECOND_NS, to_s * _SECOND_NS
    least = most = 0.0
    for number in range(start // width_ns, min(len(intervals.received), -(-end // width_ns))):
        received = intervals.received[number]
        inside_ns = min(end, (number + 1) * width_ns) - max(start, number * width_ns)
        if inside_ns == width_ns:
            least, most = least + received, most + received
            continue
        least += max(0.0, received - load_frames_per_s * (width_ns - inside_ns) / _SECOND_NS)
        most += min(received, load_frames_per_s * inside_ns / _SECOND_NS)
    return least, most


def available_share(errored: Sequence[bool], begins: Sequence[bool] | None = None) -> float | None:
    """Returns the share of seconds that are available, of severely ``errored`` ones or not; None without a second.

    Ten errored seconds in a row begin unavailable time, where ``begins`` does not rule it out for the first of them;
    ten others in a row end it.
    """
    if not errored:
        return None
    available, is_up, run = [True] * len(errored), True, 0
    for number, bad in enumerate(errored):
        run = run + 1 if bad == is_up else 0
        available[number] = is_up
        first = number - UNAVAILABLE_AFTER + 1
        if run >= UNAVAILABLE_AFTER and (not is_up or begins is None or begins[first]):
            is_up, run = not is_up, 0
            available[first : number + 1] = [is_up] * UNAVAILABLE_AFTER
    return sum(available) / len(available)
