"""The tester: whatever sends frames and reads them back. Searches, journal and reports know only this interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from nicbench.duts.base import Addressing
from nicbench.model.trial import Reading, TrialRequest


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
    async def trial(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> Reading:
        """One trial in the sequence of RFC 2544 section 23; without a word of judgement.

        ``number`` is the trial's place in the run, 1.., also across a resumption: its frames are known by it.
        """

    @abstractmethod
    async def close(self) -> None:
        """Gives the ports back; never raises for a tester that is already gone."""
