"""What the receiver knows of a stream beyond its counts and latency (see protocol/README.md, ``drain``)."""

from __future__ import annotations

from nicbench.model.base import Frozen


class Reordering(Frozen):
    """RFC 4737: extents (4.2) of the frames whose extent is known, and n-reordering (5.3)."""

    maximum_extent: int
    mean_extent: float | None
    measured: int
    by_three_or_more: int
    n_reordered: tuple[int, ...] = ()
    """Frames right behind n or more with greater sequences, for n from 1 on; of an older engine none."""


class SampleOrder(Frozen):
    """Of a stream of which only some frames bear a sequence number (TRex's latency streams): those, by the receiver.

    ``sequence_jumps`` and ``sequence_falls`` count arrivals with a greater and a smaller number than the next.
    """

    sent: int
    received: int
    dropped: int
    duplicated: int
    reordered: int
    sequence_jumps: int
    sequence_falls: int


class Variation(Frozen):
    """Inter-packet delay variation (RFC 5481 4.1): absolute differences between frames that follow one another."""

    pairs: int
    mean_ns: float
    maximum_ns: int


class Intervals(Frozen):
    """A stream over time. ``missing`` counts sequences passed over; it is negative where frames came late."""

    interval_ns: int
    received: tuple[int, ...]
    missing: tuple[int, ...]


class Silence(Frozen):
    """A time in which nothing arrived, between two arrivals; since the first frame of the transmission was due."""

    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        """From the last arrival before it to the first after it."""
        return self.to_ns - self.from_ns


class Arrivals(Frozen):
    """When a stream's frames arrived; ``silence`` is the longest, None where it is not known."""

    first_ns: int
    last_ns: int
    silence: Silence | None = None


class FlowGroup(Frozen):
    """Neighbouring flows that share a histogram; what is unknown was not received."""

    first_flow: int
    flows: int
    received: int
    minimum_ns: int | None = None
    mean_ns: float | None = None
    maximum_ns: int | None = None
    histogram: str | None = None


class Flows(Frozen):
    """How many flows a stream has, and how many of them lost, reordered, doubled or broke frames.

    ``most_lost`` is (flow, frames), ``slowest`` (flow, mean latency in ns).
    """

    flows: int
    silent: int
    with_loss: int
    with_reordering: int
    with_duplicates: int
    with_corruption: int
    most_lost: tuple[int, int] | None = None
    slowest: tuple[int, float] | None = None


class Capture(Frozen):
    """Received frames in a file of the run folder; ``jumps`` are holes in sequences that were captured around."""

    name: str
    frames: int
    jumps: int
    truncated: bool
    error: str | None = None


class FlowReport(Frozen):
    """A line for each flow in a file of the run folder."""

    name: str
    flows: int
    error: str | None = None
