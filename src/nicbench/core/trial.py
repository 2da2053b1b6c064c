"""A trial: the request to the tester, the reading, and the verdict. One journal line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen, optional
from nicbench.core.clocks import ClockMapping
from nicbench.core.frame_size import Mix, Size
from nicbench.core.headers import Codepoint, Groups, Pausing
from nicbench.core.judging import Sample
from nicbench.core.machine import DutWork, PowerOver, QueueReading
from nicbench.core.pattern import Way, WayLoad, way_of_stream
from nicbench.core.reading import (
    Arrivals,
    Capture,
    Counts,
    FlowGroup,
    FlowReport,
    Flows,
    InterruptionTimes,
    Intervals,
    LearntFlows,
    MachineHealth,
    PathChanges,
    Reordering,
    SampleOrder,
    Stamps,
    TrafficClasses,
    TransmitGaps,
    Variation,
    sum_of_known,
)
from nicbench.core.traffic import MacTable, Replay, StreamLoad

CALIBRATION: Final = "calibration"
"""The name of the stage that measures the tester by itself, which its trials have in place of a test's name."""


class Purpose(StrEnum):
    """Why a trial was made."""

    CEILING = "ceiling"
    TESTER_LATENCY = "tester_latency"
    SEARCH = "search"
    LATENCY = "latency"
    AVERAGE = "average"
    LOSS = "loss"  # how many frames come back at a given load
    BURST = "burst"  # whether all of an exact number of frames come back
    SOAK = "soak"  # one interval of a load that is held for a long time
    RESET = "reset"  # how long the DUT forwards nothing when it is reset
    CONVERGENCE = "convergence"  # for how long frames are lost when a link or a route changes
    RECOVERY = "recovery"  # when the last frame is lost after an overload
    CONNECTIONS = "connections"  # whether the DUT takes an exact number of flows that it does not know
    PAUSE = "pause"  # what becomes of frames while pause frames come: held back or lost, as the test asks
    MEMBERSHIP = "membership"  # when frames come and end by what a port asks for: those before and after are no loss
    IDLE = "idle"  # what the machines draw while nothing is sent
    POWER = "power"  # what they draw at a given load
    SPREAD = "spread"  # what each receive queue and core gets at a given load
    SERVED = "served"  # what a client of `nicbench serve` had sent


OF_THE_TESTER: Final = (Purpose.CEILING, Purpose.TESTER_LATENCY)
"""The trials of the tester by itself, in which no frame passes the DUT."""


class Phase(Frozen):
    """A part of a transmission with a load of its own."""

    load_frames_per_s: float
    duration_s: float


class Interruption(Frozen):
    """A command that runs during a transmission, on the DUT's host, the tester's, or the controller's machine; or a
    link of the DUT that goes down.
    """

    command: tuple[str, ...]
    on: Literal["dut", "tester", "local"]
    after_s: float
    """Seconds from the start of the transmission."""
    timeout_s: float
    link: str | None = optional(None)
    """The name of the DUT's port whose link goes down in place of the command."""
    lasts_s: float | None = optional(None)
    """Seconds after which the link comes up again, or ``restore`` runs; None: the command ends by itself."""
    restore: tuple[str, ...] = optional(())
    """The command that takes back what ``command`` did."""


class TrialRequest(Frozen):
    """One transmission, in the sequence of RFC 2544 section 23; ``load_frames_per_s`` is per port, None: unpaced."""

    frame_bytes: int | float
    load_frames_per_s: float | None
    duration_s: float
    drain_s: float
    settle_s: float
    purpose: Purpose
    bidirectional: bool = False
    mix: Mix | None = None
    """The sizes and their proportions; ``frame_bytes`` is then their mean."""
    frames: int | None = None
    """The exact number of frames of each load (``core/pattern.py``); the transmission ends with the last of them."""
    phases: tuple[Phase, ...] = ()
    """Consecutive loads in one transmission; ``load_frames_per_s`` is the first one's, ``duration_s`` the sum."""
    streams: tuple[StreamLoad, ...] = optional(())
    """Loads of single streams, the others send nothing; ``load_frames_per_s`` is their sum. Empty: as in traffic."""
    macs: MacTable | None = optional(None)
    """MAC addresses to learn and to find again in place of the traffic's streams; the load is that of the latter."""
    replay: Replay | None = optional(None)
    """Captures in place of the traffic's streams; ``duration_s`` is the most that they may take."""
    groups: Groups | None = optional(None)
    """Groups, or all stations, to which the first port sends the load in place of the traffic's streams."""
    codepoint: Codepoint | None = optional(None)
    """The ECN codepoint of every frame in place of the traffic's; traffic classes are then counted as they arrive."""
    pausing: Pausing | None = optional(None)
    """Pause frames of the port that receives the load, and which of the DUT's are counted at the one that sends."""
    ways: tuple[WayLoad, ...] = optional(())
    """Loads of single ways, the others send nothing; ``load_frames_per_s`` is that of the busiest port."""
    interruption: Interruption | None = None
    """A command to run on the DUT during the transmission."""
    adjusts: bool = optional(False)
    """Whether the method corrects for what others took of the DUT's core."""
    sent_share: float = Field(default=1.0, gt=0.0, le=1.0, exclude_if=lambda share: share == 1.0)
    """The share of any load that the tester is known to send: the rest does not count as a disturbance."""

    @property
    def sent_frames_per_s(self) -> float | None:
        """The load that is sent; less than ``load_frames_per_s`` where the tester sends a share of it."""
        return None if self.load_frames_per_s is None else self.load_frames_per_s * self.sent_share

    @property
    def is_plain(self) -> bool:
        """Whether it offers unchanged traffic: one load of all its streams, with nothing in their place or added."""
        others = (self.phases, self.streams, self.ways)
        instead = (self.macs, self.replay, self.groups, self.codepoint, self.pausing)
        return not any(others) and all(each is None for each in instead)

    @property
    def size(self) -> Size:
        """The frame size as requested."""
        return self.mix if self.mix is not None else int(self.frame_bytes)


class SharedCore(Frozen):
    """The latencies of frames in transit while a sample found one of the DUT's cores slow; no others are known."""

    count: int
    histogram: str
    """HdrHistogram V2 in base64, in nanoseconds."""


class Latency(Frozen):
    """One-way latency of one stream or of all streams of a trial, in nanoseconds.

    ``source`` says what time-stamps a sent frame (``software``, ``program``, ``scheduled``), ``received_by`` what
    time-stamps a received one (``tsc``, ``program``, ``card``, ``kernel``). ``negative`` frames arrived, according to
    their time stamps, up to ``negative_maximum_ns`` before they were sent; they are among the latencies as 0.

    ``percentiles_ns`` maps "50", "99", "99.9", ... to values; ``histogram`` is HdrHistogram V2 in base64; minimum and
    maximum are exact.
    """

    source: str
    received_by: str = "tsc"
    resolution_ns: float | None = None
    uncertainty_ns: float | None = None
    negative: int = 0
    negative_maximum_ns: int = 0
    count: int
    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    percentiles_ns: dict[str, int] = Field(default_factory=dict)
    histogram: str | None = None
    sample_of: int | None = None
    """The number of received frames of which the timed ones are a sample; None where every frame was timed."""
    shared_core: SharedCore | None = None
    """The latencies of frames that a neighbour on the DUT's core may have delayed; None: the core was not sampled."""


class Looks(Frozen):
    """Samples of the speed of one core over a trial, in slots of equal length; ``stats/cpu.py`` decodes them.

    ``begins_ns`` counts from the moment when the first frame was due. ``shares`` has a byte for each slot, zlib in
    base64: the core's speed in hundredths of its best, rounded down, and 0 without a sample.
    """

    begins_ns: int
    slot_ns: int
    shares: str


class CpuTime(Frozen):
    """How one monitored CPU spent the transmission, in nanoseconds."""

    cpu: int
    user_ns: int
    nice_ns: int
    system_ns: int
    softirq_ns: int
    irq_ns: int
    steal_ns: int
    idle_ns: int
    other_tasks_ns: int | None = None
    """The time that tasks other than the kernel's softirq thread ran on it; None where the kernel keeps no account."""
    speed_samples: int | None = None
    """The number of samples of this CPU's share of its physical core; None where sampling is impossible."""
    slow_samples: int | None = None
    """The number of samples slower than 80 % of its best speed: a neighbour on the other hyperthread. None as above."""
    clock_hz: float | None = None
    """The mean clock of its core while samples found it unshared (of all, where under a tenth did). None as above."""
    highest_clock_hz: float | None = None
    """The 99th percentile of the clocks of all samples since the engine began; None as above."""
    longest_pause_ns: int | None = None
    """The longest time that the CPU stood still, from the delay of a timer interrupt; None where it is not sampled."""
    looks: Looks | None = None
    """All samples; None where sampling is impossible, and in trials from before they were kept."""


class WorkerHealth(Frozen):
    """The health of one of several workers (protocol: ``health.workers``)."""

    longest_gap_ns: int
    total_gap_ns: int
    gaps: int
    iterations: int
    idle_iterations: int
    sent: int
    core_clock_hz: tuple[float, float] | None = None


class Health(Frozen):
    """The tester's own health during the transmission (protocol: ``health``); None is unknown.

    Gaps are of a worker's loop, which nicbench's own engine monitors; other generators report other figures.
    """

    longest_gap_ns: int | None = None
    total_gap_ns: int | None = None
    gap_floor_ns: int | None = None
    gaps: int | None = None
    iterations: int | None = None
    idle_iterations: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    clock_step_ns: int | None = None
    core_clock_hz: tuple[float, float] | None = None
    cpus: tuple[CpuTime, ...] = ()
    workers: tuple[WorkerHealth, ...] = ()
    """The health of each worker, where there are several; the values above are then sums, or the longest gap of any."""
    cpu_share: float | None = None
    """The CPU time that the busier of the sending and receiving cores used, 0..1, as the generator reports it."""
    queue_full: int | None = None
    """How often a transmit queue was full, as the generator reports it: frames were then sent late."""
    overtime_ns: int | None = None
    """How much longer than requested the generator took to send; negative where it took less."""
    time_uncertainty_ns: int | None = optional(None)
    """How exactly that is known."""

    @property
    def worst_total_gap_ns(self) -> int | None:
        """The sum of the gaps of the worker that was away longest; None where it is unknown."""
        of_workers = [worker.total_gap_ns for worker in self.workers]
        return max(of_workers) if of_workers else self.total_gap_ns

    @property
    def mean_total_gap_ns(self) -> float | None:
        """The sum of the gaps of a worker, on average; None where it is unknown."""
        return None if self.total_gap_ns is None else self.total_gap_ns / (len(self.workers) or 1)

    @property
    def held_up_ns(self) -> int:
        """For how long the load may have been another: a gap of our own engine, or another generator's overtime."""
        return self.longest_gap_ns if self.longest_gap_ns is not None else abs(self.overtime_ns or 0)


class StreamReading(Frozen):
    """The reading of one stream of a trial."""

    name: str
    counts: Counts
    maximum_burst: int | None = None
    sample: SampleOrder | None = None
    """The order of a sample of the stream's frames, where the tester numbers no others."""
    transmit_gaps: TransmitGaps | None = None
    latency: Latency | None = None
    checked_bytes: int | None = None
    """The number of bytes of each frame that the receiver compares: signature and payload."""
    reordering: Reordering | None = None
    variation: Variation | None = None
    intervals: Intervals | None = None
    arrivals: Arrivals | None = None
    last_jump_ns: int | None = None
    """When the last frame was sent that followed a gap in its flow's sequence; None where no frame is missing."""
    phase: int | None = None
    """The number of the phase, from 1, where the transmission has several: each phase is a stream of its own."""
    groups: tuple[FlowGroup, ...] = ()
    flows: Flows | None = None
    traffic_classes: TrafficClasses | None = optional(None)
    """None where they were not asked for."""


class PortReading(Frozen):
    """The reading of one port of the tester: counters are differences over the trial. None is unknown."""

    name: str
    arrived: int | None = None
    """Every frame that came by the end of the drain: each is in one count of a stream or of the port."""
    foreign: int | None = None
    misdirected: int | None = optional(None)
    """Frames of streams that do not end here; None where they are among the foreign ones."""
    stale: int | None = None
    corrupted_unattributed: int | None = None
    receive_overrun: int | None = None
    counters: dict[str, int] = Field(default_factory=dict)
    link_changed: bool = False
    timestamps: Stamps | None = None
    """The clock that time-stamps arriving frames; None where the time-stamp counter does."""


class LossPlace(Frozen):
    """One row of the loss ledger: a place where frames disappeared, and the counter that shows it.

    ``stage`` orders the places from sender to receiver (``measure/ledger/base.py``). ``unsent`` frames never left the
    tester and explain no lost frames. What was dropped ``by_tester`` is counted as lost: the trial is invalid.
    """

    place: str
    counter: str
    frames: int
    stage: int = 0
    unsent: bool = False
    by_tester: bool = optional(False)


class LossBeside(Frozen):
    """A drop counter that rose, and why it explains no loss: it may count others, or frames that were not lost."""

    place: str
    counter: str
    frames: int
    why: str


class Uncounted(Frozen):
    """Frames of which it is not known how many were lost: they are in no count of a trial.

    ``received`` are those that came by the last reading of the counters; None where nobody counts them.
    """

    flows: int
    sent: int
    received: int | None = None


class Reading(Frozen):
    """What the tester read in one trial, before the verdict. ``counts`` sums all streams and ports.

    ``transmit_ns`` ends when the last frame had left its port, as far as ports report it; ``sending_ns`` ends when the
    last frame was handed over; by then ``sent_while_sending`` frames had left. Both are ``None`` in journals from
    before they were measured.
    """

    transmit_ns: int
    sending_ns: int | None = None
    sent_while_sending: int | None = None
    drain_s: float | None = optional(None)
    """The time that frames had to arrive after the transmission, where it was longer than what was asked for."""
    learning: tuple[LearntFlows, ...] = optional(())
    """What came back of every stream's flows before the trial, when the DUT was taught them last."""
    counts: Counts
    uncounted: Uncounted | None = optional(None)
    """The frames that were sent in addition to the streams; None where every frame belongs to a stream."""
    streams: tuple[StreamReading, ...]
    beside: tuple[StreamReading, ...] = optional(())
    """Streams that are not load, and that no count includes: reports of membership, and copies at ports that should get
    none.
    """
    ports: tuple[PortReading, ...]
    latency: Latency | None
    health: Health
    ledger: tuple[LossPlace, ...] = ()
    ledger_beside: tuple[LossBeside, ...] = ()
    ledger_faults: tuple[str, ...] = ()
    """Faults of the counters: contradictions, or failures to read them. The trial's counts stay as they are."""
    unexplained: int | None = None
    capture: Capture | None = None
    flow_report: FlowReport | None = None
    dut_work: DutWork | None = None
    dut_waiting_share: float | None = None
    """The share of the trial's time in which a DUT that is nicbench's own process was ready to run but did not run."""
    replaced_connections: int | None = optional(None)
    """Connections that gave their place in the DUT's table to new ones; None where its kernel was not asked."""
    dut_queues: tuple[tuple[int, ...], ...] = ()
    """Frames that the DUT received, by port and queue; empty where it has one queue, or counts none."""
    queues: QueueReading | None = optional(None)
    """What receive queues and cores got; None where no method asked for it."""
    interrupted: InterruptionTimes | None = None
    machine: MachineHealth | None = None
    """The hardware health of the hosts; None where it was not read."""
    clocks: ClockMapping | None = optional(None)
    """Of a tester on two machines: how their clocks were mapped; None where they have one, or it was not possible."""
    changes: PathChanges | None = optional(None)
    """What others changed on the path meanwhile; None where nobody watched."""
    power: tuple[PowerOver, ...] = optional(())
    """What each meter said of the time in which frames passed; empty where no method asked for it."""

    @property
    def is_counted(self) -> bool:
        """Whether it is known what became of any frame that was sent."""
        return self.uncounted is None or self.counts.intended > 0

    @property
    def offering_ns(self) -> int:
        """The time over which frames were offered, the basis of rates; it excludes the wait for the last frames."""
        return self.sending_ns or self.transmit_ns


class Trial(Sample):
    """A finished trial: the request to the tester, and its reading."""

    kind = "trial"

    request: TrialRequest
    reading: Reading

    @property
    def measured_s(self) -> float:
        return self.reading.transmit_ns / 1e9

    @property
    def offering_ns(self) -> int:
        """The time over which the load was offered, the basis of rates, without the time in which stations join groups
        before it and leave them after it.
        """
        if self.request.groups is not None:
            return round(1e9 * self.request.duration_s)
        return self.reading.offering_ns

    @property
    def sent_frames_per_s(self) -> float | None:
        """The load that was sent: the requested load, by the share of it that was offered in the time taken."""
        asked, counts = self.request.load_frames_per_s, self.reading.counts
        if asked is None or not counts.intended:
            return None
        late = self.offering_ns / 1e9 / self.request.duration_s if self.request.frames is None else 1.0
        return asked * counts.offered / counts.intended / max(1.0, late)


# The identities of a trial's counts (docs/verdicts.md, "Counts"), held wherever counts come in.
#
# Engines, other testers, journals and tables of others are all held against these: a count is not right because
# somebody wrote it down.


MOST_FRAMES: Final = 2**63 - 1
"""More than any tester sends; a table holds no greater number."""
_FATES: Final = ("received", "lost", "late", "corrupted", "unattributed")
"""What becomes of a frame that was sent: each has one of these."""
_MOST_OF: Final = {"_frames": MOST_FRAMES, "loss_percent": 100, "loss_ratio": 1}
"""The greatest value that each of these can have, by the end of its name."""
_OF_PORTS: Final = ("corrupted_unattributed", "foreign", "misdirected", "stale")
"""Counts of ports, of which a stream has none."""
_ARRIVED: Final = ("received", "duplicated", "corrupted", "corrupted_copies")
"""Counts of a stream whose frames are among those that arrived at its port."""


def contradiction_in(counts: Mapping[str, int | None], *, into_sink: bool = False, is_load: bool = True) -> str | None:
    """Says in which way the counts of one stream, or of a whole trial, contradict themselves; None where they add up.

    A count that is unknown (None) contradicts nothing: such frames are among the others. Frames that go ``into_sink``
    come to nothing that is counted: to early versions none of them was lost. Frames that are not load (pause frames)
    are counted by what they hold, and two streams of them may be taken for one.
    """
    known = {name: count for name, count in counts.items() if count is not None}
    for name, count in known.items():
        if not 0 <= count <= MOST_FRAMES:
            return f"{name} is {count}: " + ("less than none" if count < 0 else "more than can be counted")
    intended = known["sent"] + known["unsent_tester"] + known["unsent_backpressure"]
    if known["intended"] != intended and is_load:
        return f"{known['intended']} frames were intended, and {intended} are sent and unsent together"
    came_to = sum(known.get(name, 0) for name in _FATES)
    if known["sent"] != came_to and not (into_sink and not came_to):
        told = ", ".join(f"{known[name]} {name}" for name in _FATES if known.get(name))
        return f"{known['sent']} frames were sent, and {came_to} are accounted for ({told or 'none'})"
    if known.get("reordered", 0) > known["received"]:
        return f"{known['reordered']} frames are reordered, of {known['received']} received"
    copied = known.get("duplicated", 0) + known.get("corrupted_copies", 0)
    if copied and not known["received"] + known.get("corrupted", 0) + known.get("late", 0):
        return f"{copied} frames came again, and none came first"
    return None


def contradiction_in_values(values: Mapping[str, object]) -> str | None:
    """Says which value of a result cannot be: a number of frames, or a share of them that is lost; None: each can."""
    for name, value in values.items():
        if not isinstance(value, int | float):
            continue
        most = next((most for end, most in _MOST_OF.items() if name.endswith(end)), None)
        if most is not None and not 0 <= value <= most:
            return f"{name} is {value}: " + ("less than none" if value < 0 else f"more than {most}")
    sent, lost = values.get("sent_frames"), values.get("lost_frames")
    if isinstance(sent, int) and isinstance(lost, int) and lost > sent:
        return f"{lost} frames are lost, of {sent} sent"
    return None


def require_identities(reading: Reading, *, into_sink: bool = False) -> None:
    """Raises ValueError for a reading whose counts contradict themselves: in all, of a stream, or at a port."""
    for where, why in _contradictions(reading, into_sink):
        raise ValueError(f"{where}{why}")


def _contradictions(reading: Reading, into_sink: bool) -> Iterator[tuple[str, str]]:
    for streams, is_load in ((reading.streams, True), (reading.beside, False)):
        for stream in streams:
            if (why := contradiction_in(vars(stream.counts), into_sink=into_sink, is_load=is_load)) is not None:
                yield f"stream {stream.name}: ", why
    if (why := contradiction_in(vars(reading.counts), into_sink=into_sink)) is not None:
        yield "", why
    if reading.streams:
        yield from _sums(reading)
    of_ways = [(way_of_stream(each.name), each.counts) for each in (*reading.streams, *reading.beside)]
    for number, port in enumerate(reading.ports):
        yield from _at_port(number, port, of_ways)


def _sums(reading: Reading) -> Iterator[tuple[str, str]]:
    of_streams = vars(Counts.sum_of(stream.counts for stream in reading.streams))
    for name, whole in vars(reading.counts).items():
        parts = of_streams[name]
        if whole != parts and None not in (whole, parts) and name not in _OF_PORTS:
            yield "", f"{name} is {whole}, and {parts} of all streams together"


def _at_port(number: int, port: PortReading, of_ways: Sequence[tuple[Way | None, Counts]]) -> Iterator[tuple[str, str]]:
    own = {name: getattr(port, name) for name in ("arrived", *_OF_PORTS, "receive_overrun")}
    for name, count in own.items():
        if count is not None and not 0 <= count <= MOST_FRAMES:
            yield f"port {port.name}: ", f"{name} is {count}, which cannot be"
    if own["arrived"] is None or any(way is None for way, _ in of_ways):
        return
    here = [vars(counts) for way, counts in of_ways if way is not None and way[1] == number]
    of_streams = [counts[name] for counts in here for name in _ARRIVED]
    came = sum_of_known([*of_streams, *(own[name] for name in _OF_PORTS)])
    if came is not None and came != own["arrived"]:
        yield f"port {port.name}: ", f"{own['arrived']} frames arrived, and {came} are accounted for"
