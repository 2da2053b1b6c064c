"""A trial: what was asked of the tester, what it read, and the verdict. One journal line each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.frame_size import Mix, Size
from nicbench.core.reading import (
    Arrivals,
    Capture,
    Counts,
    FlowGroup,
    FlowReport,
    Flows,
    Intervals,
    MachineHealth,
    Reordering,
    SampleOrder,
    Stamps,
    Variation,
)
from nicbench.core.verdict import Sample

CALIBRATION: Final = "calibration"
"""What the trials of the tester by itself have in the place of a test's name, and what their stage is called."""


class Purpose(StrEnum):
    """Why a trial was made."""

    CEILING = "ceiling"
    TESTER_LATENCY = "tester_latency"
    SEARCH = "search"
    LATENCY = "latency"
    AVERAGE = "average"
    LOSS = "loss"  # at a load that is given: how many frames come back
    BURST = "burst"  # so many frames and no more: whether all of them come back
    SOAK = "soak"  # one interval of a load that is held for long
    RESET = "reset"  # the DUT is reset meanwhile: how long it forwards nothing
    RECOVERY = "recovery"  # after an overload: when the last frame is lost


class Phase(Frozen):
    """A part of a transmission with a load of its own."""

    load_frames_per_s: float
    duration_s: float


class Interruption(Frozen):
    """A command that runs while frames are sent: on the DUT's host, the tester's, or the controller's machine."""

    command: tuple[str, ...]
    on: Literal["dut", "tester", "local"]
    after_s: float
    """From the beginning of the transmission."""
    timeout_s: float


class TrialRequest(Frozen):
    """One transmission, as a method asks for it.

    ``load_frames_per_s`` is per port (per stream); ``None`` means as fast as the ports take frames. RFC 2544 section 23
    gives the sequence: learning frames, settle, transmit, drain, read counters, settle.
    """

    frame_bytes: int | float
    load_frames_per_s: float | None
    duration_s: float
    drain_s: float
    settle_s: float
    purpose: Purpose
    bidirectional: bool = False
    mix: Mix | None = None
    """Sizes in proportion; ``frame_bytes`` is then their mean."""
    frames: int | None = None
    """So many frames of each load (``core/pattern.py``), and no more: with the last of them the transmission ends."""
    phases: tuple[Phase, ...] = ()
    """Loads one after another in one transmission; ``load_frames_per_s`` is the first's, ``duration_s`` the sum."""
    interruption: Interruption | None = None
    """What is done to the DUT meanwhile."""
    adjusts: bool = Field(default=False, exclude_if=lambda adjusts: not adjusts)
    """Whoever asks allows for what somebody else took of the DUT's core."""

    @property
    def size(self) -> Size:
        """The frame size as it was asked for."""
        return self.mix if self.mix is not None else int(self.frame_bytes)


class SharedCore(Frozen):
    """The frames that were under way while a look at one of the DUT's cores found it slow; of no look, none."""

    count: int
    histogram: str
    """HdrHistogram V2 in base64, nanoseconds."""


class Latency(Frozen):
    """One-way latency of a stream or of all streams of a trial, nanoseconds.

    ``source`` says by what a sent frame is stamped (``software``, ``scheduled``), ``received_by`` by what a received
    one is (``tsc``, ``card``, ``kernel``). ``negative`` frames arrived, by their stamps, up to ``negative_maximum_ns``
    before they were sent; they are among the latencies as 0.

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
    """Received frames of which these are a sample; None where every frame was timed."""
    shared_core: SharedCore | None = None
    """Those of the frames that a neighbour on the DUT's core may have delayed; None where nobody looked."""


class Looks(Frozen):
    """The looks at one core over a trial, in slots of equal length; ``stats/looks.py`` decodes them.

    ``begins_ns`` counts from the moment when the first frame was due. ``shares`` has a byte for each slot, zlib in
    base64: the core's speed in hundredths of its best, rounded down, and 0 where nobody looked.
    """

    begins_ns: int
    slot_ns: int
    shares: str


class CpuTime(Frozen):
    """How one watched CPU spent the transmission, nanoseconds."""

    cpu: int
    user_ns: int
    nice_ns: int
    system_ns: int
    softirq_ns: int
    irq_ns: int
    steal_ns: int
    idle_ns: int
    other_tasks_ns: int | None = None
    """Time that tasks ran on it, the kernel's softirq thread apart; None where the kernel keeps no account."""
    speed_samples: int | None = None
    """Looks taken at how much of the physical core this CPU got; None where nobody could look."""
    slow_samples: int | None = None
    """Of those, how many found it slower than 80 % of its best: a neighbour on the other hyperthread."""
    longest_pause_ns: int | None = None
    """The longest that it stood still: how late an interrupt of its timer came; None where nobody could look."""
    looks: Looks | None = None
    """Each look; None where nobody could look, and in trials from before they were kept."""


class WorkerHealth(Frozen):
    """How one of several workers fared (protocol: ``health.workers``)."""

    longest_gap_ns: int
    total_gap_ns: int
    gaps: int
    iterations: int
    idle_iterations: int
    sent: int
    core_clock_hz: tuple[float, float] | None = None


class Health(Frozen):
    """What the tester saw of itself during the transmission (protocol: ``health``); None is unknown.

    Gaps are of a worker's loop, which our own engine watches; other generators tell other things of themselves.
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
    """Each worker's own, where there are several; the values above are then sums, and the longest gap of any."""
    cpu_share: float | None = None
    """Of the sending and receiving cores' time that was used, the busier of the two, 0..1, by the generator's word."""
    queue_full: int | None = None
    """How often a transmit queue had no room, by the generator's word: what it sent then came late."""
    overtime_ns: int | None = None
    """How much longer than it was asked the generator took to send."""


class TransmitGaps(Frozen):
    """The time between a stream's frames as each sender handed them to the port, nanoseconds; 0 within a burst.

    ``histogram`` is HdrHistogram V2 in base64.
    """

    count: int
    minimum_ns: int
    mean_ns: float
    maximum_ns: int
    histogram: str


class StreamReading(Frozen):
    """One stream of a trial."""

    name: str
    counts: Counts
    maximum_burst: int | None = None
    sample: SampleOrder | None = None
    """What became of a sample of its frames, where the tester numbers no others."""
    transmit_gaps: TransmitGaps | None = None
    latency: Latency | None = None
    checked_bytes: int | None = None
    """Of each frame, those that the receiver compares: signature and payload."""
    reordering: Reordering | None = None
    variation: Variation | None = None
    intervals: Intervals | None = None
    arrivals: Arrivals | None = None
    last_jump_ns: int | None = None
    """When the last frame was sent that came right after a jump in its flow's sequence; None where none is missing."""
    phase: int | None = None
    """Of the transmission, from 1, where it has several: each phase is a stream of its own."""
    groups: tuple[FlowGroup, ...] = ()
    flows: Flows | None = None


class PortReading(Frozen):
    """One port of the tester: counters are differences over the trial. None is unknown."""

    name: str
    foreign: int | None = None
    corrupted_unattributed: int | None = None
    receive_overrun: int | None = None
    counters: dict[str, int] = Field(default_factory=dict)
    link_changed: bool = False
    timestamps: Stamps | None = None
    """The clock that stamps what arrives here; None where the time-stamp counter does."""


class LossPlace(Frozen):
    """One row of the loss ledger: where frames disappeared, by whose counter.

    ``stage`` orders the places from sender to receiver (``measure/ledger/base.py``). ``unsent`` frames never left the
    tester: they are among the unsent, not among the lost, and explain none of these.
    """

    place: str
    counter: str
    frames: int
    stage: int = 0
    unsent: bool = False


class LossBeside(Frozen):
    """A drop counter that rose too, and ``why`` it explains nothing: it may be of other frames, or of no lost ones."""

    place: str
    counter: str
    frames: int
    why: str


class DutWork(Frozen):
    """What the DUT's forwarding cores did over a trial, by the DUT's own account (``source``).

    Cycles are of the time-stamp counter, spent while packets were handled; ``counts_empty_polls`` says whether polls
    that found nothing are among them. ``core_clock_hz`` is the clock of the DUT's core, probed before and after.
    """

    source: str
    packets: int
    tsc_cycles: int
    tsc_hz: float | None = None
    counts_empty_polls: bool = False
    core_clock_hz: tuple[float, ...] = ()

    def subtract(self, before: DutWork) -> DutWork:
        """The difference of two cumulative accounts."""
        return self.model_copy(
            update={
                "packets": self.packets - before.packets,
                "tsc_cycles": self.tsc_cycles - before.tsc_cycles,
                "core_clock_hz": (*before.core_clock_hz, *self.core_clock_hz),
            }
        )

    @property
    def tsc_cycles_per_packet(self) -> float | None:
        """None where no packet was handled."""
        return self.tsc_cycles / self.packets if self.packets > 0 else None

    @property
    def mean_core_clock_hz(self) -> float | None:
        """None where it was not probed."""
        return sum(self.core_clock_hz) / len(self.core_clock_hz) if self.core_clock_hz else None

    @property
    def core_cycles_per_packet(self) -> float | None:
        """The same time in cycles of the core, whose clock is another than the time-stamp counter's."""
        tsc, clock = self.tsc_cycles_per_packet, self.mean_core_clock_hz
        return None if tsc is None or clock is None or not self.tsc_hz else tsc * clock / self.tsc_hz


class InterruptionTimes(Frozen):
    """When the command of an interruption ran, seconds since the transmission began, by the controller's clock."""

    began_s: float
    ended_s: float


class Reading(Frozen):
    """What the tester read in one trial, before anybody judges it. ``counts`` sums all streams and ports.

    ``transmit_ns`` runs until the last frame had left its port, as far as ports tell; ``sending_ns`` until the last was
    handed over, by when ``sent_while_sending`` had left. Both are None in journals from before they were measured.
    """

    transmit_ns: int
    sending_ns: int | None = None
    sent_while_sending: int | None = None
    counts: Counts
    streams: tuple[StreamReading, ...]
    ports: tuple[PortReading, ...]
    latency: Latency | None
    health: Health
    ledger: tuple[LossPlace, ...] = ()
    ledger_beside: tuple[LossBeside, ...] = ()
    ledger_faults: tuple[str, ...] = ()
    """What is wrong with the counters: they contradict each other, or could not be read. The trial's counts stay."""
    unexplained: int | None = None
    capture: Capture | None = None
    flow_report: FlowReport | None = None
    dut_work: DutWork | None = None
    dut_waiting_share: float | None = None
    """Share of the trial's time in which a DUT that is a process of ours was ready to run and did not."""
    interrupted: InterruptionTimes | None = None
    machine: MachineHealth | None = None
    """What the hardware of the hosts said of itself; None where nobody asked."""

    @property
    def offering_ns(self) -> int:
        """The time over which frames were offered: what rates count over. No wait for the last of them is in it."""
        return self.sending_ns or self.transmit_ns


class Trial(Sample):
    """A finished trial: what was asked of the tester, and what it read."""

    kind = "trial"

    request: TrialRequest
    reading: Reading

    @property
    def measured_s(self) -> float:
        return self.reading.transmit_ns / 1e9
