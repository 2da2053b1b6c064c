"""What one test's method of workloads is given (``methods.base.RoundContext``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.events import Bus, ResultReady
from nicbench.judge.rounds import MOST_REPEATS
from nicbench.labs.base import EndpointTestbed
from nicbench.model.numa import NumaNode
from nicbench.model.result import Result
from nicbench.model.round import Preparation, Round, RoundRequest
from nicbench.model.share import Mount
from nicbench.rounds.maker import RoundMaker


class TestRoundContext:
    """The context of one test of the bench file."""

    __test__ = False  # not a test class for pytest

    def __init__(
        self,
        test: str,
        seed: int,
        testbed: EndpointTestbed,
        maker: RoundMaker,
        budget_s: float,
        earlier: Mapping[str, tuple[Result, ...]],
        bus: Bus,
        nodes: tuple[NumaNode, ...] = (),
        mounts: tuple[Mount, ...] = (),
    ) -> None:
        self.seed = seed
        self.nodes = nodes
        self.mounts = mounts
        self.own_folder = maker.player.own_folder
        self.servers = tuple(end.facts for end in testbed.servers)
        self.clients = tuple(end.facts for end in testbed.clients)
        self._test = test
        self._maker = maker
        self._left_s = 0.3 * budget_s
        self._earlier = earlier
        self._bus = bus
        self._points_played = 0
        self._preparation: Preparation | None = None

    def prepare(self, preparation: Preparation) -> None:
        """See ``methods.base.RoundContext``."""
        self._preparation = preparation

    async def play(self, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        """Repeated where a repeat may help; of several invalid rounds the one in which the fewest jobs failed is used.

        A round in which a tool failed is no worse a measurement of the others: its figures stand, and the result says
        which is missing.
        """
        sequence, self._points_played = self._points_played, self._points_played + 1
        made: list[Round] = []
        while True:
            key = f"{self._test}/{sequence}/{len(made)}"
            one = await self._maker.make(key, self._test, point, request, len(made), self._preparation)
            made.append(one)
            if one.verdict.valid:
                return one, False
            hopeless = all(not outcome.repeatable for outcome in one.outcomes if outcome.failure is not None)
            failed = any(outcome.failure is not None for outcome in one.outcomes)
            if (failed and hopeless) or len(made) > MOST_REPEATS or request.duration_s > self._left_s:
                return min(made, key=_failures), True
            self._left_s -= request.duration_s

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """See ``rounds.base.Player``."""
        return await self._maker.player.make_file(endpoint, folder, purpose, size_bytes, filled=filled)

    async def remove_file(self, endpoint: str, path: str) -> None:
        """See ``rounds.base.Player``."""
        await self._maker.player.remove_file(endpoint, path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """See ``rounds.base.Player``."""
        await self._maker.player.steer_interrupts(endpoint, cpus)

    def results_of(self, test: str) -> tuple[Result, ...]:
        """Of an earlier test of this run."""
        return self._earlier.get(test, ())

    def publish(self, result: Result) -> None:
        """Journals and shows a result."""
        self._bus.publish(ResultReady(test=self._test, result=self.completed(result)))

    def completed(self, result: Result) -> Result:
        """With what no method knows of: whose turn it was."""
        turn = self._maker.turn
        return result.model_copy(
            update={
                "id": turn.key(result.id),
                "test": self._test,
                "configuration": turn.configuration,
                "run": turn.run,
                "warm_up": turn.warm_up,
            }
        )


def _failures(one: Round) -> int:
    return sum(outcome.failure is not None for outcome in one.outcomes)
