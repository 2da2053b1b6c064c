"""A round: workloads that run at the same time, what each tool said of itself, and the verdict. A journal line each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.bond import BondObservation, LinkFailure, LinkFailureOutcome
from nicbench.core.cpus import RanOn
from nicbench.core.frames import FrameFigures, FramesSpec
from nicbench.core.verdict import Sample

Transport = Literal["tcp", "udp", "rdma"]
Direction = Literal["forward", "reverse", "both"]
"""``forward``: the client sends to the server."""
Operation = Literal["stream", "request-response", "memory", "frames"]
"""Bytes one after another; a request that waits for its answer; the memory of one host alone (no server); files of
media frames in a directory of the client's, whoever serves it (no server process of ours)."""
Basis = Literal["one way", "half round trip", "round trip"]


class Placement(Frozen):
    """Where the processes of one side run: CPUs, and the memory node; None leaves it to the kernel."""

    cpus: tuple[int, ...] | None = None
    memory_node: int | None = None


class JobSpec(Frozen):
    """What a workload is asked to do; None leaves a setting to the tool's or the kernel's default.

    Either ``duration_s`` or ``total_bytes`` says when it ends. ``rate_bits_per_s`` is per stream: paced, or of UDP.
    """

    operation: Operation = "stream"
    transport: Transport = "tcp"
    direction: Direction = "forward"
    duration_s: float | None = None
    total_bytes: int | None = None
    write_bytes: int | None = None
    """Of one write, one datagram, one message, or one request (and its answer)."""
    streams: int = 1
    """Connections in parallel, or queue pairs."""
    window_bytes: int | None = None
    """Socket buffers, both sides."""
    congestion_control: str | None = None
    zero_copy: bool = False
    no_delay: bool = False
    rate_bits_per_s: float | None = None
    verb: Literal["write", "send", "read"] | None = None
    """Of RDMA."""
    source_file: str | None = None
    """On the sender; None: memory."""
    sink_file: str | None = None
    """On the receiver; None: memory."""
    frames: FramesSpec | None = Field(default=None, exclude_if=lambda asked: asked is None)
    """Of the operation ``frames``."""


class Job(Frozen):
    """One client process and, where the operation has a server, its server process.

    ``client`` and ``server`` are names of endpoints (ports); a ``memory`` workload has no server. ``port`` is the
    first TCP or UDP port that it may use, of ``ports_per_job`` (workloads/base.py). ``role`` says whether it is what
    is measured, a probe beside the load, or a load that only keeps the machine busy.
    """

    workload: str
    client: str
    server: str | None
    ask: JobSpec
    port: int
    role: Literal["load", "probe", "memory"] = "load"
    options: dict[str, Any] = Field(default_factory=dict)
    """The workload's own, as the bench file gives them."""
    client_placement: Placement = Placement()
    server_placement: Placement = Placement()
    label: str | None = Field(default=None, exclude_if=lambda label: label is None)
    """How it is called beside others of the same client ("instance 3")."""


class HostCommand(Frozen):
    """What is done on a host before a round, by ``sh -c``; the run ends where it fails."""

    host: str
    run: str
    timeout_s: float = 120.0
    on_machine: bool = False
    """On the machine that the host is on, which a container or a namespace is a part of."""


class RestartServers(Frozen):
    """The servers of the DUT's shares end and start anew before a round, and every client uses its mounts again."""

    restart: Literal["servers"] = "servers"


class RoundRequest(Frozen):
    """Jobs that begin together. ``timeout_s`` is for each of them, beyond its duration."""

    jobs: tuple[Job, ...]
    duration_s: float
    """How long the round is expected to take."""
    timeout_s: float = 30.0
    warm_up: bool = False
    before: tuple[HostCommand | RestartServers, ...] = Field(default=(), exclude_if=lambda commands: commands == ())
    """One after another, and the machines are not watched yet."""
    pause_s: float = Field(default=0.0, exclude_if=lambda pause: pause == 0.0)
    """Between those and the jobs."""
    failure: LinkFailure | None = Field(default=None, exclude_if=lambda failure: failure is None)
    """A link that goes down meanwhile, on purpose."""


class OwnFolder(Frozen):
    """A folder of ours on the host of an endpoint, in ``parent``, which is there; with room for so many bytes."""

    endpoint: str
    parent: str
    name: str
    """Below ``parent``: two parts, of which the first is nicbench's own."""
    needed_bytes: int

    @property
    def path(self) -> str:
        return f"{self.parent.rstrip('/')}/{self.name}"


class Preparation(Frozen):
    """What must be there before any round of a test, made once in each turn that plays one.

    Folders are made, and their room is seen to, before a job begins. Jobs run together; they measure nothing.
    """

    folders: tuple[OwnFolder, ...] = ()
    jobs: tuple[Job, ...] = ()
    timeout_s: float = 3600.0


class StreamFigures(Frozen):
    """One connection or queue pair of a job."""

    sent_bits_per_s: float | None = None
    received_bits_per_s: float | None = None
    retransmissions: int | None = None


class Flow(Frozen):
    """The figures of one direction of a job, by the tool's own word; None is unknown.

    Throughputs are of payload (goodput): bytes that the tool handed over, in bits per second.
    """

    direction: Literal["forward", "reverse"]
    sent_bytes: int | None = None
    received_bytes: int | None = None
    sent_bits_per_s: float | None = None
    received_bits_per_s: float | None = None
    duration_s: float | None = None
    retransmissions: int | None = None
    datagrams: int | None = None
    lost_datagrams: int | None = None
    jitter_s: float | None = None
    streams: tuple[StreamFigures, ...] = ()

    @property
    def bits_per_s(self) -> float | None:
        """What arrived, where the receiver says; else what was sent."""
        return self.received_bits_per_s if self.received_bits_per_s is not None else self.sent_bits_per_s


class RequestLatency(Frozen):
    """Times of a tool's requests, nanoseconds. ``basis`` says whether they are one way or of a round trip.

    ``percentiles_ns`` maps "50", "99", "99.9" to values; ``histogram`` is HdrHistogram V2 in base64, where the tool
    keeps its raw samples.
    """

    basis: Basis
    count: int | None = None
    minimum_ns: float | None = None
    mean_ns: float | None = None
    maximum_ns: float | None = None
    stdev_ns: float | None = None
    percentiles_ns: dict[str, float] = Field(default_factory=dict)
    histogram: str | None = None


class Figures(Frozen):
    """What a tool said, parsed and found plausible."""

    flows: tuple[Flow, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    """Seconds since the beginning at which an interval ended, and its bits per second, all flows together."""
    transactions_per_s: float | None = None
    latency: RequestLatency | None = None
    memory_bytes_per_s: float | None = None
    """Of a memory workload (STREAM's triad)."""
    frames: FrameFigures | None = Field(default=None, exclude_if=lambda found: found is None)
    client_cpu_share: float | None = None
    """Of one CPU, by the tool's word: 1.0 is one CPU busy all the time."""
    server_cpu_share: float | None = None
    congestion_control: str | None = None
    """As the tool read it back."""
    mss_bytes: int | None = None
    notes: tuple[str, ...] = ()


class JobOutcome(Frozen):
    """What came of a job: figures, or why there are none. Files are paths in the run folder."""

    figures: Figures | None = None
    failure: str | None = None
    """In words, with exit status and the tool's last words; None where there are figures."""
    repeatable: bool = True
    """Whether doing it again might help: not where the tool is missing or cannot do what was asked."""
    ends_run: bool = Field(default=False, exclude_if=lambda ends: not ends)
    """Whether every later round would fail alike: the disk is full, the directory is gone."""
    version: str | None = None
    server_version: str | None = None
    client_command: tuple[str, ...] = ()
    server_command: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = Field(default=(), exclude_if=lambda notes: notes == ())
    """What of the files that it left on its host could not be kept."""
    file_system: str | None = Field(default=None, exclude_if=lambda name: name is None)
    """Of the directory of a job of frames, as its client has it mounted: type and source."""
    server_ran_on: RanOn | None = None
    """Read while it worked, where it was to be at a place of its own."""
    began_s: float | None = None
    """When the client was started, seconds after the first of the round."""
    took_s: float | None = None


class MachineCpu(Frozen):
    """How busy a machine was during a round, shares 0..1 of all its CPUs; None is unknown.

    ``minimum`` and ``maximum`` are of the monitor's intervals, ``busiest_core`` the mean of the busiest CPU.
    """

    machine: str
    mean: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    busiest_core: float | None = None
    steal: float | None = None
    """What a hypervisor had taken away."""
    samples: int = 0
    cpus: int | None = None
    """How many the machine has."""
    monitor: float | None = None
    """The monitor's own share of all CPUs."""
    controller: float | None = None
    """That of nicbench's other processes."""


def _warms_up(known: dict[str, Any]) -> bool:
    """Whether a round warms up, from its fields before ``warm_up``."""
    return bool(known["request"].warm_up)


class Round(Sample):
    """A finished round: what was asked of the tools, and what each said of itself."""

    kind = "round"

    request: RoundRequest
    warm_up: bool = Field(default_factory=_warms_up, exclude=True)
    """As its request says, which the journal has."""
    outcomes: tuple[JobOutcome, ...]
    cpu: tuple[MachineCpu, ...] = ()
    counters: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By endpoint: what its interface counted over the round (bytes, packets, drops; PFC and ECN where there are)."""
    bonds: tuple[BondObservation, ...] = ()
    """Every bond under an interface of the test: which connection used which port."""
    failure: LinkFailureOutcome | None = Field(default=None, exclude_if=lambda failure: failure is None)
    """The link that went down because the test asked for it."""

    @property
    def measured_s(self) -> float:
        """Until the last client had ended; as long as was asked for where no client's time is known."""
        ended_s = [(job.began_s or 0.0) + job.took_s for job in self.outcomes if job.took_s is not None]
        return max(ended_s, default=self.request.duration_s)
