"""What a bench file says, frozen. Sections with a kind (lab, hosts, DUT, tests) hold the options of their plug-in."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    model_validator,
)

from nicbench.bench_file.runs import HowOften, WrittenRuns
from nicbench.interfaces._bond_options import BondOptions
from nicbench.interfaces._virtual_function_options import Mac, VirtualFunctionOptions
from nicbench.judge.thresholds import Thresholds
from nicbench.model.base import Frozen
from nicbench.model.controller import Controller
from nicbench.model.kernel_driver import KernelDriver
from nicbench.model.monitor import Monitoring, MonitorSettings
from nicbench.model.report_wishes import DEFAULT_WISHES, ReportWishes
from nicbench.model.runs import ONCE, Runs
from nicbench.model.traffic import Name, Traffic
from nicbench.model.turn import DEFAULT, Turn, interleaved

if TYPE_CHECKING:
    from nicbench.methods.base import Measures
    from nicbench.testers.base import TesterKind
    from nicbench.tuning.wishes import Wish

LARGEST_SEED = 2**63 - 1
FIRST_BOND = "bond0"
"""The name of a bond that nicbench makes, where a port gives it none."""
DEFAULT_TESTER = "packets"
"""The kind of a `tester` that names none: our own engine."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A plug-in chosen by ``kind``, and its options, validated by the plug-in's own model.

    ``on`` names the host of the bench file on which a lab, a namespace or a container is made; None: this machine.
    """

    kind: str
    options: Frozen
    plugin: type[Any]
    on: str | None = None


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


def _port_address(value: Any) -> Any:
    """With a prefix length an interface's address, without one a plain address."""
    if isinstance(value, IPv4Address | IPv6Address):
        return value
    try:
        if not isinstance(value, str):
            raise ValueError
        return ip_interface(value) if "/" in value else ip_address(value)
    except ValueError:
        raise ValueError(f"`{value}` is no address: write `198.18.0.1`, or `198.18.0.1/24` to have it given") from None


PortAddress = Annotated[
    IPv4Address | IPv6Address, PlainValidator(_port_address), PlainSerializer(str, when_used="json-unless-none")
]


class Port(Frozen):
    """A port on real hosts, by interface, by PCI address, or (tester only) as a DPDK virtual device."""

    host: Name
    device: str | None = None
    address: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$")
    vdev: str | None = None
    bond: BondOptions | None = Field(default=None, exclude_if=lambda bond: bond is None)
    """nicbench makes it of these interfaces; ``device`` is its name then."""
    virtual_function: VirtualFunctionOptions | None = Field(default=None, exclude_if=lambda made: made is None)
    """nicbench makes it on an adapter; ``device`` is its name then. Of one for DPDK it finds ``address``."""
    bind: Literal["vfio-pci"] | None = Field(default=None, exclude_if=lambda bind: bind is None)
    """nicbench gives its card to DPDK by this driver, and back."""
    mac: Mac | None = Field(default=None, exclude_if=lambda mac: mac is None)
    """Of a port that is given by ``address``: no kernel tells it then."""
    driver: KernelDriver | None = None
    ip: PortAddress | None = None
    """Where workloads reach it; with a prefix length nicbench gives it. None: the address that its interface has."""
    rdma: Literal["rxe"] | None = Field(default=None, exclude_if=lambda rdma: rdma is None)
    """Soft RoCE over its interface, which nicbench makes."""
    devargs: str = ""
    queue: int = Field(default=0, ge=0)
    lossless: bool = False

    @model_validator(mode="after")
    def _what_is_made_has_a_name(self) -> Self:
        made = FIRST_BOND if self.bond is not None else None
        if self.virtual_function is not None and self.bind is None:
            made = self.virtual_function.device
        if made is not None and self.device is None:
            # A validator that comes before, or around, would have the whole port read as Python's data, not as JSON.
            object.__setattr__(self, "device", made)
        return self

    @property
    def own_ip(self) -> IPv4Address | IPv6Address | None:
        """``ip`` without its prefix length."""
        return self.ip.ip if isinstance(self.ip, IPv4Interface | IPv6Interface) else self.ip

    @property
    def given_ip(self) -> IPv4Interface | IPv6Interface | None:
        """The address that nicbench gives it; None where it has one, or needs none."""
        return self.ip if isinstance(self.ip, IPv4Interface | IPv6Interface) else None

    @property
    def devices(self) -> tuple[str, ...]:
        """The kernel's interfaces that it stands on, as they are before anything is made of them."""
        if self.bond is not None:
            return self.bond.of
        if self.bind is not None:
            return ()
        return () if self.device is None else (self.device,)

    @property
    def is_made(self) -> bool:
        """Whether something is to be made of it before it can be used."""
        made = (self.given_ip, self.bond, self.virtual_function, self.bind, self.rdma)
        return any(each is not None for each in made)


def _link_ends(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    ends = [end.strip() for end in value.split("<->")]
    if len(ends) != 2 or not all(ends):
        raise ValueError(f"`{value}` is no link: write `tester_port <-> dut_port`")
    return tuple(ends)


Link = Annotated[tuple[Name, Name], BeforeValidator(_link_ends)]
"""Two ports that a cable joins, written ``t0 <-> d0``."""


_MOST_DECLARED = 64
_LONGEST_NAME, _LONGEST_TEXT = 64, 500


def _declared(value: Any) -> Any:
    """A subject's facts: one value, or several by name. ValueError says which is none."""
    facts = value if isinstance(value, dict) else {"": value}
    if not 1 <= len(facts) <= _MOST_DECLARED:
        raise ValueError(f"has {len(facts)} facts: write 1 to {_MOST_DECLARED}")
    for name, fact in facts.items():
        if value is facts:
            _check_name(name)
        whose = f"`{name}` " if name else ""
        if not isinstance(fact, str | bool | int | float):
            raise ValueError(f"{whose}must be a text, a number, `true` or `false`: write one, or several facts by name")
        if isinstance(fact, str) and not 1 <= len(fact.strip()) <= _LONGEST_TEXT:
            raise ValueError(f"{whose}must be a text of 1 to {_LONGEST_TEXT} characters")
    return value


def _check_name(name: str) -> str:
    """Of a subject or a fact: it becomes the label of a line."""
    if not 1 <= len(name.strip()) <= _LONGEST_NAME or ":" in name or not name.isprintable():
        raise ValueError(f"`{name}` is no name: write 1 to {_LONGEST_NAME} characters, without a colon")
    return name


Subject = Annotated[str, AfterValidator(_check_name)]
Declared = Annotated[Any, AfterValidator(_declared)]
"""What no program can read of a switch, a cable or a BIOS, as its author typed it."""

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
    tester: Section = Field(default_factory=dict)
    traffic: Traffic = Traffic()
    thresholds: Thresholds = Thresholds()
    tuning: Any = None
    """Read item by item (``tuning.py``); here for its name."""
    monitor: Monitoring = MonitorSettings()
    tests: tuple[dict[str, Any], ...] = Field(min_length=1)
    configurations: Any = None
    """Taken out before (``overlays.py``); here for its name."""
    runs: HowOften = WrittenRuns()
    redact: bool = False
    report: ReportWishes = DEFAULT_WISHES
    declared: dict[Subject, Declared] = Field(default_factory=dict, max_length=32)
    redfish: dict[Name, Controller] = Field(default_factory=dict, max_length=64)


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
    tester: Choice
    traffic: Traffic
    thresholds: dict[str, float]
    tests: tuple[TestSpec, ...]
    tuning: tuple[Wish, ...] = ()
    configuration: str = DEFAULT
    runs: Runs = ONCE
    redact: bool = False
    report: ReportWishes = DEFAULT_WISHES
    declared: dict[str, Any] = field(default_factory=dict)
    redfish: dict[str, Controller] = field(default_factory=dict)
    monitor: MonitorSettings = field(default_factory=MonitorSettings)
    compared: tuple[BenchFile, ...] = ()

    @property
    def measures(self) -> Measures:
        """By frames or by rounds of workloads, as all of its tests do."""
        measures: Measures = self.tests[0].plugin.measures
        return measures

    @property
    def configurations(self) -> tuple[BenchFile, ...]:
        """Every configuration, in the order of the file; itself where none are compared."""
        return self.compared or (self,)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every run that there can be of every configuration, in the order in which they are made."""
        return interleaved([each.configuration for each in self.configurations], self.runs, self.seed)

    @property
    def sure_turns(self) -> tuple[Turn, ...]:
        """Those of the turns that are made whatever they find; all of them where the number of runs is fixed."""
        least = self.runs.warm_up + self.runs.least(len(self.configurations))
        return tuple(turn for turn in self.turns if turn.run <= least)

    def of_turn(self, turn: Turn) -> BenchFile:
        """The configuration whose turn it is."""
        return next(each for each in self.configurations if each.configuration == turn.configuration)

    def controller_of(self, role: str, host: str) -> Controller | None:
        """The management controller of a machine, by its host's name or its role; a lab has one machine for all."""
        named = self.redfish.get(host) or self.redfish.get(role)
        return named or (next(iter(self.redfish.values()), None) if self.lab is not None else None)

    def role_of(self, host: str) -> str:
        """``tester`` or ``dut``, by the links of its ports; its own name where no link tells."""
        if self.measures == "rounds":
            return "dut" if host == self.dut.options.model_dump()["host"] else host
        for number, role in enumerate(("tester", "dut")):
            if any(link[number] in self.ports and self.ports[link[number]].host == host for link in self.links):
                return role
        return host

    def tester_kind(self) -> TesterKind:
        """The chosen kind of tester, with its options; nothing is touched."""
        kind: TesterKind = self.tester.plugin(self.tester.options)
        return kind
