"""What makes a round's jobs run (``Player``): the one part of a round that touches hosts.

``HostPlayer`` (``host_player.py``) is the real one; ``FakePlayer`` is a deterministic stand-in.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from nicbench.core.base import WorkloadChoice
from nicbench.core.bond import BondObservation, LinkFailureOutcome
from nicbench.core.round import (
    HostCommand,
    Job,
    JobOutcome,
    JobSpec,
    Preparation,
    RestartServers,
    Round,
    RoundRequest,
    SenderTrace,
    ToolEnvironment,
)
from nicbench.workloads.base import Watch


class ServingDut(Protocol):
    """A DUT with servers of its own beside those of the tools: see ``duts.base.EndpointDut``."""

    @property
    def survives_restart(self) -> bool:
        """Whether ``restart`` may be called."""

    async def restart(self) -> None:
        """Ends them and starts them anew; what clients have of them they then use again."""

    async def begin_round(self) -> None:
        """Says that a round begins: ``failure`` then tells of servers that end in it."""

    async def failure(self) -> str | None:
        """How one ended since then; None where all went on."""


class Player(ABC):
    """Starts every job of a round together and brings each to its end.

    ``own_folder`` is the name of a folder that no other run has.
    """

    own_folder: str

    @abstractmethod
    async def require_tools(self, asked: Iterable[tuple[WorkloadChoice, JobSpec]]) -> None:
        """NotReadyError where a tool that tests ask for is on none of the machines."""

    @abstractmethod
    async def prepare(self, preparation: Preparation) -> None:
        """Makes what is not there yet of it; what was made by an earlier call is left as it is.

        NotReadyError where there is no such directory or too little room, HostError where a job fails.
        """

    @abstractmethod
    async def run_before(self, command: HostCommand | RestartServers) -> None:
        """HostError where it fails, or takes too long."""

    async def rest(self, pause_s: float) -> None:
        """Lets the hosts come to rest before a round."""
        await asyncio.sleep(pause_s)

    @abstractmethod
    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        """The outcomes in the order of the jobs, each of which fails alone; ``number`` is the round's place in the run.

        HostError where a host itself is gone.
        """

    def server_failure(self) -> str | None:
        """How a server of the DUT's own ended in the midst of the round that was played last; None: none did."""
        return None

    async def keep(self, one: Round) -> None:  # noqa: B027 - most workloads leave nothing
        """Writes into the run folder what the round that was played last left on its hosts; it is journaled next."""

    def bonds(self) -> tuple[BondObservation, ...]:
        """Of the round that was played last: its bonds, and which connection used which of their ports."""
        return ()

    def environments(self, request: RoundRequest) -> tuple[ToolEnvironment, ...]:
        """Of a round that was played: the environments that its tools ran in, as far as they are known."""
        return ()

    def failure(self) -> LinkFailureOutcome | None:
        """Of the round that was played last: the link that was taken down, where that was asked for."""
        return None

    def senders(self) -> tuple[SenderTrace, ...]:
        """Of the round that was played last: the connections of its clients over time, where that was asked for."""
        return ()

    @abstractmethod
    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """A file of ours in a folder of this endpoint's host, and its path; it is gone when the run is.

        ``filled``: with so many random bytes, to be read; else empty, with room for so many. NotReadyError where there
        is no such folder or too little space.
        """

    @abstractmethod
    async def remove_file(self, endpoint: str, path: str) -> None:
        """Makes room before the end of the run; of a file that ``make_file`` made."""

    @abstractmethod
    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """Gives the interrupts of this endpoint's queues to these CPUs; None: to those that had them before.

        NotReadyError where they cannot be moved.
        """

    @abstractmethod
    async def counters(self) -> dict[str, dict[str, int]]:
        """Cumulative counters of each endpoint's interface, by its name; what cannot be read is left out."""


@dataclass
class FakePlayer(Player):
    """``outcome`` gives what comes of a job of the round with this number, ``bonded`` what is seen of its bonds."""

    outcome: Callable[[int, Job], JobOutcome]
    heard: list[RoundRequest] = field(default_factory=list)
    steered: list[tuple[str, tuple[int, ...] | None]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Those that are there now."""
    own_folder: str = "nicbench-fake"
    prepared: list[Preparation] = field(default_factory=list)
    before: list[HostCommand | RestartServers] = field(default_factory=list)
    broken: Callable[[int], str | None] = lambda number: None
    """How a server of the DUT ended in the midst of the round of this number."""
    failed: str | None = None
    bonded: Callable[[RoundRequest], tuple[BondObservation, ...]] = lambda request: ()
    traced: Callable[[RoundRequest], tuple[SenderTrace, ...]] = lambda request: ()

    async def require_tools(self, asked: Iterable[tuple[WorkloadChoice, JobSpec]]) -> None:
        """Every tool is there."""

    async def prepare(self, preparation: Preparation) -> None:
        self.prepared.append(preparation)

    async def run_before(self, command: HostCommand | RestartServers) -> None:
        self.before.append(command)

    async def rest(self, pause_s: float) -> None:
        """Returns at once."""

    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        await watch.begin()
        self.heard.append(request)
        self.failed = self.broken(number)
        return tuple(self.outcome(number, job) for job in request.jobs)

    def server_failure(self) -> str | None:
        return self.failed

    def bonds(self) -> tuple[BondObservation, ...]:
        return self.bonded(self.heard[-1]) if self.heard else ()

    def senders(self) -> tuple[SenderTrace, ...]:
        return self.traced(self.heard[-1]) if self.heard else ()

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        path = f"{folder}/{endpoint}-{purpose}"
        self.files.append(path)
        return path

    async def remove_file(self, endpoint: str, path: str) -> None:
        self.files.remove(path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        self.steered.append((endpoint, cpus))

    async def counters(self) -> dict[str, dict[str, int]]:
        return {}
