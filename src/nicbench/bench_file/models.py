"""What a bench file says, frozen. Sections with a kind (lab, hosts, DUT, tests) hold the options of their plug-in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from nicbench.judge.thresholds import Thresholds
from nicbench.model.base import Frozen
from nicbench.model.quantity import Bytes, Seconds
from nicbench.model.traffic import Name, Traffic
from nicbench.model.turn import DEFAULT, Turn, interleaved

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """A plug-in chosen by ``kind``, and its options, validated by the plug-in's own model."""

    kind: str
    options: Frozen
    plugin: type[Any]


@dataclass(frozen=True, slots=True)
class TestSpec:
    """One test: the method and its options, with every default filled in."""

    __test__ = False  # not a test class for pytest

    name: str
    method_kind: str
    options: Frozen
    plugin: type[Any]

    def build(self) -> Any:
        """The method, ready to run."""
        return self.plugin(self.name, self.options)


KernelDriver = Literal["net_af_xdp", "net_af_packet", "net_pcap"]
"""How DPDK opens a kernel interface."""


class Port(Frozen):
    """A port on real hosts, by interface, by PCI address, or (tester only) as a DPDK virtual device."""

    host: Name
    device: str | None = None
    address: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
    vdev: str | None = None
    driver: KernelDriver | None = None
    devargs: str = ""
    queue: int = Field(default=0, ge=0)
    lossless: bool = False


def _link_ends(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    ends = [end.strip() for end in value.split("<->")]
    if len(ends) != 2 or not all(ends):
        raise ValueError(f"`{value}` is no link: write `tester_port <-> dut_port`")
    return tuple(ends)


Link = Annotated[tuple[Name, Name], BeforeValidator(_link_ends)]
"""Two ports that a cable joins, written ``t0 <-> d0``."""


class Capture(Frozen):
    """Received frames of each trial as pcapng: the first ``frames``, or ``around_loss`` before and after each loss."""

    frames: int | None = Field(default=None, ge=1, le=65_536)
    around_loss: int | None = Field(default=None, ge=1, le=4_096)

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Capture:
        if (self.frames is None) == (self.around_loss is None):
            raise ValueError("give either `frames` (the first of each trial) or `around_loss` (before and after each)")
        return self


class Worker(Frozen):
    """A core of the tester: the ports, by name, at which it sends and receives."""

    cpu: int = Field(ge=0)
    transmit: tuple[Name, ...] = ()
    receive: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _has_work(self) -> Self:
        if not self.transmit and not self.receive:
            raise ValueError("a worker that neither transmits nor receives has nothing to do: name its ports")
        return self


class Tester(Frozen):
    """How the engine sends and receives. ``None`` leaves the choice to nicbench; the plan says what was chosen."""

    driver: KernelDriver = "net_af_xdp"
    worker_cpu: int | None = Field(default=None, ge=0)
    workers: tuple[Worker, ...] = ()
    huge_pages: bool = False
    memory: Bytes = Field(default=512 * 2**20, ge=64 * 2**20)
    transmit_descriptors: int = Field(default=2048, ge=64, le=32_768)
    receive_descriptors: int = Field(default=8192, ge=64, le=32_768)
    send_buffer: Bytes = Field(default=64 * 2**20, ge=2**16)
    burst: int = Field(default=32, ge=1, le=512)
    catch_up: Seconds = Field(default=0.001, le=1.0)
    latency_from: Literal["software", "scheduled"] = "software"
    timestamps: Literal["tsc", "card", "kernel"] = "tsc"
    """What stamps received frames; every port of the tester must have it. Sent ones bear the time-stamp counter's."""
    capture: Capture | None = None
    reordering_n: int = Field(default=3, ge=3, le=64)
    """n-reordering (RFC 4737 section 5.3) is counted for n from 1 to this."""
    per_flow: Literal["counts", "histograms"] | None = None
    """A line for each flow of each trial, in the run folder; histograms take up to 112 KiB of memory a flow."""

    @model_validator(mode="after")
    def _workers_have_cores_of_their_own(self) -> Self:
        cpus = [worker.cpu for worker in self.workers]
        if cpus and self.worker_cpu is not None:
            raise ValueError(
                "`worker_cpu` is the CPU of one worker that does everything: leave it out beside `workers`"
            )
        if len(set(cpus)) < len(cpus):
            raise ValueError("each worker polls on a CPU of its own: give every one another `cpu`")
        return self


Section = dict[str, Any] | str
"""A section with a kind, still plain data; a kind without options may stand alone."""


class TestHead(Frozen):
    """What every test has beside its method's options."""

    __test__ = False

    name: Name


class Document(Frozen):
    """The bench file as written; sections with a kind are still plain data."""

    nicbench: Literal[1]
    title: str = Field(min_length=1, max_length=200)
    description: str | None = None
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    lab: Section | None = None
    hosts: dict[Name, Section] = Field(default_factory=dict)
    ports: dict[Name, Port] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    dut: Section
    tester: Tester = Tester()
    traffic: Traffic = Traffic()
    thresholds: Thresholds = Thresholds()
    tests: tuple[dict[str, Any], ...] = Field(min_length=1)
    configurations: Any = None
    """Taken out before (``overlays.py``); here for its name."""
    runs: int = Field(default=1, ge=1, le=1000)


@dataclass(frozen=True, slots=True)
class BenchFile:
    """A bench file that was understood: every kind resolved, cross-checked. ``thresholds`` holds overrides only.

    ``source`` is the file's text, ``written`` its content as plain data, with the units that its author chose. Where
    the file compares configurations, this is one of them, as if it had been written out, and the first holds all.
    """

    path: Path
    source: str
    written: dict[str, Any]
    title: str
    description: str | None
    seed: int
    lab: Choice | None
    hosts: dict[str, Choice]
    ports: dict[str, Port]
    links: tuple[tuple[str, str], ...]
    dut: Choice
    tester: Tester
    traffic: Traffic
    thresholds: dict[str, float]
    tests: tuple[TestSpec, ...]
    configuration: str = DEFAULT
    runs: int = 1
    compared: tuple[BenchFile, ...] = ()

    @property
    def configurations(self) -> tuple[BenchFile, ...]:
        """Every configuration, in the order of the file; itself where none are compared."""
        return self.compared or (self,)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every run of every configuration, in the order in which they are made."""
        return interleaved([each.configuration for each in self.configurations], self.runs, self.seed)

    def of_turn(self, turn: Turn) -> BenchFile:
        """The configuration whose turn it is."""
        return next(each for each in self.configurations if each.configuration == turn.configuration)
