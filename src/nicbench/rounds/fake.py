"""A deterministic stand-in: outcomes of a function, and a memory of what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nicbench.model.bond import BondSeen
from nicbench.model.round import HostCommand, Job, JobOutcome, Preparation, RestartServers, RoundRequest
from nicbench.rounds.base import Player
from nicbench.workloads.base import Watch


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
    bonded: Callable[[RoundRequest], tuple[BondSeen, ...]] = lambda request: ()

    async def prepare(self, preparation: Preparation) -> None:
        self.prepared.append(preparation)

    async def run_before(self, command: HostCommand | RestartServers) -> None:
        self.before.append(command)

    async def rest(self, pause_s: float) -> None:
        """No time passes."""

    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        await watch.begin()
        self.heard.append(request)
        self.failed = self.broken(number)
        return tuple(self.outcome(number, job) for job in request.jobs)

    def server_failure(self) -> str | None:
        return self.failed

    def bonds(self) -> tuple[BondSeen, ...]:
        return self.bonded(self.heard[-1]) if self.heard else ()

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
