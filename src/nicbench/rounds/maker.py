"""Makes one round: replayed from the journal or played, watched, judged, published."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from nicbench.errors import NicbenchError
from nicbench.events import Bus, RoundBegun, RoundFinished
from nicbench.judge.rounds import judge_round
from nicbench.judge.thresholds import Thresholds
from nicbench.model.round import MachineCpu, Preparation, Round, RoundRequest
from nicbench.model.turn import Turn
from nicbench.monitor.base import Monitors
from nicbench.rounds.base import Player
from nicbench.rounds.counters import is_telling


class RoundMaker:
    """Makes one round at a time, or finds it in the journal of a run that is being resumed (see ``TrialMaker``)."""

    def __init__(
        self,
        player: Player,
        monitors: Monitors,
        thresholds: Thresholds,
        journaled: Mapping[str, Round],
        bus: Bus,
        turn: Turn,
        began: float,
    ) -> None:
        self.turn = turn
        self._player = player
        self._monitors = monitors
        self._thresholds = thresholds
        self._journaled = journaled
        self._bus = bus
        self._number = max((each.number for each in journaled.values()), default=0)
        self._began = began

    @property
    def player(self) -> Player:
        """What runs the jobs."""
        return self._player

    async def make(
        self,
        key: str,
        test: str,
        parameters: dict[str, Any],
        request: RoundRequest,
        repeat: int,
        preparation: Preparation | None = None,
    ) -> Round:
        """The round of this key: replayed if it was journaled, else prepared for, played, judged and published."""
        key = self.turn.key(key)
        request = request.model_copy(update={"warm_up": self.turn.warm_up})
        known = self._journaled.get(key)
        if known is not None:
            if known.request != request:
                raise NicbenchError(
                    f"the journal's round {known.id} asked for another thing than this run does",
                    place=key,
                    next_step="the bench file or nicbench itself changed since: start a new run",
                )
            return known
        self._number += 1
        self._bus.publish(
            RoundBegun(
                test=test,
                parameters=parameters,
                jobs=len(request.jobs),
                duration_s=request.duration_s,
                repeat=repeat,
            )
        )
        if preparation is not None:
            await self._player.prepare(preparation)
        for command in request.before:
            await self._player.run_before(command)
        await self._player.rest(request.pause_s)
        before = await self._player.counters()
        watch = _Watch(self._monitors, self._number)
        try:
            outcomes = await self._player.play(self._number, request, watch)
        finally:
            await watch.end()
        counters = _differences(before, await self._player.counters())
        made = Round(
            id=f"r{self._number:04d}",
            key=key,
            test=test,
            configuration=self.turn.configuration,
            run=self.turn.run,
            parameters=parameters,
            repeat=repeat,
            request=request,
            outcomes=outcomes,
            cpu=watch.cpu,
            counters=counters,
            bonds=self._player.bonds(),
            failure=self._player.failure(),
            verdict=judge_round(
                request,
                outcomes,
                watch.cpu,
                self._thresholds,
                counters,
                self._player.failure(),
                self._player.server_failure(),
            ),
            at_s=round(time.monotonic() - self._began, 3),
        )
        await self._player.keep(made)
        self._bus.publish(RoundFinished(round=made))
        return made


class _Watch:
    """The monitors from when clients begin until the last has ended; not while servers start or outputs are read."""

    def __init__(self, monitors: Monitors, number: int) -> None:
        self.cpu: tuple[MachineCpu, ...] = ()
        self._monitors = monitors
        self._number = number
        self._since: tuple[float, float] | None = None

    async def begin(self) -> None:
        await self._monitors.begin_round(self._number)
        self._since = time.process_time(), time.monotonic()

    async def end(self) -> None:
        """Again is no harm; where nothing began there is nothing to end."""
        if self._since is None:
            return
        (own_s, began), self._since = self._since, None
        own_s, took_s = time.process_time() - own_s, time.monotonic() - began
        self.cpu = tuple(_with_controller(each, own_s, took_s) for each in await self._monitors.end_round())


def _with_controller(cpu: MachineCpu, own_s: float, took_s: float) -> MachineCpu:
    """Nicbench itself runs on the machine that is called so."""
    if cpu.machine != "local" or not cpu.cpus or took_s <= 0:
        return cpu
    return cpu.model_copy(update={"controller": own_s / took_s / cpu.cpus})


def _differences(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """What rose, and of pauses, marks and drops also what did not; a counter that was reset meanwhile says nothing."""
    return {
        name: {
            counter: value - before[name][counter]
            for counter, value in counters.items()
            if counter in before[name]
            and (value > before[name][counter] or (is_telling(counter) and value == before[name][counter]))
        }
        for name, counters in after.items()
        if name in before
    }
