"""A round: workloads that run at the same time, the report of each tool, and the verdict. One journal line each."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from nicbench.core.base import Choice, Frozen, optional
from nicbench.core.bond import BondObservation, LinkFailure, LinkFailureOutcome
from nicbench.core.connections import ConnectionFigures, ConnectionsSpec, ConnectionTable
from nicbench.core.judging import Sample
from nicbench.core.machine import RanOn
from nicbench.core.reading import PathChanges, Times

# The sender of a TCP stream over time, by its own kernel: what it delivered, what of that was marked, its window.
#
# Source: ``tcp_info`` of Linux (include/uapi/linux/tcp.h), as ``ss -ti`` prints it.


class SenderLook(Frozen):
    """The counts of a connection at one time, since it began; None where the kernel or ``ss`` does not tell."""

    at_s: float
    """Seconds since the clients of the round began."""
    acked_bytes: int
    """Payload that the receiver acknowledged."""
    delivered: int | None = None
    """Segments that arrived."""
    delivered_marked: int | None = None
    """Those of them whose acknowledgement reported a mark. A receiver of RFC 3168 repeats it until the sender answers,
    one of DCTCP (RFC 8257) does not.
    """
    resent: int = 0
    """Segments that were sent again."""
    round_trip_ns: float | None = None
    """The smoothed round-trip time."""
    window: int | None = None
    """The congestion window in segments."""


class SenderTrace(Frozen):
    """The connection of a job. ``job`` counts from 1; ``ecn`` is whether both ends agreed on ECN; None is unknown."""

    job: int
    congestion_control: str | None = None
    ecn: bool | None = None
    looks: tuple[SenderLook, ...] = ()


# Media frames as files: the request to a process that writes or reads them, and its figures (protocol/frames.md).


FramesTask = Literal["prepare", "write", "read"]
"""The task of a process; ``prepare`` writes the files that are read later, as fast as possible."""


class FramesSpec(Frozen):
    """The fields of ``configure`` of the protocol in protocol/frames.md; None leaves a field to the program's default.

    ``directory`` is a path on the host where the process runs.
    """

    task: FramesTask
    directory: str
    profile: str | None = None
    frame_bytes: int | None = None
    header_bytes: int | None = None
    frames: int | None = None
    after_s: float = 0.0
    """How long the process waits, once everything is ready, before its first frame."""
    warm_up_s: float = 0.0
    frames_per_s: float | None = None
    read_ahead_frames: int = 1
    order: Literal["forward", "reverse", "random"] = "forward"
    seed: int = 1
    threads: int = 1
    engine: Literal["auto", "sync", "io_uring", "threads"] = "auto"
    depth: int = 4
    request_bytes: int = 1_048_576
    """Bytes of one read or write call; 0 means a whole frame at once."""
    direct: bool = False
    sync: Literal["none", "frame", "end"] = "none"
    streamed: bool = False
    pattern: str | None = None
    first: int | None = None
    existing: bool = False
    content: Literal["unique", "stamped", "same"] = "unique"
    verify: Literal["none", "blocks", "full"] = "blocks"
    repeat: bool = False
    samples: bool = False
    """Whether the times of every single frame are kept."""


class FrameInterval(Frozen):
    """Figures of an interval, in nanoseconds since the first frame was due; ``dropped`` is ``None`` without a limit."""

    from_ns: int
    interval_ns: int
    frames: int
    bytes: int
    dropped: int | None = None


class FrameFigures(Frozen):
    """What one process reported of its measurement, without the warm-up.

    ``due_frames`` is the number of frames that were due during the measurement, ``dropped_frames`` the number of those
    that were completed too late; None where the process ran without a limit. ``lateness`` is 0 for frames on time.
    """

    engine: str
    measured_ns: int
    frames: int
    bytes: int
    frames_per_s: float
    bytes_per_s: float
    dropped_frames: int | None = None
    due_frames: int | None = None
    open: Times | None = None
    io: Times | None = None
    sync: Times | None = None
    close: Times | None = None
    completion: Times | None = None
    """The time for open, I/O, sync and close together."""
    lateness: Times | None = None
    cpu_ns: int | None = None
    """CPU time of the process and its kernel workers, over all ``all_frames`` frames."""
    all_frames: int | None = None
    sync_at_end_ns: int | None = None
    intervals: tuple[FrameInterval, ...] = ()


# Where workloads run: ports of hosts by their addresses, and folders of the measured host that clients mount.


class Vlan(Frozen):
    """A VLAN (IEEE 802.1Q): its number, and the interface that carries its frames."""

    number: int
    device: str


class EndpointFacts(Frozen):
    """Facts about an endpoint. ``port`` is the server port that a client is connected to; None for a server.

    Speeds are in bits per second. ``machine`` names the computer: two endpoints in namespaces of one machine share its
    CPUs. ``card`` tells ports of one adapter from those of another (the PCI device without its function); None where
    there is not a card. ``bond_links`` is the number of links of the endpoint's bond, where nicbench made one.
    """

    name: str
    host: str
    machine: str
    address: str
    device: str | None = None
    port: str | None = None
    link_bits_per_s: float | None = None
    card: str | None = None
    numa_node: int | None = None
    bond_links: int | None = optional(None)
    bucket_bytes: int | None = optional(None)
    """What a token bucket on the link lets pass at once, where nicbench holds the link to its rate by one."""
    vlan: Vlan | None = optional(None)
    """What ``device`` is, where it is the interface of a VLAN."""


# A share: a folder of the measured host that a client has mounted, and by which kind of server.


MOUNTS: Final = "/run/nicbench-mounts-"
"""Prefix of the path of every mount that nicbench makes on a client."""


class ShareChoice(Choice):
    """The choice of a file server: ``share: sftp``, or ``share: {kind: sftp, ...}`` with options of its plug-in."""

    plugins: ClassVar[str] = "nicbench.testbed.shares"


class Mount(Frozen):
    """Share number ``share`` (from 1) of the measured host, mounted on the host of the client ``endpoint``.

    ``directory`` is the mount point on that client's host. ``server_port`` names the measured port through which the
    share is reached, at ``address`` and the TCP port ``tcp_port``. Each mount has connections of its own, except with
    the kernel's NFS. ``survives_restart``: the mount works again after its server has been restarted.
    """

    share: int
    kind: str
    endpoint: str
    directory: str
    server_port: str
    address: str
    tcp_port: int
    survives_restart: bool = False


Transport = Literal["tcp", "udp", "rdma"]
Direction = Literal["forward", "reverse", "both"]
"""The direction of the data; with ``forward`` the client sends to the server."""
Verb = Literal["write", "send", "read"]
"""The operation of RDMA that moves the data."""
Operation = Literal["stream", "request-response", "memory", "frames", "connections"]
"""The operation of a job: a stream of bytes; requests, each of which waits for its response; access to the memory of
one host (no server); files of media frames in a directory of the client, whoever serves it (no server process of
nicbench); TCP connections by the clock.
"""
Basis = Literal["one way", "half round trip", "round trip"]


class Placement(Frozen):
    """Where the processes of one side run: CPUs and memory node; None leaves the choice to the kernel."""

    cpus: tuple[int, ...] | None = None
    memory_node: int | None = None


class JobSpec(Frozen):
    """The parameters of a workload; None leaves a setting to the default of the tool or the kernel.

    Either ``duration_s`` or ``total_bytes`` determines the end. ``rate_bits_per_s`` is the rate of each stream: the
    pacing rate, or the rate of UDP.
    """

    operation: Operation = "stream"
    transport: Transport = "tcp"
    direction: Direction = "forward"
    duration_s: float | None = None
    total_bytes: int | None = None
    write_bytes: int | None = None
    """Bytes of one write, one datagram, one message, or one request (and its response)."""
    streams: int = 1
    """The number of parallel connections or queue pairs."""
    window_bytes: int | None = None
    """The size of the socket buffers on both sides."""
    congestion_control: str | None = None
    zero_copy: bool = False
    no_delay: bool = False
    rate_bits_per_s: float | None = None
    verb: Verb | None = None
    """The operation of RDMA."""
    source_file: str | None = None
    """The path of a file on the sender; None: the source is memory."""
    sink_file: str | None = None
    """The path of a file on the receiver; None: the sink is memory."""
    frames: FramesSpec | None = optional(None)
    """The parameters of the operation ``frames``."""
    connections: ConnectionsSpec | None = optional(None)
    """The parameters of the operation ``connections``."""


class Job(Frozen):
    """One client process and, where the operation has a server, its server process.

    ``client`` and ``server`` are names of endpoints (ports); a ``memory`` workload has no server. ``port`` is the first
    TCP or UDP port that the job may use, of ``ports_per_job`` (workloads/base.py). ``role`` says whether the job is
    measured as the load, is a probe next to the load, or only keeps the memory busy.
    """

    workload: str
    client: str
    server: str | None
    ask: JobSpec
    port: int
    role: Literal["load", "probe", "memory"] = "load"
    options: dict[str, Any] = Field(default_factory=dict)
    """The options of the workload, as given in the bench file."""
    client_placement: Placement = Placement()
    server_placement: Placement = Placement()
    label: str | None = optional(None)
    """The job's label among others of the same client ("instance 3")."""
    begins_after_s: float = optional(0.0)
    """The time from the beginning of the round's clients until this one begins."""


class HostCommand(Frozen):
    """A command that ``sh -c`` runs on a host before a round; the run ends where the command fails."""

    host: str
    run: str
    timeout_s: float = 120.0
    on_machine: bool = False
    """Whether it runs on the machine that the host (a container or a namespace) is part of."""


class RestartServers(Frozen):
    """A restart of the servers of the DUT's shares before a round, after which every client uses its mounts again."""

    restart: Literal["servers"] = "servers"


class RoundRequest(Frozen):
    """A request for jobs that start together. ``timeout_s`` is for each job, on top of its duration."""

    jobs: tuple[Job, ...]
    duration_s: float
    """The expected duration of the round."""
    timeout_s: float = 30.0
    warm_up: bool = False
    before: tuple[HostCommand | RestartServers, ...] = optional(())
    """The actions before the jobs, one after another, while the machines are not monitored yet."""
    pause_s: float = optional(0.0)
    """The pause between the actions before the jobs and the jobs."""
    failure: LinkFailure | None = optional(None)
    """A link to take down on purpose during the round."""
    looks_at_senders: bool = optional(False)
    """Whether the connections of clients are looked at while they run (``Round.senders``)."""


class OwnFolder(Frozen):
    """A folder that nicbench makes on an endpoint's host, in an existing ``parent``, with room for ``needed_bytes``."""

    endpoint: str
    parent: str
    name: str
    """The path below ``parent``: two parts, of which the first is nicbench's own."""
    needed_bytes: int

    @property
    def path(self) -> str:
        return f"{self.parent.rstrip('/')}/{self.name}"


class Preparation(Frozen):
    """What must exist before any round of a test; made once in each turn that plays a round.

    Folders are made, and their free space is checked, before a job starts. The jobs run together and measure nothing.
    """

    folders: tuple[OwnFolder, ...] = ()
    jobs: tuple[Job, ...] = ()
    timeout_s: float = 3600.0


class ToolEnvironment(Frozen):
    """The environment variables of a tool's processes as they were passed, on hosts where they were all alike.

    Without the marks by which nicbench knows its processes; of what looks like a secret only the name is kept.
    """

    workload: str
    hosts: tuple[str, ...]
    variables: dict[str, str]


class RoundTrip(Frozen):
    """The round-trip times of a TCP connection as its sender's kernel estimated them, in nanoseconds."""

    minimum_ns: float
    mean_ns: float
    maximum_ns: float


class StreamFigures(Frozen):
    """The figures of one connection or queue pair of a job."""

    sent_bits_per_s: float | None = None
    received_bits_per_s: float | None = None
    retransmissions: int | None = None
    round_trip: RoundTrip | None = optional(None)


class Flow(Frozen):
    """The figures of one direction of a job, as reported by the tool; None is unknown.

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
        """The received rate where the receiver reports it, else the sent rate."""
        return self.received_bits_per_s if self.received_bits_per_s is not None else self.sent_bits_per_s


class RequestLatency(Frozen):
    """Latencies of a tool's requests, in nanoseconds. ``basis`` says whether they are one-way or round-trip times.

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
    """The figures that a tool reported, parsed and checked for plausibility."""

    flows: tuple[Flow, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    """Pairs of the end of an interval, in seconds since the client's start, and its bit rate, all flows together.

    Intervals that the tool leaves out of its rate, at the beginning, are missing.
    """
    transactions_per_s: float | None = None
    latency: RequestLatency | None = None
    memory_bytes_per_s: float | None = None
    """The memory bandwidth of a memory workload (STREAM's triad)."""
    frames: FrameFigures | None = optional(None)
    connections: ConnectionFigures | None = optional(None)
    client_cpu_share: float | None = None
    """The CPU use reported by the tool, as a share of one CPU: 1.0 is one CPU busy all the time."""
    server_cpu_share: float | None = None
    client_machine_cpu_share: float | None = optional(None)
    """The share 0..1 of all CPUs of the client's machine that was busy, with whatever, by the tool's own look."""
    server_machine_cpu_share: float | None = optional(None)
    client_service_demand_ns_per_byte: float | None = optional(None)
    """The busy time of all CPUs of the client's machine over the bytes moved, as the tool reported it."""
    server_service_demand_ns_per_byte: float | None = optional(None)
    congestion_control: str | None = None
    """The congestion control that the tool read back from the connection."""
    mss_bytes: int | None = None
    path_mtu_bytes: int | None = optional(None)
    """The path MTU that the sender's kernel had found for the first connection."""
    notes: tuple[str, ...] = ()


class JobOutcome(Frozen):
    """The outcome of a job: its figures, or why it has no figures. Files are paths in the run folder."""

    figures: Figures | None = None
    failure: str | None = None
    """The failure in words, with exit status and the tool's last words; None where there are figures."""
    repeatable: bool = True
    """Whether a repeat might help; false where the tool is missing or cannot do what was asked."""
    ends_run: bool = optional(False)
    """Whether every later round would fail in the same way: the disk is full, or the directory is gone."""
    version: str | None = None
    server_version: str | None = None
    client_command: tuple[str, ...] = ()
    server_command: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = optional(())
    """Which of the files that the job left on its host could not be kept, and why."""
    file_system: str | None = optional(None)
    """The file system of the directory of a job of frames, as its client has it mounted: type and source."""
    server_ran_on: RanOn | None = None
    """Where the server process ran, read while it worked; None where no placement was requested."""
    began_s: float | None = None
    """The start of the client, in seconds after that of the first client of the round."""
    took_s: float | None = None


CpuUser = Literal["own", "kernel", "nicbench", "stranger"]
"""Whom CPU time served: programs of the test, the kernel (interrupts and its threads), nicbench, or anybody else."""


class ProcessShare(Frozen):
    """The share 0..1 of all CPUs of a machine that processes of one name used during a round.

    ``processes`` is how many there were at its end; 0 where they had ended.
    """

    user: CpuUser
    name: str
    share: float
    processes: int = 1
    on_cpus: dict[int, float] = Field(default_factory=dict, exclude_if=lambda shares: shares == {})
    """Of strangers: the part of ``share`` of processes that were on one CPU at both counts, by its number."""


class MachineCpu(Frozen):
    """How busy a machine was during a round, as shares 0..1 of all its CPUs; None is unknown.

    ``minimum`` and ``maximum`` are over the monitor's intervals, ``busiest_core`` is the mean of the busiest CPU.
    ``own``, ``kernel``, ``nicbench``, ``strangers`` and ``idle`` are distinguished by processes (docs/verdicts.md).
    """

    machine: str
    mean: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    busiest_core: float | None = None
    steal: float | None = None
    """The share that a hypervisor took away (steal time)."""
    samples: int = 0
    cpus: int | None = None
    """The number of CPUs of the machine."""
    monitor: float | None = None
    """The share of all CPUs that the monitor itself used."""
    controller: float | None = None
    """The share of all CPUs that nicbench's other processes used."""
    counted_s: float | None = optional(None)
    """The time over which processes were counted, a little longer than the clients ran."""
    own: float | None = optional(None)
    """The share that the programs of the test used: clients, servers, and what these started."""
    kernel: float | None = optional(None)
    """The share of interrupts and of the kernel's threads, which work for the test."""
    nicbench: float | None = optional(None)
    """The share of nicbench itself: controller, monitor, and what carries commands to the machine."""
    strangers: float | None = optional(None)
    """The share of all other programs."""
    idle: float | None = optional(None)
    pressure: float | None = optional(None)
    """The share of the round's time in which some task was ready and waited for a CPU (/proc/pressure)."""
    processes: tuple[ProcessShare, ...] = optional(())
    """The ten greatest shares, the greatest first."""

    @property
    def of_test(self) -> float | None:
        """The share that the test took: its programs, and the kernel's work."""
        return None if self.own is None or self.kernel is None else self.own + self.kernel


def _warms_up(known: dict[str, Any]) -> bool:
    """Returns whether a round belongs to a warm-up run, from the fields that are validated before ``warm_up``."""
    return bool(known["request"].warm_up)


class Round(Sample):
    """A finished round: the request to the tools, and the report of each tool."""

    kind = "round"

    request: RoundRequest
    warm_up: bool = Field(default_factory=_warms_up, exclude=True)
    """Whether it belongs to a warm-up run; derived from the request, which the journal contains."""
    outcomes: tuple[JobOutcome, ...]
    cpu: tuple[MachineCpu, ...] = ()
    counters: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By endpoint, what its interface counted over the round (bytes, packets, drops; PFC and ECN where available)."""
    bonds: tuple[BondObservation, ...] = ()
    """Every bond under an interface of the test: which connection used which port."""
    environments: tuple[ToolEnvironment, ...] = optional(())
    """The environments of its tools, by tool and host."""
    failure: LinkFailureOutcome | None = optional(None)
    """The outcome of the link failure that the test asked for."""
    changes: PathChanges | None = optional(None)
    """What others changed on the path meanwhile; None where nobody watched."""
    senders: tuple[SenderTrace, ...] = optional(())
    """The connections of clients over time, where the request asked for them."""
    connection_table: ConnectionTable | None = optional(None)
    """The DUT's table of tracked connections, where jobs open connections; None where its kernel tracks none."""

    @property
    def measured_s(self) -> float:
        """The time until the last client had ended; the requested duration where no client's times are known."""
        ended_s = [(job.began_s or 0.0) + job.took_s for job in self.outcomes if job.took_s is not None]
        return max(ended_s, default=self.request.duration_s)
