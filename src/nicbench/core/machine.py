"""A machine: its CPUs, hypervisor, management controller and monitor, and the readings of its cores, queues and power.

A bench file or the kernel names the former; the latter are read around the trials.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from nicbench.core.base import Frozen, optional
from nicbench.core.headers import FlowRule
from nicbench.core.quantity import Seconds

# The work of a DUT's forwarding cores over a trial, by its own account.


class DutWork(Frozen):
    """The work of the DUT's forwarding cores over a trial, by the DUT's own account (``source``).

    Cycles are of the time-stamp counter, spent while packets were handled; ``counts_empty_polls`` says whether polls
    that found nothing are included. ``core_clock_hz`` is the clock of the DUT's core, probed before and after.
    ``batches`` is how many times its code took packets, where it works on several at once and counts that.
    """

    source: str
    packets: int
    tsc_cycles: int
    tsc_hz: float | None = None
    counts_empty_polls: bool = False
    core_clock_hz: tuple[float, ...] = ()
    batches: int | None = None

    def subtract(self, before: DutWork) -> DutWork:
        """Returns the difference of two cumulative accounts."""
        return self.replace(
            packets=self.packets - before.packets,
            tsc_cycles=self.tsc_cycles - before.tsc_cycles,
            core_clock_hz=(*before.core_clock_hz, *self.core_clock_hz),
            batches=None if self.batches is None else self.batches - (before.batches or 0),
        )

    @property
    def tsc_cycles_per_packet(self) -> float | None:
        """Returns the time-stamp counter's cycles per packet; None where no packet was handled."""
        return self.tsc_cycles / self.packets if self.packets > 0 else None

    @property
    def packets_per_batch(self) -> float | None:
        """Returns the mean number of packets that were taken at once; None where it is not counted."""
        return self.packets / self.batches if self.batches else None

    @property
    def mean_core_clock_hz(self) -> float | None:
        """Returns the mean of the probed core clocks; None where the clock was not probed."""
        return sum(self.core_clock_hz) / len(self.core_clock_hz) if self.core_clock_hz else None

    @property
    def core_cycles_per_packet(self) -> float | None:
        """Returns the core's own cycles per packet, as the core's clock differs from the time-stamp counter's."""
        tsc, clock = self.tsc_cycles_per_packet, self.mean_core_clock_hz
        return None if tsc is None or clock is None or not self.tsc_hz else tsc * clock / self.tsc_hz


# What a machine draws, as its own meters say it: which meter, of what, over which window.


class PowerPart(StrEnum):
    """What a meter measures, from the widest to the narrowest; a wider part contains the narrower ones."""

    MACHINE = "machine"
    """Everything behind the plug, as a management controller or ACPI reports it."""
    SUPPLIES = "supplies"
    """The input of the power supplies."""
    PLATFORM = "platform"
    """The domain ``psys`` of RAPL: packages, memory and what else stands on the board."""
    PACKAGES = "packages"
    """Processor packages. Their memory is not in them."""
    MEMORY = "memory"
    COMPONENT = "component"
    """A card or a regulator: contained in the machine, and in nothing else that is known."""

    @property
    def words(self) -> str:
        """The part as a table names it."""
        return _WORDS[self]


_WORDS = {
    PowerPart.MACHINE: "whole machine",
    PowerPart.SUPPLIES: "power supplies",
    PowerPart.PLATFORM: "platform",
    PowerPart.PACKAGES: "processor packages",
    PowerPart.MEMORY: "memory",
    PowerPart.COMPONENT: "component",
}


class PowerSource(Frozen):
    """One meter of a machine: by what it is read (``method``), what it measures, and its name there.

    ``averaging_s`` is the time over which a reading averages; ``averaging_is_told`` says whether the meter tells it, or
    it was taken from the options of the test. ``resolution_watts`` is the smallest step of a reading.
    """

    machine: str
    method: str
    part: PowerPart
    name: str
    counts_energy: bool
    averaging_s: float
    averaging_is_told: bool = True
    resolution_watts: float = 0.0
    has_dut: bool = True
    """Whether the DUT is on this machine."""

    @property
    def row(self) -> str:
        """What a table calls it: sources of one part and method are disjoint and make one row, except components."""
        words = f"{self.part.words} ({self.method})"
        return f"{words}: {self.name}" if self.part is PowerPart.COMPONENT else words


class PowerOver(Frozen):
    """What one source read over one window; ``watts`` is ``None`` where it said nothing usable, and ``why``."""

    source: PowerSource
    at_s: float
    """The middle of the window: seconds since 1970; in a simulated lab, of its own time."""
    window_s: float
    readings: int
    watts: float | None
    why: str | None = None


class PowerWish(Frozen):
    """What a test asks of meters: their methods in lower case, and the averaging time of those that tell none."""

    methods: tuple[str, ...]
    averaging_s: float


class PowerFacts(Frozen):
    """What is known before a test: the sources of all machines, and what was there but could not be read.

    ``is_one_machine``: tester and DUT share it, so that every figure is of both.
    """

    sources: tuple[PowerSource, ...] = ()
    unread: tuple[str, ...] = Field(default=())
    is_one_machine: bool = False


# What receive queues and cores of a machine got in a trial, and what was known of the hash that chose the queue.


QueueSide = Literal["dut", "tester"]


class ReceiveHash(Frozen):
    """How an adapter chooses the queue of a frame, as it says itself; None and empty: it does not say.

    ``fields`` are ethtool's letters for what goes into the hash of the trial's frames. ``key_from`` is where the key
    was read. ``rules`` for single flows come before the hash; ``other_rules`` are those that say more than is
    understood here.
    """

    function: str | None = None
    key: str | None = None
    key_from: str | None = None
    table: tuple[int, ...] = ()
    fields: str | None = None
    rules: tuple[FlowRule, ...] = ()
    other_rules: int = 0


class PortQueues(Frozen):
    """Frames that each receive queue of one port got in a trial.

    ``port`` is the number of the tester's port at the other end, or the port itself on the tester's ``side``.
    ``expected`` are the frames of the trial that the hash sends to each queue, computed for every flow; None where that
    cannot be computed, and ``why_not``. ``source`` names the counters.
    """

    side: QueueSide
    port: int
    device: str
    driver: str
    source: str
    frames: tuple[int, ...]
    hash: ReceiveHash | None = None
    expected: tuple[int, ...] | None = None
    why_not: str | None = None


class CoreFrames(Frozen):
    """Frames that the kernel's stack handled on one CPU of a machine, whoever sent them, and network softirqs there."""

    side: QueueSide
    cpu: int
    frames: int
    softirqs: int


class QueueReading(Frozen):
    """What was read of queues and cores around a trial; ``unread`` says why ports are missing."""

    ports: tuple[PortQueues, ...] = ()
    cores: tuple[CoreFrames, ...] = ()
    unread: tuple[str, ...] = ()


# The monitor: its settings in a bench file, and what a report discloses about it.


class MonitorSettings(Frozen):
    """The settings of the monitor: ``monitor: {interval: 100 ms}``, or ``monitor: off``."""

    interval: Seconds = Field(default=1.0, ge=0.1, le=60.0)
    """Time from one sample to the next."""
    enabled: bool = True
    """`false`, or `monitor: off`: nothing is sampled, and CPU time used by other programs during a round is not looked
    for. What others change on the path of frames still is.
    """


def _off(value: Any) -> Any:
    """Accepts ``off``, which YAML 1.2 reads as a string and not as a boolean."""
    return {"enabled": value == "on"} if value in ("off", "on") else value


Monitoring = Annotated[MonitorSettings, BeforeValidator(_off)]
"""The section ``monitor`` of a bench file."""


class MonitorPlan(Frozen):
    """How a host is monitored, decided before its first trial.

    ``cpus`` are the CPUs that the monitor is bound to, empty where it is not bound. ``during_trials`` describes in
    words what the monitor does while frames are sent; with ``paused`` a trial is one sample, from its beginning to its
    end.
    """

    host: str
    interval_s: float
    cpus: tuple[int, ...] = ()
    paused: bool
    during_trials: str
    version: str | None = None
    missing: dict[str, str] = Field(default_factory=dict)
    """Sources that this host lacks, each with the reason."""
    recorder: str | None = optional(None)
    """For imported results, the program that recorded them, with its version; None for nicbench's own monitor."""


class MonitorCost(Frozen):
    """The cost of a monitor by its own account (getrusage(2)): CPU time in user mode and in the kernel, nanoseconds."""

    cpu_ns: int
    elapsed_ns: int
    samples: int
    maximum_sample_ns: int
    resident_bytes: int | None = None

    @property
    def share_of_a_core(self) -> float | None:
        """The share of one CPU that the monitor used, 0..1; None before any time has passed."""
        return self.cpu_ns / self.elapsed_ns if self.elapsed_ns > 0 else None


# CPUs as the kernel lists them, and the NUMA nodes they belong to.


# Lists of CPUs as the kernel and taskset(1) write them: ``0-2,5``.


_MOST_CPUS = 8192  # CONFIG_NR_CPUS of arch/x86/Kconfig at most


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Parses a list of CPUs; each CPU appears once, in the order of the list. An empty list gives no CPU.

    Raises ValueError for text that is not a CPU list, or that has more CPUs than Linux supports.
    """
    cpus: list[int] = []
    for part in filter(str.strip, text.split(",")):
        first, dash, last = part.partition("-")
        start, end = int(first), int(last) if dash else int(first)
        if not 0 <= start <= end < _MOST_CPUS:
            raise ValueError(f"{part[:20]!r} is no range of CPUs")
        cpus.extend(range(start, end + 1))
        if len(cpus) > 2 * _MOST_CPUS:
            raise ValueError(f"{text[:20]!r} names more CPUs than there can be")
    return tuple(dict.fromkeys(cpus))


def cpu_list(cpus: Iterable[int]) -> str:
    """Formats CPUs as a list like ``0-2,5``, each once and in ascending order."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


# NUMA nodes.


class NumaNode(Frozen):
    """A NUMA node that has CPUs; its number is the kernel's."""

    number: int
    cpus: tuple[int, ...]


class RanOn(Frozen):
    """Where a process actually ran, according to ``/proc/PID``, as opposed to where it was asked to run."""

    cpus: tuple[int, ...]
    """The CPUs on which the kernel allowed the process to run (``Cpus_allowed_list``)."""
    pages: dict[int, int] | None = None
    """Anonymous pages of the process's memory by node (``numa_maps``); None where the kernel does not report them."""


# What a hypervisor is set to, read from files that its administrator saved: plain tables, as a plan keeps them.


FileName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class HypervisorFiles(Frozen):
    """``{libvirt: guest.xml}``, or ``{esxi: {version: version.txt}}``: files, by what they say."""

    libvirt: FileName | None = None
    """A file with the output of `virsh dumpxml GUEST`."""
    esxi: dict[Annotated[str, StringConstraints(min_length=1, max_length=64)], FileName] = Field(
        default_factory=dict, max_length=64
    )
    """Files with outputs of `esxcli`, by what they say."""

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        if (self.libvirt is None) == (not self.esxi):
            raise ValueError("name either a file of `libvirt` or the files of `esxi`: a guest has one hypervisor")
        return self

    @property
    def named(self) -> dict[str, str]:
        """Each file by what it says."""
        return {"domain": self.libvirt} if self.libvirt is not None else dict(self.esxi)


class HypervisorTable(Frozen):
    """Facts by their labels, where there are no ``heads``; else things side by side."""

    title: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Hypervisor(Frozen):
    """The tables of one guest's hypervisor, and the names of the files that they were read from."""

    kind: str
    files: tuple[str, ...]
    tables: tuple[HypervisorTable, ...]


# Where the management controller (BMC) of a machine is, and who may query it. The password itself is never stored.


_LONGEST: Final = 500

# These checks do not quote what they refuse, because it may be a password in the wrong place.


def _url(value: Any) -> str:
    """Checks the URL: ``https://host`` with an optional port.

    Plain http is allowed to this machine only, because it exposes the password.
    """
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() and " " not in value else None
        host, _ = (parts.hostname, parts.port) if parts else (None, None)
    except ValueError:
        parts, host = None, None
    if parts is None or not host or parts.scheme not in ("http", "https") or len(value) > _LONGEST:
        raise ValueError("is no address of a management controller: write `https://HOST` or `https://HOST:PORT`")
    if parts.username is not None or parts.password is not None:
        raise ValueError("has a user or a password in it: write `user` and `password_env` or `password_file` instead")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("has a path: write `https://HOST` alone, Redfish itself says where its resources are")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("would send the password in the clear: write `https://`")
    return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    """Returns whether the host of a URL is this machine, judged by its name alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value):
        raise ValueError("is no name of an environment variable: write its name, not the password")
    return value


def _path(value: Any) -> str:
    """Checks that a path is absolute or below the home folder, so that it does not depend on the current folder."""
    if not isinstance(value, str) or not value.startswith(("/", "~/")) or not value.isprintable():
        raise ValueError("is no path of a file: write one that begins with `/` or `~/`")
    return value


def _verify(value: Any) -> Any:
    if value is False:
        raise ValueError("cannot be `false`: give the controller's own certificate as the path of a CA file")
    return value if value is True else _path(value)


class Controller(Frozen):
    """A machine's management controller and how to log in to it.

    ``verify``: true for the certificate authorities of this machine, or the path of a PEM file with others. ``system``
    is the last part of the system's path, where the controller has several systems (blades, partitions).
    """

    url: Annotated[str, BeforeValidator(_url)]
    """`https://HOST` or `https://HOST:PORT`, without a path. `http://` is accepted only for this machine."""
    user: str = Field(min_length=1, max_length=100, pattern=r"^[^:\x00-\x1f]+$")
    """An account that may read; the role ReadOnly is enough."""
    password_env: Annotated[str, BeforeValidator(_variable)] | None = None
    """The environment variable that holds the password. Give this or `password_file`."""
    password_file: Annotated[str, BeforeValidator(_path)] | None = None
    """A file that holds the password: an absolute path or one from `~/`, with mode 0600."""
    verify: Annotated[Literal[True] | str, BeforeValidator(_verify)] = True
    """`true`: verify the certificate by the authorities of this machine. Or the path of a PEM file, for example the
    controller's own self-signed certificate. The name in the certificate is always verified.
    """
    system: str | None = Field(default=None, min_length=1, max_length=100)
    """Which system, where a controller has several: the last part of its path."""

    @model_validator(mode="after")
    def _one_password(self) -> Controller:
        if (self.password_env is None) == (self.password_file is None):
            raise ValueError("needs `password_env` or `password_file`, one of them")
        return self
