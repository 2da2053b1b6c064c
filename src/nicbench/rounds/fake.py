"""A deterministic stand-in: outcomes of a function, and a memory of what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nicbench.model.round import Job, JobOutcome, RoundRequest
from nicbench.rounds.base import Player


@dataclass
class FakePlayer(Player):
    """``outcome`` gives what comes of a job of the round with this number."""

    outcome: Callable[[int, Job], JobOutcome]
    heard: list[RoundRequest] = field(default_factory=list)

    async def play(self, number: int, request: RoundRequest) -> tuple[JobOutcome, ...]:
        self.heard.append(request)
        return tuple(self.outcome(number, job) for job in request.jobs)

    async def counters(self) -> dict[str, dict[str, int]]:
        return {}
