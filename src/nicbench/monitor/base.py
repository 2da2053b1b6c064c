"""What a run sees of its monitors (``Monitors``): they are told when a sample begins and ends.

``WatchedTester`` tells them of trials, off which they keep; ``FakeMonitors`` is a deterministic stand-in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from nicbench.core.machine import MonitorPlan
from nicbench.core.pattern import Way
from nicbench.core.reading import LearntFlows, PathChanges
from nicbench.core.round import MachineCpu
from nicbench.core.trial import Reading, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers.base import During, Tester, TesterFacts


class Monitors(ABC):
    """All monitors of one turn of a run. What fails in them is told, and never ends a run."""

    @abstractmethod
    async def begin_trial(self, number: int, duration_s: float | None) -> None:
        """A trial begins that takes about ``duration_s``, None where nobody knows: samples that follow are of it."""

    @abstractmethod
    async def end_trial(self) -> None:
        """The trial is over: the monitors take samples again."""

    @abstractmethod
    async def watch(self) -> None:
        """From now on whatever others change on the path of frames is noted; what was noted before is forgotten."""

    @abstractmethod
    async def changes(self) -> PathChanges | None:
        """What changed since ``watch``; nothing is noted any more. None where a part of the path is not watched."""

    @abstractmethod
    async def begin_round(self, number: int) -> None:
        """A round of workloads begins: samples that follow are of it, and go on through it."""

    @abstractmethod
    async def end_round(self) -> tuple[MachineCpu, ...]:
        """The round is over; how busy each machine was that is watched."""

    @abstractmethod
    async def close(self) -> None:
        """Takes the last sample and ends the monitors; never raises."""

    @property
    @abstractmethod
    def plans(self) -> tuple[MonitorPlan, ...]:
        """How each host is watched; empty where none is."""


class WatchedTester(Tester):
    """A tester whose trials the monitors are told of: so they know which of their samples are of which trial."""

    def __init__(self, tester: Tester, monitors: Monitors) -> None:
        self._tester = tester
        self._monitors = monitors

    async def start(self) -> TesterFacts:
        return await self._tester.start()

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        return await self._tester.learn(number, request, addressing)

    async def teach(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], frames_per_flow: int
    ) -> tuple[LearntFlows, ...]:
        return await self._tester.teach(number, request, addressing, frames_per_flow)

    async def trial(
        self,
        number: int,
        request: TrialRequest,
        addressing: tuple[Addressing, ...],
        during: During | None = None,
    ) -> Reading:
        await self._monitors.begin_trial(number, request.duration_s + request.drain_s + 2 * request.settle_s)
        try:
            return await self._tester.trial(number, request, addressing, during)
        finally:
            await self._monitors.end_trial()

    async def complete(self, reading: Reading, request: TrialRequest, addressing: tuple[Addressing, ...]) -> Reading:
        return await self._tester.complete(reading, request, addressing)

    async def close(self) -> None:
        await self._tester.close()


@dataclass
class FakeMonitors(Monitors):
    """``heard`` is what a run told it, in order."""

    heard: list[str] = field(default_factory=list)
    seen: PathChanges | None = None
    """What others changed in every sample."""

    async def begin_trial(self, number: int, duration_s: float | None) -> None:
        self.heard.append(f"trial {number}" if duration_s is None else f"trial {number} of {duration_s:g} s")

    async def end_trial(self) -> None:
        self.heard.append("end")

    async def watch(self) -> None:
        return

    async def changes(self) -> PathChanges | None:
        return self.seen

    async def begin_round(self, number: int) -> None:
        self.heard.append(f"round {number}")

    async def end_round(self) -> tuple[MachineCpu, ...]:
        self.heard.append("end")
        return ()

    async def close(self) -> None:
        self.heard.append("close")

    @property
    def plans(self) -> tuple[MonitorPlan, ...]:
        return ()
