"""What a bench file says, frozen. Sections with a kind (lab, hosts, DUT, tests) hold the options of their plug-in.

The key ``runs`` is a number, or how many runs warm up, how many count, and when they may end.
"""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nicbench.core.base import Frozen
from nicbench.core.frozen import frozen
from nicbench.core.judging import Thresholds
from nicbench.core.machine import Controller, Hypervisor, HypervisorFiles, Monitoring, MonitorSettings
from nicbench.core.plan import DEFAULT_WISHES, ReportWishes
from nicbench.core.quantity import Ratio
from nicbench.core.traffic import Name, Traffic
from nicbench.core.turn import DEFAULT, MOST_RUNS, ONCE, Runs, Turn, interleave_turns
from nicbench.testbed.interfaces.base import Port

if TYPE_CHECKING:
    from nicbench.bench_file.optimised import Optimise
    from nicbench.methods.base import Measures
    from nicbench.testbed.testers.base import TesterKind
    from nicbench.tuning.tune import TuningRequest

_FEWEST: Final = 3
_CAP: Final = 20
_CONFIDENCE: Final = 0.95


class WrittenRuns(Frozen):
    """``{warm_up: 1, exactly: 5}``, or ``{warm_up: 1, at_least: 3, at_most: 20, until: 5 %, confidence: 95 %}``."""

    warm_up: int = Field(default=0, ge=0, le=100)
    """Runs of each configuration before the first one that counts."""
    exactly: int | None = Field(default=None, ge=1, le=MOST_RUNS)
    """A fixed number of runs that count. It excludes `until`. A number alone (`runs: 6`) means the same."""
    at_least: int | None = Field(default=None, ge=2, le=MOST_RUNS)
    """Runs of each configuration before the first decision; without it 3, or `at_most` where that is less."""
    at_most: int | None = Field(default=None, ge=2, le=MOST_RUNS)
    """The cap. Without it 20, or `at_least` where that is more."""
    until: Ratio | None = Field(default=None, gt=0.0)
    """Runs are added until the confidence interval of the mean of every main value is at most this share of the mean
    wide. Without it the number of runs is fixed.
    """
    confidence: Ratio | None = Field(default=None, ge=0.5, le=0.9999)
    """Confidence of that interval; without it `95 %`."""

    @property
    def resolved(self) -> Runs:
        """The settings with every default filled in."""
        if self.until is None:
            return Runs(warm_up=self.warm_up, at_least=self.exactly or 1, at_most=self.exactly or 1)
        return Runs(
            warm_up=self.warm_up,
            at_least=self._fewest,
            at_most=self.at_most or max(_CAP, self._fewest),
            until_ratio=self.until,
            confidence_ratio=self.confidence or _CONFIDENCE,
        )

    @property
    def _fewest(self) -> int:
        return self.at_least or min(_FEWEST, self.at_most or _FEWEST)

    @model_validator(mode="after")
    def _check_keys_fit_together(self) -> Self:
        growing = [key for key in ("at_least", "at_most", "confidence") if getattr(self, key) is not None]
        if self.until is None and growing:
            raise ValueError(f"`{growing[0]}` needs `until`: add `until: 5 %`, or write `exactly: 5` alone")
        if self.until is not None and self.exactly is not None:
            raise ValueError("`exactly` fixes the number of runs and `until` lets it grow: write only one of them")
        if self.at_most is not None and self.at_most < self._fewest:
            raise ValueError(f"`at_least` ({self.at_least}) is more than `at_most` ({self.at_most})")
        return self


def _expand_number(value: Any) -> Any:
    """Turns a number that stands alone into ``{exactly: NUMBER}``."""
    if isinstance(value, dict):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return {"exactly": value}
    raise ValueError("write a whole number of runs, or `{at_least: 3, at_most: 20, until: 5 %}`")


RunsKey = Annotated[WrittenRuns, BeforeValidator(_expand_number)]
"""The key ``runs`` of a bench file."""


LARGEST_SEED = 2**63 - 1
DEFAULT_TESTER = "packets"
"""The kind of a `tester` that names none: our own engine."""


@frozen
class Choice:
    """A plug-in chosen by ``kind``, with its options, which the plug-in's own model validated.

    ``on`` names the host of the bench file on which a lab, a namespace or a container is made; None: this machine.
    """

    kind: str
    options: Frozen
    plugin: type[Any]
    on: str | None = None


@frozen
class TestSpec:
    """One test: the method and its options, with every default filled in."""

    __test__ = False  # not a test class for pytest

    name: str
    method_kind: str
    options: Frozen
    plugin: type[Any]
    ports: int | None = None
    """How many ports of the measured host the bench file has; None for a test of frames."""
    clients: tuple[int, ...] = ()
    """How many clients each of them has."""

    def build(self) -> Any:
        """The method, ready to run."""
        method = self.plugin(self.name, self.options)
        if self.ports is not None:
            method.planned_ports, method.planned_clients = self.ports, self.clients
        return method


def _split_link(value: Any) -> Any:
    ends = [end.strip() for end in value.split("<->")] if isinstance(value, str) else []
    if len(ends) != 2 or not all(ends):
        what = f"`{value}`" if isinstance(value, str) else "this"
        raise ValueError(f"{what} is not a link: write `tester_port <-> dut_port`")
    return tuple(ends)


Link = Annotated[tuple[Name, Name], BeforeValidator(_split_link)]
"""Two ports that a cable joins, written ``t0 <-> d0``."""


_MOST_DECLARED = 64
_LONGEST_NAME, _LONGEST_TEXT = 64, 500


def _check_facts(value: Any) -> Any:
    """Checks the facts of a subject: one value, or several by name. ValueError names the one that is wrong."""
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
    """Checks the name of a subject or a fact, which becomes the label of a line in the report."""
    if not 1 <= len(name.strip()) <= _LONGEST_NAME or ":" in name or not name.isprintable():
        raise ValueError(f"`{name}` is not a name: write 1 to {_LONGEST_NAME} characters, without a colon")
    return name


Subject = Annotated[str, AfterValidator(_check_name)]
Declared = Annotated[Any, AfterValidator(_check_facts)]
"""Facts about a switch, a cable or a BIOS that no program can read, as the author typed them."""

Section = dict[str, Any] | str
"""A section with a kind, not validated yet; a kind without options may stand alone."""


class TestHead(Frozen):
    """The keys of every test beside its method's options."""

    __test__ = False

    name: Name
    """The name of the test, unique in the file. Other tests refer to it, and results carry it."""


class Document(Frozen):
    """The bench file as written; sections with a kind are still plain data."""

    nicbench: Literal[1]
    """The version of the bench-file format."""
    title: str = Field(min_length=1, max_length=200)
    """The title of the report, and part of the run folder's name."""
    description: str | None = None
    """A sentence or two for the report."""
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    """The seed of everything that is drawn at random."""
    lab: Section | None = None
    """A testbed that nicbench makes. Without it, write `hosts`, `ports` and `links`."""
    hosts: dict[Name, Section] = Field(default_factory=dict)
    """Machines, namespaces, containers and virtual machines, by name."""
    ports: dict[Name, Port] = Field(default_factory=dict)
    """Ports, by name."""
    links: tuple[Link, ...] = ()
    """Cables, each written `tester_port <-> dut_port`."""
    dut: Section
    """The device under test."""
    tester: Section = Field(default_factory=dict)
    """What sends the frames and reads them back. By default nicbench's own packet engine."""
    traffic: Traffic = Traffic()
    """The frames that are sent."""
    thresholds: Thresholds = Thresholds()
    """Overrides of the thresholds of a verdict."""
    tuning: Any = None
    """How the hosts are set up for the test. Every setting is restored afterwards."""
    monitor: Monitoring = MonitorSettings()
    """How often the machines are sampled while they are measured, or `off`."""
    tests: tuple[dict[str, Any], ...] = Field(min_length=1)
    """What is measured, in this order."""
    configurations: Any = None
    """What is compared: 2 to 64 overlays over the rest of the file, by name."""
    axes: Any = None
    """What a study varies, in place of `configurations`: overlays by axis and value. Every combination is measured."""
    optimise: Any = None
    """Settings whose best combination `nicbench optimise` searches for."""
    runs: RunsKey = WrittenRuns()
    """How often each configuration is measured: a number, or a rule that ends when the mean is known."""
    redact: bool = False
    """Replace serial numbers, MAC addresses, UUIDs, asset tags and host names by tokens in the run folder and its
    report.
    """
    report: ReportWishes = DEFAULT_WISHES
    """The layout of the report, and what its author adds to it."""
    declared: dict[Subject, Declared] = Field(default_factory=dict, max_length=32)
    """Facts that no program can read: switch, cables, BIOS settings."""
    redfish: dict[Name, Controller] = Field(default_factory=dict, max_length=64)
    """The management controllers (BMC) from which BIOS settings are read, by host."""
    hypervisor: dict[Subject, HypervisorFiles] = Field(default_factory=dict, max_length=16)
    """What the hypervisors of guests are set to, from files, by machine."""


@frozen
class BenchFile:
    """A valid bench file: every kind is resolved and cross-checked. ``thresholds`` holds overrides only.

    ``source`` is the file's text, ``written`` its content as plain data, with the units that its author chose. Of a
    file that compares configurations there is one for each, with its overlay merged; the first holds all.
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
    tuning: tuple[TuningRequest, ...] = ()
    configuration: str = DEFAULT
    runs: Runs = ONCE
    redact: bool = False
    report: ReportWishes = DEFAULT_WISHES
    declared: dict[str, Any] = field(default_factory=dict)
    redfish: dict[str, Controller] = field(default_factory=dict)
    hypervisor: dict[str, HypervisorFiles] = field(default_factory=dict)
    hypervisors: dict[str, Hypervisor] = field(default_factory=dict)
    """What the files of ``hypervisor`` say, once they are read."""
    monitor: MonitorSettings = field(default_factory=MonitorSettings)
    compared: tuple[BenchFile, ...] = ()
    optimise: Optimise | None = None
    """The settings to be searched; the bench file is then that of their first values."""
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The values of each axis, where the configurations are all of their combinations; only the first has them."""

    @property
    def measures(self) -> Measures:
        """Whether its tests measure by frames or by rounds of workloads; all of them do the same."""
        measures: Measures = self.tests[0].plugin.measures
        return measures

    @property
    def configurations(self) -> tuple[BenchFile, ...]:
        """Every configuration in the order of the file; only itself where none are compared."""
        return self.compared or (self,)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every run that each configuration can have, in the order in which they are made."""
        return interleave_turns([each.configuration for each in self.configurations], self.runs, self.seed)

    @property
    def sure_turns(self) -> tuple[Turn, ...]:
        """The turns that are made in any case; all of them where the number of runs is fixed."""
        least = self.runs.warm_up + self.runs.fewest_runs(len(self.configurations))
        return tuple(turn for turn in self.turns if turn.run <= least)

    def of_turn(self, turn: Turn) -> BenchFile:
        """The configuration whose turn it is."""
        return next(each for each in self.configurations if each.configuration == turn.configuration)

    def controller_of(self, role: str, host: str) -> Controller | None:
        """The management controller of a machine, by its host's name or its role; a lab has one for all."""
        named = self.redfish.get(host) or self.redfish.get(role)
        return named or (next(iter(self.redfish.values()), None) if self.lab is not None else None)

    def role_of(self, host: str) -> str:
        """``tester`` or ``dut``, by the links of the host's ports; the host's own name where it has none."""
        if self.measures == "rounds":
            return "dut" if host == self.dut.options.model_dump()["host"] else host
        for number, role in enumerate(("tester", "dut")):
            if any(link[number] in self.ports and self.ports[link[number]].host == host for link in self.links):
                return role
        return host

    def with_driver(self, driver: str) -> BenchFile:
        """This configuration with a driver for the tester's kernel interfaces, as if the bench file named it."""
        options = self.tester.options.replace(driver=driver)
        return replace(self, tester=replace(self.tester, options=options))

    def tester_kind(self) -> TesterKind:
        """The chosen kind of tester with its options; nothing is touched."""
        kind: TesterKind = self.tester.plugin(self.tester.options)
        return kind
