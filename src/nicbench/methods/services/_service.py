"""A service as it was agreed, the loads that test it, and what is accepted of each (ITU-T Y.1564). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nicbench.core.base import Frozen
from nicbench.core.frame_size import MAXIMUM, MINIMUM, STREAMS, FrameSize, Size, mean_bytes
from nicbench.core.quantity import BitsPerSecond, Bytes, Ratio, Seconds
from nicbench.core.traffic import Name, StreamLoad
from nicbench.core.units import format_bits_per_s

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


@dataclass(frozen=True, slots=True)
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
