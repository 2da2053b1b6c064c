"""The device under test: it is set up on a testbed, says how frames must be addressed, and counts its drops.

To add one:

1. Write ``src/nicbench/testbed/duts/NAME.py`` with one subclass of ``nicbench.testbed.duts.base.Dut``, its ``kind``
   and its ``Options``.
2. ``async up(testbed, changes)`` sets it up on the host ``testbed.dut`` and its ports, ``testbed.dut_ports``. Make
   every change by ``changes.set_file`` or ``changes.make``, never directly: the undo, with the old value, is written
   before the change.
3. ``addressing(testbed, ip)`` says which addresses frames must carry to pass it from each port to each other; of two
   ports, forward first, then reverse. ``UsageError`` where it cannot carry this IP version. ``duts/_kernel.py`` has
   those of a router, ``testbed/addressing.py`` the ranges of many ports. ``most_ports`` says how many it joins;
   ``returning()`` addresses frames that come back on their own port, where it sends them so.
4. A DUT that is a process of ours is started by ``duts/_process.py``, which knows how to end it; ``async failure()``
   says how it died. ``port_kind`` says what it stands on, where that is not the kernel's interfaces. ``async work()``
   gives its own record of cycles. ``as_sink()``, with ``can_be_sink``, lets it take every frame, for the tester's
   ceiling in a lab without a sink.
5. ``async drops()`` reads cumulative drop counters of its own, for the loss ledger; what its host's kernel counts is
   read by ``ledger``. ``disclosure()`` gives the settings and command lines that the report prints. Override
   ``cpus(testbed)`` where it works on others than the lab says.
6. Write ``tests/testbed/duts/test_NAME.py`` with ``FakeHost`` of ``tests/fakes.py`` for what it would run, and a test
   marked ``lab`` that sends real frames through it and finds the machine unchanged afterwards.
7. Write a docstring below each option, add a section to ``docs/bench-file/duts.md``, and a bench file to
   ``examples/``; tests look at both.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

from nicbench.core.base import Frozen
from nicbench.core.described import DescribedPlugin
from nicbench.core.frozen import frozen
from nicbench.core.machine import DutWork
from nicbench.core.pattern import Pattern
from nicbench.core.reading import ChangeKind
from nicbench.core.round import Mount
from nicbench.core.traffic import Name
from nicbench.testbed.duts._process import DutProcess
from nicbench.testbed.labs.base import EndpointTestbed, Queues, Testbed
from nicbench.tuning.changes import Changes


@frozen
class Addressing:
    """Addresses of frames from tester port ``transmit`` through the DUT to tester port ``receive``.

    The fields up to the counts are those of a stream in the protocol's ``start``. ``is_direct``: without a DUT on the
    way, so that frames come back as they were sent.
    """

    transmit: int
    receive: int
    source_mac: str
    destination_mac: str
    ip: int
    source_address: str
    destination_address: str
    source_address_count: int = 1
    destination_address_count: int = 1
    is_direct: bool = False

    def with_addresses(self, most: int | None) -> Addressing:
        """The same way with no more addresses at each end; None: with all."""
        if most is None:
            return self
        return replace(
            self,
            source_address_count=min(most, self.source_address_count),
            destination_address_count=min(most, self.destination_address_count),
        )


@frozen
class Refusal:
    """Why a DUT's options do not fit its ports or the pattern, and what to do."""

    message: str
    next_step: str


class Dut(DescribedPlugin, ABC):
    """The base of every kind of DUT; subclasses derive from ``FrameDut`` or ``EndpointDut``."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    port_kind: ClassVar[str] = "kernel"
    """The kind of its ports: kernel interfaces, or the ports of a lab with the same ``port_kind``."""
    changes_itself: ClassVar[frozenset[ChangeKind]] = frozenset()
    """What it changes on its host by itself while frames pass, as a routing daemon does."""
    is_set_up: ClassVar[bool] = True
    """Whether ``up`` does anything; False for a DUT that exists already, behind the ports of any tester."""
    takes_cards: ClassVar[bool] = False
    """Whether its ports may be cards that DPDK drives, given by PCI address, without a lab."""
    takes_interfaces: ClassVar[bool] = False
    """Whether its ports may also be a lab's kernel interfaces, which it drives by AF_XDP."""
    can_be_sink: ClassVar[bool] = False
    """Whether ``as_sink`` can be entered."""
    fewest_ports: ClassVar[int] = 1
    """The fewest ports that it works with; with one it sends frames back by it."""
    most_ports: ClassVar[int] = 2
    """The most ports that it can forward between."""
    returns_on_same_port: ClassVar[bool] = False
    """Whether ``returning`` has entries."""
    forwards_both_ways: ClassVar[bool] = True
    """False where the second port of two sends to the first only what belongs to a connection that began there."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    def disclosure(self) -> dict[str, Any]:
        """Settings and command lines for the report."""

    def programs(self) -> Mapping[str, str]:
        """The programs that it needs on its machine, each with what installs it."""
        return {}


PortQueues = tuple[tuple[int, ...], ...]
"""Frames by port and queue."""


@frozen
class DutLook:
    """What the DUT says of itself; ``at_ns`` is when it said how long its threads waited (monotonic)."""

    waited_ns: int | None
    at_ns: int
    overruns: Mapping[int, int]
    drops: Mapping[str, int]
    left: Mapping[str, int]
    queues: PortQueues
    work: DutWork | None


class FrameDut(Dut):
    """A DUT that is measured by the frames it forwards."""

    _process: DutProcess | None = None
    """The process of ours that it is, once it is started."""

    @property
    def processes(self) -> Sequence[DutProcess]:
        """The processes of ours that it consists of."""
        return () if self._process is None else (self._process,)

    def known_rate_frames_per_s(self, trial_s: float) -> float | None:
        """The highest load of each way that passes without loss in a trial of so long; None where it is to be found."""
        return None

    def queues(self) -> Queues:
        """Its queues at each port, by its options alone; rings in memory are made to match. Touches nothing."""
        return Queues()

    async def queue_frames(self) -> PortQueues:
        """Cumulative frames that it received, by port and queue; empty where it has one queue, or counts none."""
        return ()

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        """Why the DUT does not fit this number of ports or this pattern; None where it does. Touches nothing."""
        return None

    @abstractmethod
    async def up(self, testbed: Testbed, changes: Changes) -> None:
        """Sets the DUT up; every change through ``changes``."""

    @abstractmethod
    def addressing(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        """One entry for each way from one port to another; of two ports, forward first, then reverse.

        UsageError where the DUT cannot carry this IP version.
        """

    def returning(self, testbed: Testbed, ip: int) -> tuple[Addressing, ...]:
        """One entry for each port whose frames can come back on it; none where ``returns_on_same_port`` is false."""
        return ()

    def neighbours(self, testbed: Testbed) -> tuple[tuple[dict[str, Any], ...], ...]:
        """Per tester port: addresses for which it answers ARP and neighbour discovery (protocol: ``addresses``)."""
        return tuple(() for _ in testbed.tester_ports)

    def cpus(self, testbed: Testbed) -> tuple[int, ...]:
        """The CPUs that only the DUT uses, so that any other program there is a disturbance.

        Empty where it shares them with the tester, which would count as a disturbance itself.
        """
        return () if testbed.cores.shared else testbed.cores.dut

    async def drops(self) -> dict[str, int]:
        """The DUT's own cumulative counters of lost frames, by name, for the loss ledger.

        Counters of its host's kernel are read by ``nicbench.measure.ledger`` and must not be among them.
        """
        return {}

    async def left_to_kernel(self) -> dict[str, int]:
        """Its cumulative counters of frames that it left to its host's kernel, by name.

        The kernel forwards them, or drops and counts them, so they are listed next to the loss ledger.
        """
        return {}

    async def mark_passage(self) -> None:
        """Notes what has passed the layer that it is measured for, if any. Is called before frames are sent."""
        return

    async def check_passage(self) -> None:
        """HostError where frames since ``mark_passage`` went past that layer, or it gave none of them back."""
        return

    async def begin_trial(self, number: int) -> None:
        """Is called before trial ``number``."""
        return

    async def mend(self) -> None:
        """Sets again what its host forgets when a link goes down. Is called where no frame comes back."""
        return

    async def overruns(self) -> dict[int, int]:
        """Cumulative frames by the tester's port that the tester's full ring did not take from the DUT.

        They are a loss of the tester that only the DUT can see (shared memory).
        """
        return {}

    async def waiting_ns(self) -> int | None:
        """Cumulative time that its threads waited for a CPU; None where it is not a process of ours."""
        waits = [wait for process in self.processes if (wait := await process.waiting_ns()) is not None]
        return sum(waits) if waits else None

    async def look(self, *, with_work: bool) -> DutLook:
        """Asks for all that may rise, one question after the other: it may be a process that answers in turn."""
        return DutLook(
            waited_ns=await self.waiting_ns(),
            at_ns=time.monotonic_ns(),
            overruns=await self.overruns(),
            drops=await self.drops(),
            left=await self.left_to_kernel(),
            queues=await self.queue_frames(),
            work=await self.work() if with_work else None,
        )

    async def failure(self) -> str | None:
        """How a DUT that is a process of ours ended, with its last output; None while it runs."""
        for process in self.processes:
            if failed := await process.failure():
                return failed
        return None

    async def work(self) -> DutWork | None:
        """Cumulative packets and cycles of its forwarding cores by its own count; None where it counts none."""
        return None

    @asynccontextmanager
    async def as_sink(self) -> AsyncIterator[bool]:
        """While entered, the DUT receives every frame and sends none, to measure the tester's ceiling without a sink.

        Gives False where the DUT cannot do that.
        """
        yield False


class EndpointDutOptions(Frozen):
    """``host`` is the host of the bench file whose ports are measured; every other host with a port is a client."""

    host: Name = "server"
    """Its name under `hosts`."""
    name: str | None = None
    """How reports call it; without it the kind."""


class EndpointDut(Dut):
    """A host that workloads are run against."""

    port_kind = "endpoint"
    most_ports = 64
    forwards: ClassVar[bool] = False
    """Whether clients of one port reach those of another through it."""
    has_shares: ClassVar[bool] = False
    """Whether it serves files: its options have the number of ``shares``."""
    options: EndpointDutOptions

    @abstractmethod
    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        """Sets the host up; every change through ``changes``."""

    def mounts(self) -> tuple[Mount, ...]:
        """Its shares as clients have mounted them, once it is up; none where it serves no files."""
        return ()

    @property
    def survives_restart(self) -> bool:
        """Whether clients can go on using their mounts after ``restart``."""
        return False

    async def restart(self) -> None:
        """Restarts the servers of its shares; clients can use their mounts again afterwards.

        Only where the mounts survive it. NotReadyError where a server does not start or a mount cannot be used.
        """
        raise NotImplementedError

    async def begin_round(self) -> None:
        """Is called before a round: ``failure`` reports what happened to the servers since."""
        return

    async def failure(self) -> str | None:
        """How a server of its shares ended since the round began, with its last output; None where all still run."""
        return None
