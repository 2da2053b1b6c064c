"""What is read of one trial: counts, the receiver's analysis, time stamps, figures of each port, and the machines'
health.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from nicbench.core.base import Frozen

# Counts of a trial: all of them, always (see protocol/README.md, "Meanings").


class Counts(Frozen):
    """Frames of one trial, in one stream or summed over streams. Each frame has one fate.

    None is a count that the tester does not know: it cannot tell such frames from others.
    """

    intended: int
    sent: int
    unsent_tester: int = 0
    unsent_backpressure: int = 0
    received: int
    lost: int
    late: int | None = 0
    duplicated: int | None = 0
    reordered: int | None = 0
    corrupted: int | None = 0
    unattributed: int | None = 0
    """Missing, and a frame between the stream's addresses came with a broken signature: neither lost nor received."""
    corrupted_unattributed: int | None = 0
    foreign: int | None = 0

    @property
    def unsent(self) -> int:
        """Frames that were intended and never left the tester, whatever the cause."""
        return self.unsent_tester + self.unsent_backpressure

    @property
    def failed(self) -> int:
        """Frames the DUT is charged with: lost, corrupted (signature included), or refused by a lossless port.

        What the tester does not know cannot be charged.
        """
        return self.lost + (self.corrupted or 0) + (self.unattributed or 0) + self.unsent_backpressure

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames the DUT failed, 0..1; 0 where nothing was offered (RFC 1242 3.6)."""
        offered = self.sent + self.unsent_backpressure
        return self.failed / offered if offered else 0.0

    @classmethod
    def sum_of(cls, parts: Iterable[Counts]) -> Counts:
        """Field by field sum, None where one part is unknown; an empty iterable gives zeros."""
        rows = list(parts)
        return cls(**{name: _sum([getattr(row, name) for row in rows]) for name in cls.model_fields})


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


# What the receiver knows of a stream beyond its counts and latency (see protocol/README.md, ``drain``).


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
        """Duration from the last arrival before it to the first after it."""
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
    """A file of the run folder with a line for each flow."""

    name: str
    flows: int
    error: str | None = None


# Time stamps of received frames: how the clock that made them fared over a trial (protocol, "Time stamps").


class TransmitDelay(Frozen):
    """From a frame's stamp in software until it left the card, of the frames whose leaving the card told.

    None where it told none. A negative delay is within the uncertainty of the clocks.
    """

    asked: int
    count: int
    minimum_ns: int | None = None
    mean_ns: float | None = None
    maximum_ns: int | None = None


class Stamps(Frozen):
    """The clock of one port over one trial. ``source`` is ``card`` or ``kernel``; None is unknown.

    ``unstamped`` and ``implausible`` frames had no stamp, or none that can be a time of the trial: the time-stamp
    counter's time was taken. ``early`` stamps are later than the moment at which their frame had been received.
    """

    source: str
    clock_hz: float | None = None
    resolution_ns: float | None = None
    uncertainty_ns: float | None = None
    readings: int
    outliers: int
    steps: int
    stamped: int
    unstamped: int
    implausible: int
    early: int
    early_maximum_ns: int
    transmit_delay: TransmitDelay | None = None


# What one trial came to at each port, on each way between two ports, and in all: parts of a result.


class PassedFrames(Frozen):
    """Frames offered to the DUT and what became of them, with rates over the time of the transmission.

    ``failed_frames`` is all that the DUT is charged with (lost, altered, refused), ``loss_ratio`` its share of offered.
    """

    offered_frames: int
    received_frames: int
    lost_frames: int
    failed_frames: int
    loss_ratio: float
    offered_frames_per_s: float
    received_frames_per_s: float
    latency_minimum_ns: int | None = None
    latency_mean_ns: float | None = None
    latency_p50_ns: int | None = None
    latency_p99_ns: int | None = None
    latency_maximum_ns: int | None = None


class WayFrames(PassedFrames):
    """Figures of one way: an ordered pair of the tester's ports, by name."""

    transmit_port: str
    receive_port: str


class PortFrames(Frozen):
    """At one port of the tester: what it sent, what came of what was sent to it, and what was not ours."""

    port: str
    offered_frames: int
    expected_frames: int
    """Offered to the DUT by any port, for this one."""
    received_frames: int
    offered_frames_per_s: float
    received_frames_per_s: float
    foreign_frames: int | None


class PortFigures(Frozen):
    """Of the trial that tells most of a result: at the highest load without a failed frame, else of the least failed.

    ``combined`` is the sum of all ways.
    """

    trial: str
    load_frames_per_s: float | None
    ways: tuple[WayFrames, ...]
    ports: tuple[PortFrames, ...]
    combined: PassedFrames


# What happened to the machines' hardware during a trial: errors of links and buses, throttling, heat, power.


class Measure(StrEnum):
    """What a rise means. Most have a row of this name in the table of thresholds.

    LINK has none, for any change of a link spoils a trial; FEC_CORRECTED has none, for corrected blocks lose nothing.
    """

    PCIE_CORRECTED = "pcie_corrected_share"
    PCIE_UNCORRECTED = "pcie_uncorrected_share"
    PCIE_LINK = "pcie_link_loss_share"
    FEC_CORRECTED = "fec_corrected"
    FEC_UNCORRECTED = "fec_uncorrected_share"
    SYMBOL_ERRORS = "symbol_error_share"
    THROTTLED = "throttled_share"
    TEMPERATURE = "temperature_share"
    LINK = "link_changed"


class HealthEvent(Frozen):
    """Something rose in a trial by ``amount`` of ``unit``: the counter ``what`` of the part ``where`` of a host."""

    host: str
    where: str
    what: str
    measure: Measure
    amount: float
    unit: str


class HealthLevel(Frozen):
    """A temperature after a trial, or the mean power over it. ``limit`` is the part's own, where it tells one."""

    host: str
    where: str
    value: float
    unit: str
    limit: float | None = None


class MachineHealth(Frozen):
    """The gate's reading of a trial. ``unread``: what could not be read. ``reading_ms``: the time of both readings."""

    events: tuple[HealthEvent, ...] = ()
    levels: tuple[HealthLevel, ...] = ()
    unread: tuple[str, ...] = ()
    reading_ms: float | None = None
