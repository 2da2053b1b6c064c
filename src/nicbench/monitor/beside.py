"""A tester whose trials the monitors are told of: they keep off them, and know which samples are of which trial."""

from __future__ import annotations

from nicbench.duts.base import Addressing
from nicbench.model.trial import Reading, TrialRequest
from nicbench.monitor.base import Monitors
from nicbench.testers.base import During, Tester, TesterFacts


class WatchedTester(Tester):
    """Wraps another."""

    def __init__(self, tester: Tester, monitors: Monitors) -> None:
        self._tester = tester
        self._monitors = monitors

    async def start(self) -> TesterFacts:
        return await self._tester.start()

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> None:
        await self._tester.learn(number, request, addressing)

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

    async def close(self) -> None:
        await self._tester.close()
