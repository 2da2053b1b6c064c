"""What makes a round's jobs run: the one thing of it that touches hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nicbench.model.round import JobOutcome, RoundRequest


class Player(ABC):
    """Starts every job of a round together and brings each to its end."""

    @abstractmethod
    async def play(self, number: int, request: RoundRequest) -> tuple[JobOutcome, ...]:
        """The outcomes in the order of the jobs, each of which fails alone; ``number`` is the round's place in the run.

        HostError where a host itself is gone.
        """

    @abstractmethod
    async def counters(self) -> dict[str, dict[str, int]]:
        """Cumulative counters of each endpoint's interface, by its name; what cannot be read is left out."""
