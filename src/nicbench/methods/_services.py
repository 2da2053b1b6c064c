"""A service as agreed (ITU-T Y.1564): the loads that test it, what came of them, and whether that is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.frame_size import MAXIMUM, MINIMUM, STREAMS, FrameSize, Size, mean_bytes
from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.pattern import way_of_stream
from nicbench.core.quantity import BitsPerSecond, Bytes, Ratio, Seconds
from nicbench.core.reading import Intervals
from nicbench.core.result import Bounded
from nicbench.core.traffic import Name, StreamLoad
from nicbench.core.trial import StreamReading, Trial
from nicbench.core.units import format_bits_per_s, format_ratio, l2_bits_per_s
from nicbench.methods.base import Values

# A service as it was agreed, the loads that test it, and what is accepted of each (ITU-T Y.1564). Pure.


# Traffic policing is tested with 125 % of the EIR above the CIR; with an EIR below 20 % of the CIR that is little, and
# 125 % of the CIR are sent instead.
OVERSHOOT: Final = 1.25
LEAST_EIR_SHARE: Final = 0.2


def _whole_size(size: int | str) -> int | str:
    """Refuses the words that stand for a size of other tests, where a service has one of its own."""
    if size in (MINIMUM, MAXIMUM, STREAMS):
        accepted = "a number of bytes, or the name of a mix"
        raise PydanticCustomError(
            "quantity", "{why}", {"why": f"`{size}` is no size of a service", "accepted": accepted}
        )
    return size


class Acceptance(Frozen):
    """What is accepted of a service: the service acceptance criteria of ITU-T Y.1564. None: measured, not judged."""

    loss: Ratio = 0.0
    """The largest frame loss ratio."""
    delay: Seconds | None = None
    """The longest mean frame transfer delay."""
    delay_variation: Seconds | None = None
    """The largest frame delay variation: 99.9th percentile less minimum."""
    availability: Ratio | None = None
    """The least availability in the performance test."""


class Service(Frozen):
    """A service: what was agreed of its bandwidth, and how its frames are known."""

    name: Name
    """The name of the service."""
    stream: Name | None = None
    """The stream of `traffic` that carries it; without it the one with the name of the service. Not needed where
    `traffic` has no `streams`.
    """
    excess_stream: Name | None = None
    """The stream of `traffic` for what is sent above the CIR, marked as such by its `fields` (DSCP, PCP). The test is
    then aware of colours.
    """
    frame_bytes: Annotated[FrameSize, AfterValidator(_whole_size)] = 1518
    """The frame size, or the name of a mix."""
    cir: Annotated[BitsPerSecond, Field(gt=0.0)]
    """Committed information rate, in bits of whole frames (layer 2)."""
    eir: BitsPerSecond = 0.0
    """Excess information rate."""
    policed: bool = True
    """Whether the DUT polices the service: if so, more than CIR and EIR is sent as well."""
    burst: Bytes = 0
    """Committed and excess burst size together: what a policer may pass at once above its rate."""
    accept: Acceptance = Acceptance()
    """What is accepted."""

    @model_validator(mode="after")
    def _has_excess_to_mark(self) -> Self:
        if self.excess_stream is not None and self.excess_stream == (self.stream or self.name):
            raise ValueError(
                "`excess_stream` and the stream of the service are the same: give the excess one of its own"
            )
        return self

    def named_streams(self) -> tuple[tuple[str, str], ...]:
        """Returns the key that names each stream of the traffic that carries it, and the stream's name."""
        own = ("name", self.name) if self.stream is None else ("stream", self.stream)
        return (own, *((("excess_stream", self.excess_stream),) if self.excess_stream else ()))

    def streams(self) -> tuple[str, ...]:
        """Returns the names of the streams of the traffic that carry it."""
        return tuple(name for _, name in self.named_streams())

    @property
    def words(self) -> str:
        """The service in words: "gold (CIR 100 Mb/s, EIR 50 Mb/s)"."""
        excess = f", EIR {format_bits_per_s(self.eir)}" if self.eir else ""
        return f"{self.name} (CIR {format_bits_per_s(self.cir)}{excess})"


@frozen
class Step:
    """A load of the service configuration test: what is sent as committed and as excess, in bits per second."""

    name: str
    kind: Literal["cir", "eir", "policing"]
    committed_bits_per_s: float
    excess_bits_per_s: float = 0.0

    @property
    def bits_per_s(self) -> float:
        """Returns the whole load."""
        return self.committed_bits_per_s + self.excess_bits_per_s


def steps_of(service: Service, percents: Sequence[float]) -> Iterator[Step]:
    """Yields the steps of the service configuration test: shares of the CIR, CIR and EIR, and more than that."""
    for percent in percents:
        yield Step(f"{percent:g} % of CIR", "cir", service.cir * percent / 100.0)
    if service.eir:
        yield Step("CIR + EIR", "eir", service.cir, service.eir)
    if not service.policed:
        return
    if service.eir >= LEAST_EIR_SHARE * service.cir:
        yield Step("CIR + 125 % of EIR", "policing", service.cir, OVERSHOOT * service.eir)
    else:
        name = "125 % of CIR + EIR" if service.eir else "125 % of CIR"
        yield Step(name, "policing", OVERSHOOT * service.cir, service.eir)


def shortest_policing_s(service: Service) -> float:
    """Returns how long more must be sent than CIR and EIR before the burst is used up; 0 where nothing is policed."""
    *_, last = steps_of(service, (100.0,))
    more = last.bits_per_s - service.cir - service.eir
    return 8.0 * service.burst / more if last.kind == "policing" else 0.0


def loads_of(service: Service, step: Step, size: Size) -> tuple[StreamLoad, ...]:
    """Returns the load of each stream of the service, in frames per second."""
    committed, *excess = service.streams()
    if not excess:
        return (_load(committed, step.bits_per_s, size),)
    marked = ((committed, step.committed_bits_per_s), (excess[0], step.excess_bits_per_s))
    return tuple(_load(stream, bits_per_s, size) for stream, bits_per_s in marked if bits_per_s)


def _load(stream: str, bits_per_s: float, size: Size) -> StreamLoad:
    return StreamLoad(stream=stream, load_frames_per_s=bits_per_s / (8.0 * mean_bytes(size)), size=size)


def bounds_of(service: Service, step: Step, duration_s: float) -> tuple[float, float | None]:
    """Returns the least and the most information rate that is accepted in a step, in bits per second.

    Most: CIR and EIR, and the burst spread over the step. None in a step that sends no more than they are.
    """
    least = min(step.committed_bits_per_s, service.cir) * (1.0 - service.accept.loss)
    if step.kind != "policing":
        return least, None
    return least, service.cir + service.eir + 8.0 * service.burst / max(duration_s, 1e-9)


# What came of a service in a trial, each direction by itself, and what follows from it. Pure.


SEVERELY_ERRORED_LOSS: Final = 0.5
"""A second in which more than this share of the frames is lost is severely errored (ITU-T Y.1563)."""
UNAVAILABLE_AFTER: Final = 10
"""The number of consecutive severely errored seconds that begin unavailable time; as many others end it (ITU-T Y.1563).

"""
_SECOND_NS: Final = 1_000_000_000


@frozen
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
    ways = grouped((stream.name.partition(" ")[0], stream) for stream in trial.reading.streams)
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


@frozen
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
    """Returns the bounds of the share of available time in a number of seconds.

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


# Whether what came of a service is accepted, and in words what is not (ITU-T Y.1564). Pure.


def failures_of(service: Service, step: Step, seen: Seen) -> list[str]:
    """Returns in words what is not accepted of a step; nothing where all is.

    Loss and delay are judged of committed frames: where a step sends excess that is not marked, no frame is known to be
    committed, and the information rate alone is. A rate fails where it does so in the whole of its interval.
    """
    accept, said = service.accept, []
    least, most = bounds_of(service, step, seen.duration_s)
    marked = service.excess_stream is not None and step.committed_bits_per_s <= service.cir
    if step.kind == "cir" or marked:
        said += _limit_failures(accept, seen)
    committed = seen.committed_bits_per_s if service.excess_stream else seen.bits_per_s
    if step.kind != "cir" and committed * (1.0 + seen.uncertainty) < least:
        came, must = _write_apart(committed, least, format_bits_per_s)
        said.append(f"{came} came, at least {must} must")
    if most is not None and seen.bits_per_s * (1.0 - seen.uncertainty) > most:
        came, may = _write_apart(seen.bits_per_s, most, format_bits_per_s)
        said.append(f"{came} came, at most {may} may")
    return said


def performance_failures(service: Service, seen: Seen) -> list[str]:
    """Returns in words what is not accepted of a service in the performance test; nothing where all is."""
    said, least = _limit_failures(service.accept, seen), service.accept.availability
    known = seen.availability
    if least is not None and known is not None and known.upper < least:
        was, asked = _write_apart(known.upper, least, format_ratio)
        bound = "at most " if known.lower < known.upper else ""
        said.append(f"available for {bound}{was} of the time, {asked} are asked for")
    return said


def _limit_failures(accept: Acceptance, seen: Seen) -> list[str]:
    said = []
    if seen.loss_ratio is not None and seen.loss_ratio > accept.loss:
        lost, may = _write_apart(seen.loss_ratio, accept.loss, format_ratio)
        said.append(f"{lost} lost, {may} may be")
    for name, measured_ns, limit_s in (
        ("mean delay", seen.delay_ns, accept.delay),
        ("delay variation", seen.delay_variation_ns, accept.delay_variation),
    ):
        if limit_s is not None and measured_ns is not None and measured_ns > 1e9 * limit_s:
            was, may = _write_apart(measured_ns / 1e3, 1e6 * limit_s, lambda us, digits: f"{us:.{digits}g} µs")
            said.append(f"{name} {was}, {may} may be")
    return said


def _write_apart(value: float, limit: float, write: Callable[[float, int], str]) -> tuple[str, str]:
    """Writes a value and its limit with as many digits as it takes for them to differ."""
    pairs = ((write(value, digits), write(limit, digits)) for digits in range(4, 16))
    return next((pair for pair in pairs if pair[0] != pair[1]), (write(value, 17), write(limit, 17)))


def unjudged(service: Service, seen: Seen, *, long: bool) -> list[str]:
    """Returns the criteria that could not be judged because their value is unknown; availability in a ``long`` test."""
    accept, available = service.accept, seen.availability
    # Within bounds that contain the limit, availability is as unknown as without any.
    is_open = available is None or (accept.availability is not None and available.lower < accept.availability)
    pairs = (
        ("mean delay", accept.delay, seen.delay_ns),
        ("delay variation", accept.delay_variation, seen.delay_variation_ns),
        *((("availability", accept.availability, None if is_open else available),) if long else ()),
    )
    return [name for name, limit, value in pairs if limit is not None and value is None]
