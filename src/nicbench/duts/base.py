"""A DUT: what is measured. It is set up on a testbed, says how frames must be addressed to pass, counts its drops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from nicbench.labs.base import EndpointTestbed, Testbed
from nicbench.model.base import Frozen
from nicbench.model.pattern import Pattern
from nicbench.model.share import Mount
from nicbench.model.traffic import Name
from nicbench.model.trial import DutWork
from nicbench.tuning.changes import Changes


@dataclass(frozen=True, slots=True)
class Addressing:
    """Addresses of frames from tester port ``transmit`` through the DUT to tester port ``receive``.

    The fields are those of a stream in the protocol's ``start``.
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """What of a DUT's options does not suit its ports, and what to do."""

    message: str
    next_step: str


class Dut(ABC):
    """What all kinds of DUT have: subclasses are a ``FrameDut`` or an ``EndpointDut``."""

    kind: ClassVar[str]
    Options: ClassVar[type[Frozen]]
    port_kind: ClassVar[str] = "kernel"
    """What it stands on: interfaces of the kernel, or what a lab of the same ``port_kind`` gives."""
    is_set_up: ClassVar[bool] = True
    """Whether ``up`` does anything; False where it is there already, and may stand behind any tester's ports."""
    takes_cards: ClassVar[bool] = False
    """Whether its ports may be cards that DPDK drives, by their PCI addresses, where no lab gives others."""
    can_be_sink: ClassVar[bool] = False
    """Whether ``as_sink`` can be entered."""
    fewest_ports: ClassVar[int] = 1
    """With one port it sends frames back by it."""
    most_ports: ClassVar[int] = 2
    """How many ports it can forward between."""
    returns_on_same_port: ClassVar[bool] = False
    """Whether ``returning`` has entries."""

    def __init__(self, options: Frozen) -> None:
        self.options = options

    @abstractmethod
    def disclosure(self) -> dict[str, Any]:
        """Settings and command lines for the report."""


class FrameDut(Dut):
    """Measured by frames that it gives back. ``known_rate_frames_per_s`` is for golden DUTs only."""

    def refusal(self, ports: int, pattern: Pattern) -> Refusal | None:
        """Why it, or its options, do not suit so many ports or this pattern: found before it is touched."""
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
        """CPUs on which the DUT works apart from the tester, so that any other program there is a disturbance.

        None where they share: the tester itself would be one.
        """
        return () if testbed.cores.shared else testbed.cores.dut

    @abstractmethod
    async def drops(self) -> dict[str, int]:
        """Cumulative counters of its own of frames that disappeared in it, by name, for the loss ledger.

        What the kernel of its host counts is read by ``nicbench.ledger``, and must not be among them.
        """

    async def begin_trial(self, number: int) -> None:
        """Trial ``number`` comes next."""
        return

    async def overruns(self) -> dict[int, int]:
        """Cumulative, by the tester's port: frames that it gave back and the tester's full ring did not take.

        They are the tester's own loss, where only the DUT can see it (shared memory).
        """
        return {}

    async def waiting_ns(self) -> int | None:
        """Cumulative: time in which its threads were ready and others had its core; None where it is no process."""
        return None

    async def failure(self) -> str | None:
        """How a DUT that is a process of ours died, with its last words; None while it lives."""
        return None

    async def work(self) -> DutWork | None:
        """Cumulative: what its forwarding cores did, by its own account; None where it keeps none."""
        return None

    @asynccontextmanager
    async def as_sink(self) -> AsyncIterator[bool]:
        """While entered, it takes every frame and sends none: the tester's ceiling, where the lab has no sink.

        Gives False where it cannot.
        """
        yield False


class EndpointDutOptions(Frozen):
    """``host`` is the host of the bench file whose ports are measured; every other host with a port is a client."""

    host: Name = "server"
    name: str | None = None
    """How reports call it."""


class EndpointDut(Dut):
    """A host that workloads are run against."""

    port_kind = "endpoint"
    most_ports = 64
    forwards: ClassVar[bool] = False
    """Whether clients of one port reach those of another through it."""
    has_shares: ClassVar[bool] = False
    """Whether it serves files: so many ``shares`` as its options say."""
    options: EndpointDutOptions

    @abstractmethod
    async def up(self, testbed: EndpointTestbed, changes: Changes) -> None:
        """Sets it up; every change through ``changes``."""

    def mounts(self) -> tuple[Mount, ...]:
        """Its shares as clients have them mounted, once it is up; none of a DUT that shares nothing."""
        return ()

    @property
    def survives_restart(self) -> bool:
        """Whether clients go on with their mounts once ``restart`` is done."""
        return False

    async def restart(self) -> None:
        """Ends the servers of its shares and starts them anew; clients then use their mounts again.

        Only where the mounts survive it. NotReadyError where a server does not come, or a mount cannot be used.
        """
        raise NotImplementedError

    async def begin_round(self) -> None:
        """A round begins: ``failure`` tells what came of the servers since."""
        return

    async def failure(self) -> str | None:
        """How a server of its shares ended since the round began, with its last words; None where all went on."""
        return None
