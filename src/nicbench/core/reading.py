"""The readings of one trial: counts, the receiver's analysis, time stamps, figures of each port, and machine health."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from nicbench.core.base import Frozen, optional


class Counts(Frozen):
    """Frames of one trial, in one stream or summed over streams. Each frame has one fate (protocol, "Meanings").

    A count is ``None`` where the tester does not know it: it cannot tell such frames from others.
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
    corrupted_copies: int | None = 0
    """Frames that are not as they were sent, of sequences that came already: charged to nobody."""
    unattributed: int | None = 0
    """Missing frames in whose place one with a broken signature, between the same addresses, came: not lost either."""
    corrupted_unattributed: int | None = 0
    foreign: int | None = 0
    misdirected: int | None = optional(None)
    """Frames of this trial at ports that are not their stream's; None where they are among the foreign ones."""
    stale: int | None = 0
    """Frames of earlier trials of this run."""

    @property
    def unsent(self) -> int:
        """The frames that were intended and never left the tester, whatever the cause."""
        return self.unsent_tester + self.unsent_backpressure

    @property
    def offered(self) -> int:
        """The frames that were offered to the DUT: sent, or refused by a lossless port."""
        return self.sent + self.unsent_backpressure

    @property
    def failed(self) -> int:
        """The frames that the DUT is charged with: lost, corrupted (signature included), or refused by a lossless port.

        A count that the tester does not know is not charged.
        """
        return self.lost + (self.corrupted or 0) + (self.unattributed or 0) + self.unsent_backpressure

    @property
    def loss_ratio(self) -> float:
        """The share of the offered frames that failed, 0..1; 0 where nothing was offered (RFC 1242 section 3.6)."""
        offered = self.offered
        return self.failed / offered if offered else 0.0

    @classmethod
    def sum_of(cls, parts: Iterable[Counts]) -> Counts:
        """Sums counts field by field; a field is ``None`` where one part is unknown, and zero for an empty iterable."""
        rows = list(parts)
        if len(rows) == 1:
            return rows[0]
        return cls(**{name: sum_of_known([getattr(row, name) for row in rows]) for name in cls.__pydantic_fields__})


def sum_of_known(parts: Iterable[int | None]) -> int | None:
    """Returns the sum of counts; None where one of them is unknown."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


Tally = Annotated[int, Field(ge=0, lt=2**64)]
"""A count, or nanoseconds, as the engine has it: 64 bits without a sign."""


class Times(Frozen):
    """Times of one kind. ``histogram`` is HdrHistogram V2 in base64, in nanoseconds."""

    count: Tally
    minimum_ns: Tally
    mean_ns: float
    maximum_ns: Tally
    histogram: str


class TransmitGaps(Times):
    """The gaps between a stream's frames as each sender handed them to the port, in nanoseconds; 0 within a burst."""

    lateness: Times | None = optional(None)
    """How late the frames of a capture with its own timing were sent, in nanoseconds."""
    errors: Times | None = optional(None)
    """By how much the gaps differ from those of the capture, in nanoseconds."""


class LearntFlows(Frozen):
    """What came back of the flows of one stream when learning frames of each of them were sent before a trial."""

    stream: str
    transmit_port: int
    receive_port: int
    flows: int
    silent: int
    """The flows of which no frame came back, not even of the last and longest attempt."""
    frames_per_flow: int
    """The learning frames of each flow that were sent in all attempts together."""
    unsent: int = optional(0)
    """The flows of which the tester sent no learning frame: whether they pass is not known."""

    def say(self, port_names: Sequence[str]) -> str:
        """Returns in words how many flows do not pass, and where; ``port_names`` are the tester's."""
        return f"{self.silent} of {' do not pass '.join(self._words_of(port_names))}"

    def say_unsent(self, port_names: Sequence[str]) -> str:
        """Returns in words of how many flows the tester sent no learning frame, and where."""
        of_flows = f"{self.unsent} of {' '.join(self._words_of(port_names))}"
        return f"a learning frame of {of_flows} was not sent by the tester"

    def _words_of(self, port_names: Sequence[str]) -> tuple[str, str]:
        stream = self.stream.partition(" ")[2]
        way = f"from port {port_names[self.transmit_port]} to {port_names[self.receive_port]}"
        return f"{self.flows} flows" + (f" of stream {stream}" if stream else ""), way


class Reordering(Frozen):
    """Reordering (RFC 4737): extents (section 4.2) of frames whose extent is known, and n-reordering (section 5.3)."""

    maximum_extent: int
    mean_extent: float | None
    measured: int
    by_three_or_more: int
    n_reordered: tuple[int, ...] = ()
    """For each n from 1 on, the frames that directly follow n or more frames with greater sequence numbers.

    Empty where the engine is too old to count them.
    """


class SampleOrder(Frozen):
    """The order of the sampled frames of a stream of which only some bear a sequence number (TRex's latency streams).

    ``sequence_jumps`` and ``sequence_falls`` count arrivals with a greater and a smaller number than expected next.
    """

    sent: int
    received: int
    dropped: int
    duplicated: int
    reordered: int
    sequence_jumps: int
    sequence_falls: int


class Variation(Frozen):
    """Inter-packet delay variation (RFC 5481 section 4.1): absolute differences between consecutive frames."""

    pairs: int
    mean_ns: float
    maximum_ns: int


class Intervals(Frozen):
    """Counts of a stream over time. ``missing`` counts skipped sequence numbers, and is negative for late frames."""

    interval_ns: int
    received: tuple[int, ...]
    missing: tuple[int, ...]


class Silence(Frozen):
    """A time in which nothing arrived, between two arrivals; times count from when the first frame was due."""

    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        """The duration in nanoseconds from the last arrival before the silence to the first arrival after it."""
        return self.to_ns - self.from_ns


class Arrivals(Frozen):
    """When the frames of a stream arrived; ``silence`` is the longest one, None where it is unknown."""

    first_ns: int
    last_ns: int
    silence: Silence | None = None


class FlowGroup(Frozen):
    """Neighbouring flows that share a histogram; an unknown value means that nothing was received."""

    first_flow: int
    flows: int
    received: int
    minimum_ns: int | None = None
    mean_ns: float | None = None
    maximum_ns: int | None = None
    histogram: str | None = None


class Flows(Frozen):
    """The number of flows of a stream, and how many of them lost, reordered, duplicated or corrupted frames.

    ``most_lost`` is (flow, frames), ``slowest`` is (flow, mean latency in ns).
    """

    flows: int
    silent: int
    with_loss: int
    with_reordering: int
    with_duplicates: int
    with_corruption: int
    most_lost: tuple[int, int] | None = None
    slowest: tuple[int, float] | None = None


class TrafficClasses(Frozen):
    """The values of DSCP and ECN together (RFC 2474, RFC 3168) with which a stream's frames arrived.

    ``received`` has each value with its frames, ``marked_flows`` the frames with CE of each flow (none of very many).
    """

    received: tuple[tuple[int, int], ...]
    marked_flows: tuple[int, ...] = ()
    sent: int | None = None
    """The value with which they were sent."""


class Capture(Frozen):
    """A file of captured frames in the run folder; ``jumps`` are sequence gaps around which frames were captured."""

    name: str
    frames: int
    jumps: int
    truncated: bool
    error: str | None = None


class FlowReport(Frozen):
    """A file in the run folder with a line for each flow."""

    name: str
    flows: int
    error: str | None = None


# Time stamps of received frames: the state of their clock over a trial (protocol, "Time stamps").


class TransmitDelay(Frozen):
    """The time from a frame's software time stamp until it left the card, for frames whose departure is known.

    None where the card reported no departure. A negative delay is within the uncertainty of the clocks.
    """

    asked: int
    count: int
    minimum_ns: int | None = None
    mean_ns: float | None = None
    maximum_ns: int | None = None


class Stamps(Frozen):
    """The clock of one port over one trial. ``source`` is ``card`` or ``kernel``; None is unknown.

    ``unstamped`` frames had no time stamp, and ``implausible`` frames one outside of the trial: both were timed by the
    time-stamp counter. ``early`` time stamps are later than the moment at which their frame had been received.
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


# The outcome of one trial at each port, on each way between two ports, and in total: parts of a result.


class PassedFrames(Frozen):
    """Frames offered to the DUT and what became of them, with rates over the time of the transmission.

    ``failed_frames`` are all frames that the DUT is charged with (lost, altered, refused); ``loss_ratio`` is their
    share of the offered frames, each of which counts once for every port that was to get it.
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
    """The frames of one way: an ordered pair of the tester's ports, by name."""

    transmit_port: str
    receive_port: str


class InterruptionTimes(Frozen):
    """When the command of an interruption ran, in seconds since the transmission began, by the controller's clock."""

    began_s: float
    ended_s: float
    restore_began_s: float | None = optional(None)
    """When the command that takes it back began; None without such a command."""
    restored_s: float | None = optional(None)


class PortFrames(Frozen):
    """The frames at one port of the tester: those it sent, what became of those sent to it, and foreign frames."""

    port: str
    offered_frames: int
    expected_frames: int
    """Frames offered to the DUT by any port and destined for this one."""
    received_frames: int
    offered_frames_per_s: float
    received_frames_per_s: float
    foreign_frames: int | None
    misdirected_frames: int | None = optional(None)


class PortFigures(Frozen):
    """Figures by port of the trial that represents a result.

    That is the trial at the highest load without a failed frame, or else the one with the fewest failed frames.
    ``combined`` is the sum of all ways; a frame that is expected at several ports was offered once.
    """

    trial: str
    load_frames_per_s: float | None
    ways: tuple[WayFrames, ...]
    ports: tuple[PortFrames, ...]
    combined: PassedFrames


# What happened to the machines' hardware during a trial: errors of links and buses, throttling, heat, power.


class Measure(StrEnum):
    """The meaning of a rise in a health counter. Most have a row of the same name in the table of thresholds.

    LINK has none, because any change of a link spoils a trial; FEC_CORRECTED has none, because corrected blocks lose
    nothing.
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
    """A rise by ``amount`` of ``unit`` during a trial: of the counter ``what`` of the part ``where`` of a host."""

    host: str
    where: str
    what: str
    measure: Measure
    amount: float
    unit: str


class HealthLevel(Frozen):
    """A temperature after a trial, or the mean power over it. ``limit`` is the part's own, where it reports one."""

    host: str
    where: str
    value: float
    unit: str
    limit: float | None = None


class MachineHealth(Frozen):
    """The hardware health of the machines over a trial. ``unread``: values that could not be read.

    ``reading_ms`` is the time taken by the readings before and after the trial.
    """

    events: tuple[HealthEvent, ...] = ()
    levels: tuple[HealthLevel, ...] = ()
    unread: tuple[str, ...] = ()
    reading_ms: float | None = None


class ChangeKind(StrEnum):
    """What was changed."""

    LINK = "link"
    ADDRESS = "address"
    ROUTE = "route"
    RULE = "rule"
    NEIGHBOUR = "neighbour"
    QUEUEING = "queueing"
    FILTER = "filter"
    RULESET = "ruleset"  # of nftables
    IPTABLES = "iptables"
    XDP = "xdp"
    TCX = "tcx"
    SETTING = "setting"  # of the kernel (sysctl)


class ChangeAction(StrEnum):
    """What became of it."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(Frozen):
    """One change: of what, when, and by whom where the kernel tells."""

    network: str
    """The namespace, or the machine whose network it is."""
    kind: ChangeKind
    action: ChangeAction
    device: str | None = None
    what: str | None = None
    """Which one: a prefix, an address, a setting, a table."""
    before: str | None = None
    after: str | None = None
    after_ns: int | None = None
    """Time since the path was first watched; None: at some time before the end."""
    pid: int | None = None
    process: str | None = None


class PathChanges(Frozen):
    """What changed while the path was watched: nothing, where all is empty."""

    changes: tuple[Change, ...] = ()
    """The first ones."""
    more: int = 0
    """How many more there were."""
    overflowed: tuple[str, ...] = ()
    """Networks in which there were more than their kernel kept."""

    def add(self, other: PathChanges) -> PathChanges:
        """Returns these and those of another machine together."""
        return PathChanges(
            changes=(*self.changes, *other.changes),
            more=self.more + other.more,
            overflowed=(*self.overflowed, *other.overflowed),
        )
