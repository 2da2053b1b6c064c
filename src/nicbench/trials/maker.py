"""Makes one trial: replayed from the journal or sent, its losses accounted for, judged, published."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Collection, Mapping
from typing import Any

from nicbench.duts.base import Addressing, FrameDut
from nicbench.errors import EngineError, HostError, NicbenchError
from nicbench.events import Bus, TrialFinished, TrialStarted
from nicbench.health.gate import Snapshot, compare
from nicbench.health.reader import HealthReader
from nicbench.hosts.base import Host
from nicbench.judge.thresholds import Thresholds
from nicbench.judge.verdict import Evidence, judge
from nicbench.ledger.base import Side
from nicbench.ledger.reader import Counters, LedgerReader
from nicbench.model.pattern import forward_of
from nicbench.model.trial import (
    DutWork,
    Interrupted,
    Interruption,
    Purpose,
    Reading,
    Trial,
    TrialRequest,
)
from nicbench.model.turn import ALONE, Turn
from nicbench.testers.base import Tester
from nicbench.trials.ledger import with_ledger, with_overruns

_DYING_S = 0.5
_OF_THE_TESTER = (Purpose.CEILING, Purpose.TESTER_LATENCY)


class TrialMaker:
    """Makes one trial at a time, or finds it in the journal of a run that is being resumed.

    A trial's ``key`` is the place it has in the run; the same samples lead to the same keys, so a resumed run asks for
    the very trials that were journaled, and then goes on. Where configurations or runs take turns, ``turn`` is part of
    the key. ``began`` is when the run did (monotonic).
    """

    def __init__(
        self,
        tester: Tester,
        dut: FrameDut,
        addressing: tuple[Addressing, ...],
        thresholds: Thresholds,
        dut_cpus: Collection[int],
        journaled: Mapping[str, Trial],
        bus: Bus,
        hosts: Mapping[str, Host] | None = None,
        turn: Turn = ALONE,
        began: float | None = None,
        ledger: LedgerReader | None = None,
        health: HealthReader | None = None,
    ) -> None:
        self.turn = turn
        self._ledger = ledger or LedgerReader()
        self._health = health
        self._hosts = hosts or {}
        self._tester = tester
        self._dut = dut
        self._addressing = addressing
        self._thresholds = thresholds
        self._dut_cpus = dut_cpus
        self._journaled = journaled
        self._bus = bus
        # A journaled trial keeps its number, and a new one takes the next: also where an older nicbench ordered them
        # in another way.
        self._number = max((trial.number for trial in journaled.values()), default=0)
        self._began = time.monotonic() if began is None else began

    def has(self, key: str) -> bool:
        """Whether the journal holds this trial."""
        return self.turn.key(key) in self._journaled

    async def make(self, key: str, test: str, parameters: dict[str, Any], request: TrialRequest, repeat: int) -> Trial:
        """The trial of this key: replayed if it was journaled, else sent now, judged and published."""
        key = self.turn.key(key)
        known = self._journaled.get(key)
        if known is not None:
            if known.request != request:
                raise NicbenchError(
                    f"the journal's trial {known.id} asked for {known.request}, this run asks for {request}",
                    place=key,
                    next_step="the bench file or nicbench itself changed since: start a new run",
                )
            return known
        self._number += 1
        self._bus.publish(
            TrialStarted(
                test=test,
                parameters=parameters,
                purpose=request.purpose,
                load_frames_per_s=request.load_frames_per_s,
                duration_s=request.duration_s,
                repeat=repeat,
            )
        )
        await self._dut.begin_trial(self._number)
        await self._tester.learn(self._number, request, self._addressing)
        hardware = await self._hardware()
        counters = await self._counters(request)
        drops, overruns = await self._dut.drops(), await self._dut.overruns()
        work = await self._work(request)
        waited, began = await self._dut.waiting_ns(), time.monotonic_ns()
        try:
            if request.interruption is None:
                reading = await self._tester.trial(self._number, request, self._addressing)
            else:
                reading = await self._interrupted(request, request.interruption)
        except EngineError as error:
            # A ring in memory that goes with the DUT can take the tester's driver with it before the DUT is quite gone.
            await asyncio.sleep(_DYING_S)
            if (failure := await self._dut.failure()) is not None:
                raise _dead(failure, f"{test}, before trial t{self._number:04d} was read") from error
            raise
        failure = await self._dut.failure()
        if failure is None:
            waiting = _share_of_time(waited, await self._dut.waiting_ns(), time.monotonic_ns() - began)
            reading = reading.model_copy(update={"dut_waiting_share": waiting})
            reading = with_overruns(reading, overruns, await self._dut.overruns())
            after = (counters, await self._counters(request))
            view, receivers = self._ledger.view(Side.TESTER), self._receivers(request)
            reading = with_ledger(reading, drops, await self._dut.drops(), after, view, receivers)
            if hardware is not None and (later := await self._hardware()) is not None:
                reading = reading.model_copy(update={"machine": compare(hardware, later)})
            if work is not None and (worked := await self._work(request)) is not None:
                reading = reading.model_copy(update={"dut_work": worked.since(work)})
        trial = Trial(
            id=f"t{self._number:04d}",
            key=key,
            test=test,
            configuration=self.turn.configuration,
            run=self.turn.run,
            warm_up=self.turn.warm_up,
            parameters=parameters,
            repeat=repeat,
            request=request,
            reading=reading,
            verdict=judge(
                Evidence.of(
                    reading,
                    dut_cpus=self._dut_cpus,
                    peer_failure=failure and f"the DUT {failure}",
                    link_may_change=request.interruption is not None,
                ),
                self._thresholds,
            ),
            at_s=round(time.monotonic() - self._began, 3),
        )
        self._bus.publish(TrialFinished(trial=trial))
        if failure is not None:
            raise _dead(failure, f"{test}, trial {trial.id}")
        return trial

    def _receivers(self, request: TrialRequest) -> set[int]:
        """The ports at which frames of the trial are to arrive."""
        ways = [(way.transmit, way.receive) for way in self._addressing]
        return {receive for _, receive in (ways if request.bidirectional else forward_of(ways))}

    async def _hardware(self) -> Snapshot | None:
        return await self._health.read() if self._health is not None else None

    async def _counters(self, request: TrialRequest) -> Counters:
        """Those of the hosts; none in trials of the tester alone, whose frames end in a sink."""
        return Counters() if request.purpose in _OF_THE_TESTER else await self._ledger.read()

    async def _work(self, request: TrialRequest) -> DutWork | None:
        """The DUT's own account of its work, where the trial asks for it."""
        return await self._dut.work() if request.purpose is Purpose.AVERAGE else None

    async def _interrupted(self, request: TrialRequest, asked: Interruption) -> Reading:
        """A trial while whose frames are sent something is done to the DUT, and when it was."""
        host, when = self._hosts[asked.on], [math.nan, math.nan]

        async def interrupt() -> None:
            transmission = time.monotonic()
            await asyncio.sleep(asked.after_s)
            when[0] = time.monotonic() - transmission
            await host.run(asked.command, timeout_s=asked.timeout_s)
            when[1] = time.monotonic() - transmission

        reading = await self._tester.trial(self._number, request, self._addressing, interrupt)
        return reading.model_copy(update={"interrupted": Interrupted(began_s=when[0], ended_s=when[1])})

    @property
    def ports(self) -> int:
        """How many of the tester's ports its frames leave or come to."""
        return len({port for way in self._addressing for port in (way.transmit, way.receive)})

    @property
    def dut(self) -> FrameDut:
        """The DUT of its trials."""
        return self._dut


def _share_of_time(before_ns: int | None, after_ns: int | None, elapsed_ns: int) -> float | None:
    """None where one of the ends is not known."""
    if before_ns is None or after_ns is None:
        return None
    return max(0, after_ns - before_ns) / max(1, elapsed_ns)


def _dead(failure: str, place: str) -> HostError:
    """The run ends where its DUT does: nothing that follows would be measured on it."""
    return HostError(
        f"the DUT {failure}",
        place=place,
        next_step="what was measured is kept; mend the DUT, and `nicbench resume` goes on from there",
    )
