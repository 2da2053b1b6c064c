"""What makes a round's jobs run: the one thing of it that touches hosts."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Protocol

from nicbench.model.bond import BondSeen
from nicbench.model.link_failure import LinkFailed
from nicbench.model.round import HostCommand, JobOutcome, Preparation, RestartServers, Round, RoundRequest
from nicbench.workloads.base import Watch


class Served(Protocol):
    """A DUT with servers of its own beside those of the tools: see ``duts.base.EndpointDut``."""

    @property
    def survives_restart(self) -> bool:
        """Whether ``restart`` may be called."""

    async def restart(self) -> None:
        """Ends them and starts them anew; what clients have of them they then use again."""

    async def begin_round(self) -> None:
        """A round begins."""

    async def failure(self) -> str | None:
        """How one ended since then; None where all went on."""


class Player(ABC):
    """Starts every job of a round together and brings each to its end.

    ``own_folder`` is the name of a folder that no other run has.
    """

    own_folder: str

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

    def bonds(self) -> tuple[BondSeen, ...]:
        """Of the round that was played last: its bonds, and which connection used which of their ports."""
        return ()

    def failure(self) -> LinkFailed | None:
        """Of the round that was played last: the link that was taken down, where that was asked for."""
        return None

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
