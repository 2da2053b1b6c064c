"""Labs, which make a testbed for one run and remove it afterwards; and testbeds, which real ports form as well, with
the CPUs of tester and DUT.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Any, ClassVar, Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.frozen import frozen
from nicbench.core.pattern import Pattern
from nicbench.core.quantity import Ratio, Seconds
from nicbench.core.round import EndpointFacts
from nicbench.hosts.base import Host
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.interfaces.host_interfaces import RdmaPort
from nicbench.tuning.changes import Changes

# What the machine of a simulated lab draws: a straight line over the rate that it forwards, with noise and drift.
#
# It has two meters, as a server has: the reading of a management controller, which is of the whole machine, and an
# energy counter of its processor package, which draws a share of that.


class SimulatedPower(Frozen):
    """``power: {idle_watts: 120, joules_per_gigabit: 0.8}`` under ``lab``."""

    idle_watts: float = Field(default=100.0, gt=0.0, le=1e5)
    """What the machine draws without frames, in watts."""
    joules_per_gigabit: float = Field(default=1.0, ge=0.0, le=1e6)
    """What each gigabit that it forwards adds (layer 2), in joules."""
    package: Ratio = 0.6
    """The share of both that its processor package draws."""
    noise_watts: float = Field(default=0.5, ge=0.0, le=1e4)
    """Standard deviation of what the machine draws in a second, in watts."""
    drift_watts_per_hour: float = Field(default=0.0, ge=-1e6, le=1e6)
    """By how much what it draws without frames changes, in watts an hour."""
    averaging: Seconds = Field(default=1.0, ge=0.1, le=60.0)
    """Over how long the controller's reading averages."""
    counter_range_joules: float = Field(default=262_143.0, gt=0.0, le=1e12)
    """Where the energy counter wraps, in joules."""
    fault: Literal["none", "still", "wraps"] = "none"
    """What is wrong with its meters: `still` shows for ever what it showed first, `wraps` does not tell where its
    counter wraps.
    """


@frozen
class TesterPort:
    """A port of the tester; ``engine`` is its object in the protocol's ``configure`` (its kind and options)."""

    name: str
    engine: dict[str, Any]
    device: str | None = None
    mac: str | None = None
    on_peer: bool = False
    """Whether it is a port of the tester's second machine."""


@frozen
class DutPort:
    """A port of the DUT, linked to the tester port of the same index. In a lab it has an address of RFC 2544 C.2.2."""

    name: str
    device: str | None = None
    mac: str | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    vdev: str | None = None
    """For a DUT in user space: its end of the link as a virtual device of DPDK."""
    address: str | None = None
    """For a DUT in user space: the PCI address of a card that DPDK drives."""


@frozen
class TestHost:
    """A host of a testbed: its role, its name in inventories, and the interfaces that the test uses there."""

    __test__ = False  # not a test class for pytest

    role: str
    name: str
    host: Host
    devices: tuple[str, ...]


@frozen
class Testbed:
    """Tester, DUT and their ports for a run that measures by frames.

    ``statements`` are sentences that the report must print (such as that a veth pair measures no card).
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
    """Whether frames come back on the port that they were sent on; with a single port they always do."""
    promised_bytes: int = 0
    """Huge pages that are reserved for the tester, which has not taken them yet."""
    peer: Host | None = None
    """The tester's second machine."""
    peer_cpu: int | None = None
    """The CPU of its worker."""
    power: SimulatedPower | None = None
    """What the machine of a simulated lab draws; None where it has no meters, and on real machines."""
    seed: int = 0
    """The seed of what a simulated lab draws by chance."""

    @property
    def programmed(self) -> frozenset[str]:
        """The devices of the tester's ports of which it exchanges the XDP programs itself."""
        own = {port.device for port in self.tester_ports if port.engine.get("kind") in ("xdp", "af_xdp")}
        return frozenset(device for device in own if device) - {port.device for port in self.dut_ports}

    @property
    def test_hosts(self) -> tuple[TestHost, ...]:
        """The hosts of the tester and, where there is one, that of the DUT."""
        hosts = [TestHost("tester", "tester", self.tester, self.devices_of_tester(on_peer=False))]
        if self.peer is not None:
            hosts.append(TestHost("peer", "peer", self.peer, self.devices_of_tester(on_peer=True)))
        if self.dut is not None:
            devices = tuple(port.device for port in self.dut_ports if port.device is not None)
            hosts.append(TestHost("dut", "dut", self.dut, devices))
        return tuple(hosts)

    def devices_of_tester(self, *, on_peer: bool) -> tuple[str, ...]:
        """The kernel interfaces of the tester's ports on one of its machines."""
        ports = [port for port in self.tester_ports if port.on_peer == on_peer]
        return tuple(port.device for port in ports if port.device is not None)

    def host_of(self, port: TesterPort) -> Host:
        """The machine of a port of the tester."""
        return self.peer if port.on_peer and self.peer is not None else self.tester


@frozen
class BondMember:
    """A member port of a bond and, where known, the interface at the other end of its link with its host."""

    device: str
    far_host: Host | None = None
    far_device: str | None = None


@frozen
class Endpoint:
    """A port of a host that workloads reach by its address; methods see its ``facts``.

    ``members`` are the ports of its bond, where nicbench made one, in the order of joining. ``far_bond`` is the bond at
    the other end with its host, where that host has no endpoint of its own (a switch).
    """

    host: Host
    facts: EndpointFacts
    rdma: RdmaPort | None = None
    members: tuple[BondMember, ...] = ()
    far_bond: tuple[Host, str] | None = None

    @property
    def name(self) -> str:
        """The port's name in the bench file."""
        return self.facts.name


@frozen
class EndpointTestbed:
    """The endpoints of a run of workloads; ``servers`` are the ports of the measured host."""

    servers: tuple[Endpoint, ...]
    clients: tuple[Endpoint, ...]
    link_is_nominal: bool
    statements: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> Host:
        """The measured host."""
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
        """All endpoints by name."""
        return {each.name: each for each in (*self.servers, *self.clients)}


@frozen
class Queues:
    """How many queues of each of its ports a DUT receives from and sends to."""

    receive: int = 1
    transmit: int = 1


@frozen
class Objection:
    """A problem with the option ``key`` of a lab, and what to do."""

    key: str
    message: str
    next_step: str


def machine_words(host: Host) -> str:
    """The machine that a lab is made on, in words for its statements."""
    return "this machine" if host.shares_files else f"the machine {host.name}"


class Lab(DescribedPlugin, ABC):
    """The base of every kind of lab; subclasses derive from ``FrameLab`` or ``EndpointLab``.

    Every change goes through ``changes`` so that it is undone after an error, a signal or a crash.
    """

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    touches_machine: ClassVar[bool] = True
    """Whether it changes the machine; False where it needs neither root nor the lock."""
    port_kind: ClassVar[str] = "kernel"
    """The kind of its ports: only a DUT of the same ``port_kind`` works on them."""
    largest_frame_bytes: ClassVar[int | None] = None
    """The largest frame of its ports in bytes with FCS, where it is known beforehand and not given by ``mtu``."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    def objection_elsewhere(self) -> Objection | None:
        """The problem with its options where it is made on another machine (``on``); None without one."""
        return None

    def objections(self, *, tester_has_huge_pages: bool, pattern: Pattern) -> tuple[Objection, ...]:
        """Options that do not fit those of the tester or the traffic, found before a machine is touched."""
        return ()


class FrameLab(Lab):
    """A lab that makes a tester and a DUT with links between their ports."""

    time_stamp_advice: ClassVar[dict[str, str]] = {
        "kernel": "write `driver: net_pcap` under `tester`, or `timestamps: tsc`"
    }
    """What to do where the lab's ports lack the time stamps of a source."""

    has_sink: ClassVar[bool] = True
    """Whether ``without_dut`` gives True, so that the plan knows what will be calibrated."""
    has_cable: ClassVar[bool] = True
    """Whether ``cable`` gives True."""

    queues = Queues()
    """Those of the DUT at each port, set before ``up``: rings in memory are made to match."""

    @abstractmethod
    async def up(self, changes: Changes, local: Host) -> Testbed:
        """Makes the lab; NotReadyError where the machine lacks something."""

    async def accept_redirected(self, testbed: Testbed) -> Testbed:
        """Makes the DUT's ports accept frames that XDP redirects to the tester's, for a tester inside the kernel."""
        return testbed

    def time_stamps(self, driver: str) -> frozenset[str]:
        """The sources of receive time stamps of its ports with this driver, in addition to the time-stamp counter."""
        return frozenset({"kernel"} if self.port_kind == "kernel" and driver == "net_pcap" else ())

    @abstractmethod
    def without_dut(self, testbed: Testbed, changes: Changes) -> AbstractAsyncContextManager[bool]:
        """While entered, frames end at a sink behind the link instead of the DUT, to measure the tester's ceiling.

        Gives False where the lab has no such sink; the ceiling is then unknown.
        """

    @abstractmethod
    def cable(self, testbed: Testbed, changes: Changes) -> AbstractAsyncContextManager[bool]:
        """While entered, a frame sent on a tester port arrives on the other, as over a cable without a DUT.

        Gives False where the lab cannot do that; the tester's own latency is then unknown.
        """


class EndpointLab(Lab):
    """A lab that makes hosts with addresses, one of them measured, for workloads between them."""

    port_kind = "endpoint"
    takes_redirected = False
    """Whether links are to take frames that programs in a driver's hook send."""

    @abstractmethod
    def clients_of_ports(self) -> dict[str, tuple[str, ...]]:
        """The names of the clients of each port of the measured host; each client is a host of the same name."""

    @property
    def bond_links(self) -> int | None:
        """The number of links in the bond of each port; None where ports have no bond."""
        return None

    @property
    @abstractmethod
    def measured_host(self) -> str:
        """The name of the measured host."""

    @abstractmethod
    async def up(self, changes: Changes, local: Host) -> EndpointTestbed:
        """Makes the lab; NotReadyError where the machine lacks something."""
