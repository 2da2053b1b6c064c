"""The tester: whatever sends frames and reads them back. Searches, journal and reports know only this interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from nicbench.duts.base import Addressing
from nicbench.model.trial import Reading, TrialRequest

During = Callable[[], Coroutine[Any, Any, None]]
"""What happens to the DUT while a trial's frames are sent."""


@dataclass(frozen=True, slots=True)
class TesterFacts:
    """What the report discloses of a tester, and what bounds its trials."""

    description: dict[str, Any]
    minimum_frame_bytes: int
    maximum_frame_bytes: int
    link_bits_per_s: float | None


class Tester(ABC):
    """Started once per run; trials follow one another."""

    @abstractmethod
    async def start(self) -> TesterFacts:
        """Takes the ports; EngineError or NotReadyError where it cannot."""

    @abstractmethod
    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        """One trial in the sequence of RFC 2544 section 23; without a word of judgement.

        ``number`` is the trial's place in the run, 1.., also across a resumption: its frames are known by it.
        ``during`` is called when the transmission begins, and runs beside it; what it raises is raised at the end.
        """

    @abstractmethod
    async def close(self) -> None:
        """Gives the ports back; never raises for a tester that is already gone."""
