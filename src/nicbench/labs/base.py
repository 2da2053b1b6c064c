"""A lab: a testbed made on the spot and removed afterwards; and the testbed itself, which real ports give as well."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from nicbench.hosts.base import Host
from nicbench.labs._rdma import RdmaPort
from nicbench.model.base import Frozen
from nicbench.model.endpoint import EndpointFacts
from nicbench.model.pattern import Pattern
from nicbench.tuning.changes import Changes


@dataclass(frozen=True, slots=True)
class TesterPort:
    """A port of the tester: ``engine`` is its object in the protocol's ``configure`` (kind and what belongs to it)."""

    name: str
    engine: dict[str, Any]
    device: str | None = None
    mac: str | None = None


@dataclass(frozen=True, slots=True)
class DutPort:
    """A port of the DUT, wired to the tester port of the same index. Addresses are those of RFC 2544 C.2.2 in a lab."""

    name: str
    device: str | None = None
    mac: str | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    vdev: str | None = None
    """For a DUT in user space: its end of the link as a virtual device, in DPDK's words."""
    address: str | None = None
    """For a DUT in user space: the PCI address of a card that DPDK drives."""


@dataclass(frozen=True, slots=True)
class CoreMap:
    """Which CPU does what. ``shared`` says that roles had to share one: the report labels the run with it."""

    worker: int | None
    dut: tuple[int, ...]
    housekeeping: tuple[int, ...]
    shared: bool


@dataclass(frozen=True, slots=True)
class TestHost:
    """A host of a testbed: its ``role``, how inventories call it, and the interfaces that the test uses there."""

    __test__ = False  # not a test class for pytest

    role: str
    name: str
    host: Host
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Testbed:
    """What a run works on.

    ``statements`` are what the report must say plainly (a veth measures this machine and no card).
    """

    tester: Host
    dut: Host | None
    tester_ports: tuple[TesterPort, ...]
    dut_ports: tuple[DutPort, ...]
    cores: CoreMap
    link_bits_per_s: float
    link_is_nominal: bool
    simulated: bool = False
    statements: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    eal: tuple[str, ...] = ()
    """Further arguments that the tester's DPDK needs for these ports."""
    same_port: bool = False
    """Frames are to come back on the port that they were sent on; with one port alone they always are."""
    promised_bytes: int = 0
    """Huge pages that are there for the tester, which has not taken them yet."""

    @property
    def test_hosts(self) -> tuple[TestHost, ...]:
        """The tester and, where it has one, the DUT."""
        near = tuple(port.device for port in self.tester_ports if port.device is not None)
        far = tuple(port.device for port in self.dut_ports if port.device is not None)
        tester = TestHost("tester", "tester", self.tester, near)
        return (tester,) if self.dut is None else (tester, TestHost("dut", "dut", self.dut, far))


@dataclass(frozen=True, slots=True)
class BondMember:
    """A port of a bond, and where it is known the interface at the other end of its link, on its host."""

    device: str
    far_host: Host | None = None
    far_device: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A port of a host that workloads reach by its address: ``facts`` is what methods see of it.

    ``members`` are the ports of its bond, where nicbench made one, in the order in which they joined it; ``far_bond``
    is the bond at their other end, on its host, where that host has no endpoint of its own (a switch).
    """

    host: Host
    facts: EndpointFacts
    rdma: RdmaPort | None = None
    members: tuple[BondMember, ...] = ()
    far_bond: tuple[Host, str] | None = None

    @property
    def name(self) -> str:
        """As the bench file calls the port."""
        return self.facts.name


@dataclass(frozen=True, slots=True)
class EndpointTestbed:
    """What a run of workloads works on: ``servers`` are the ports of the host that is measured, all on one host."""

    servers: tuple[Endpoint, ...]
    clients: tuple[Endpoint, ...]
    link_is_nominal: bool
    statements: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> Host:
        """The host that is measured."""
        return self.servers[0].host

    @property
    def test_hosts(self) -> tuple[TestHost, ...]:
        """Each host once, the measured one first."""
        ends = (*self.servers, *self.clients)
        hosts = {end.host.name: end.host for end in ends}
        devices = {
            name: tuple(end.facts.device for end in ends if end.host.name == name and end.facts.device is not None)
            for name in hosts
        }
        return tuple(
            TestHost("dut" if host is self.server else "clients", name, host, devices[name])
            for name, host in hosts.items()
        )

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """All, by name."""
        return {each.name: each for each in (*self.servers, *self.clients)}


@dataclass(frozen=True, slots=True)
class Objection:
    """Something wrong with the option ``key`` of a lab, and what to do."""

    key: str
    message: str
    next_step: str


def machine_words(host: Host) -> str:
    """The machine that a lab is made on, for its statements."""
    return "this machine" if host.shares_files else f"the machine {host.name}"


class Lab(ABC):
    """What all labs have: subclasses are a ``FrameLab`` or an ``EndpointLab``.

    Every change goes through ``changes`` so that it is undone after an error, a signal or a crash.
    """

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    touches_machine: ClassVar[bool] = True
    """False where nothing of the machine is used but its arithmetic: no lock, no root."""
    port_kind: ClassVar[str] = "kernel"
    """What the DUT's ports are: only a DUT of the same ``port_kind`` can stand on them."""
    largest_frame_bytes: ClassVar[int | None] = None
    """The largest frame of its ports, FCS included, where it is known before they are there; an ``mtu`` says it too."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    def objection_elsewhere(self) -> Objection | None:
        """What of its options cannot be where it is made on another machine (``on``)."""
        return None

    def objections(self, *, tester_has_huge_pages: bool, pattern: Pattern) -> tuple[Objection, ...]:
        """What of its options does not go with the tester's or the traffic's: found before a machine is touched."""
        return ()


class FrameLab(Lab):
    """Makes and removes a tester and a DUT with links between their ports."""

    time_stamp_advice: ClassVar[dict[str, str]] = {
        "kernel": "write `driver: net_pcap` under `tester`, or `timestamps: tsc`"
    }
    """What to do where the lab's ports lack the time stamps of a source."""

    has_sink: ClassVar[bool] = True
    """Whether ``without_dut`` can be entered, so that a plan knows beforehand what will be calibrated."""
    has_cable: ClassVar[bool] = True
    """The same of ``cable``."""

    @abstractmethod
    async def up(self, changes: Changes, local: Host) -> Testbed:
        """Builds it; NotReadyError where the machine lacks something."""

    def time_stamps(self, driver: str) -> frozenset[str]:
        """What may stamp the frames that arrive at its ports, beside the time-stamp counter, with this driver."""
        return frozenset({"kernel"} if self.port_kind == "kernel" and driver == "net_pcap" else ())

    @abstractmethod
    def without_dut(self, testbed: Testbed, changes: Changes) -> AbstractAsyncContextManager[bool]:
        """While entered, frames end at a sink behind the link instead of reaching the DUT: the tester's ceiling.

        Gives False where this lab has no such sink: the ceiling is then unknown.
        """

    @abstractmethod
    def cable(self, testbed: Testbed, changes: Changes) -> AbstractAsyncContextManager[bool]:
        """While entered, a frame sent on a tester port arrives on the other, as over a cable without DUT.

        Gives False where this lab has none: the tester's own latency is then unknown.
        """


class EndpointLab(Lab):
    """Makes and removes hosts with addresses, one of which is measured, for workloads between them."""

    port_kind = "endpoint"

    @abstractmethod
    def clients_of_ports(self) -> dict[str, tuple[str, ...]]:
        """The names of the clients of each port of the measured host, which are hosts of the same names as well."""

    @property
    def bond_links(self) -> int | None:
        """How many links the bond of each port has; None where a port is one link."""
        return None

    @property
    @abstractmethod
    def measured_host(self) -> str:
        """The name of the host that is measured."""

    @abstractmethod
    async def up(self, changes: Changes, local: Host) -> EndpointTestbed:
        """Builds it; NotReadyError where the machine lacks something."""
