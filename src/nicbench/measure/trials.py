"""Trials of frames: each is sent by the tester, interrupted where the test asks for it, its losses are laid to places,
and it is judged.

``samples.py`` replays, repeats and journals them; ``frame_context.py`` is what a method asks for them.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import TrialFinished, TrialStarted
from nicbench.core.judging import Thresholds
from nicbench.core.machine import PowerFacts
from nicbench.core.reading import Counts, InterruptionTimes
from nicbench.core.trial import Health, Interruption, Purpose, Reading, Trial, TrialRequest
from nicbench.engine.reading import require_consistent
from nicbench.measure.learning import Learner, Patience, dead_dut_error
from nicbench.measure.samples import Maker, SampleLog, Slot
from nicbench.measure.surroundings import Surroundings, TrialSetup
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.testbed.duts.base import FrameDut
from nicbench.tuning.undo.network import SetLinkUp

_DYING_S = 0.5


class TrialMaker(Maker[Trial, TrialRequest]):
    """Sends trials, one at a time."""

    def __init__(self, setup: TrialSetup, thresholds: Thresholds, log: SampleLog[Trial]) -> None:
        super().__init__(log)
        self._setup = setup
        self._thresholds = thresholds
        self._surroundings = Surroundings(setup.dut, setup.ledger, setup.health, setup.monitors, setup.programmed)
        self._patience = Patience(log.journaled.values())
        self._learner = Learner(setup, log.bus, self._patience)

    def started_event(self, slot: Slot, request: TrialRequest) -> TrialStarted:
        return TrialStarted(
            test=slot.test,
            parameters=slot.parameters,
            purpose=request.purpose,
            load_frames_per_s=request.load_frames_per_s,
            duration_s=request.duration_s,
            repeat=slot.repeat,
            bidirectional=request.bidirectional,
        )

    def finished_event(self, sample: Trial) -> TrialFinished:
        return TrialFinished(trial=sample)

    async def measure(self, slot: Slot, request: TrialRequest) -> tuple[Trial, NicbenchError | None]:
        """One trial in the order of RFC 2544 section 23, between two readings of every counter.

        Where the DUT died in it, the trial is kept and the run ends.
        """
        reading, failure = await self._read(slot, request)
        broken = failure and f"the DUT {failure}"
        if failure is None and request.purpose is not Purpose.IDLE:
            broken = await self._learner.find_broken_path(slot, request, reading)
        evidence = Evidence.of(
            reading,
            dut_cpus=self._setup.dut_cpus,
            peer_failure=broken,
            link_may_change=request.interruption is not None,
            sent_share=request.sent_share,
            drain_s=request.drain_s,
        )
        trial = Trial(
            id=Trial.id_of(slot.number),
            **self.record_of(slot),
            request=request,
            reading=reading,
            verdict=judge(evidence, self._thresholds, adjusts=request.adjusts),
        )
        self._patience.note(trial)
        if request.purpose is not Purpose.IDLE:
            self._learner.note(trial)
        return trial, None if failure is None else dead_dut_error(failure, f"{slot.test}, trial {trial.id}")

    async def _read(self, slot: Slot, request: TrialRequest) -> tuple[Reading, str | None]:
        """What was read of the trial; and how the DUT died in it, whose counters are then gone."""
        dut = self._setup.dut
        if request.purpose is Purpose.IDLE:
            return await self._wait(slot, request), await dut.failure()
        await dut.begin_trial(slot.number)
        learnt = await self._learner.learn(slot, request)
        asked, request = request, self._patience.drain(request)
        before = await self._surroundings.look(request.purpose)
        try:
            reading = require_consistent(await self._send(slot, request), into_sink=request.purpose is Purpose.CEILING)
        except EngineError as error:
            # A ring in memory that goes with the DUT can take the tester's driver with it before the DUT is quite gone.
            await asyncio.sleep(_DYING_S)
            if (failure := await dut.failure()) is not None:
                place = f"{slot.test}, before trial {Trial.id_of(slot.number)} was read"
                raise dead_dut_error(failure, place, error) from error
            raise
        longer_s = request.drain_s if request.drain_s > asked.drain_s else None
        reading = reading.replace(learning=learnt, drain_s=longer_s)
        if (failure := await dut.failure()) is not None:
            return reading, failure
        receivers = self._receivers(request)
        reading = await self._surroundings.add(reading, before, request.purpose, receivers)
        return await self._setup.tester.complete(reading, request, self._setup.addressing), None

    async def _wait(self, slot: Slot, request: TrialRequest) -> Reading:
        """A window in which nothing is sent."""
        power = () if self._setup.meter is None else await self._setup.meter.idle(slot.number, request.duration_s)
        return Reading(
            transmit_ns=round(1e9 * request.duration_s),
            counts=Counts.sum_of(()),
            streams=(),
            ports=(),
            latency=None,
            health=Health(),
            power=power,
        )

    async def _send(self, slot: Slot, request: TrialRequest) -> Reading:
        """The transmission itself, with whatever is done to the DUT or read meanwhile."""
        tester, addressing = self._setup.tester, self._setup.addressing
        if request.interruption is not None:
            return await self._send_and_interrupt(slot, request, request.interruption)
        if request.purpose is Purpose.SPREAD and self._setup.queues is not None:
            return await self._setup.queues.around(lambda: tester.trial(slot.number, request, addressing))
        meter = self._setup.meter if request.purpose is Purpose.POWER else None
        if meter is None:
            return await tester.trial(slot.number, request, addressing)
        reading = await tester.trial(slot.number, request, addressing, meter.during(slot.number, request))
        return reading.replace(power=meter.of_trial(slot.number, request, reading))

    def _receivers(self, request: TrialRequest) -> set[int]:
        """The ports at which frames of the trial are to arrive."""
        return {way.receive for way in self._setup.counted_ways(request)}

    async def _send_and_interrupt(self, slot: Slot, request: TrialRequest, asked: Interruption) -> Reading:
        """A trial while whose frames are sent something is done to the DUT, and when it was."""
        interrupter = Interrupter(self._setup, asked)
        reading = await self._setup.tester.trial(slot.number, request, self._setup.addressing, interrupter.interrupt)
        return reading.replace(interrupted=interrupter.times)

    @property
    def dut_links(self) -> tuple[str, ...]:
        """The names of the DUT's ports whose links may go down in a trial."""
        return tuple(self._setup.dut_links)

    @property
    def ports(self) -> int:
        """How many of the tester's ports its frames leave or come to."""
        return len({port for way in self._setup.addressing for port in (way.transmit, way.receive)})

    @property
    def port_names(self) -> tuple[str, ...]:
        """The names of the tester's ports, by their numbers."""
        return self._setup.port_names

    @property
    def power(self) -> PowerFacts:
        """The meters of the machines; none where no test asked for them."""
        return PowerFacts() if self._setup.meter is None else self._setup.meter.facts

    @property
    def dut(self) -> FrameDut:
        """The DUT of its trials."""
        return self._setup.dut


class Interrupter:
    """Carries one interruption out while frames are sent, and takes it back also where the trial fails."""

    def __init__(self, setup: TrialSetup, asked: Interruption) -> None:
        self._setup = setup
        self._asked = asked
        self._host = setup.hosts[asked.on]
        self._device = None if asked.link is None else setup.dut_links[asked.link]
        self.times: InterruptionTimes | None = None
        """When the commands ran; None before the first of them ended."""

    async def interrupt(self) -> None:
        """Waits, interrupts, and after ``lasts_s`` takes it back; the transmission begins with the call."""
        asked, transmission = self._asked, time.monotonic()
        await asyncio.sleep(asked.after_s)
        began_s = time.monotonic() - transmission
        try:
            await self._run(await self._command())
            ended_s = time.monotonic() - transmission
            self.times = InterruptionTimes(began_s=began_s, ended_s=ended_s)
            if asked.lasts_s is None:
                return
            await asyncio.sleep(asked.lasts_s)
        except BaseException:  # also a command that failed may have done a part
            if asked.lasts_s is not None:
                with suppress(HostError):
                    await self._restore()
            raise
        restore_began_s = time.monotonic() - transmission
        await self._restore()
        restored_s = time.monotonic() - transmission
        self.times = self.times.replace(restore_began_s=restore_began_s, restored_s=restored_s)

    async def _command(self) -> tuple[str, ...]:
        """Returns the command that interrupts; the undo of a link is written before it goes down."""
        if self._device is None:
            return self._asked.command
        if self._setup.changes is not None:
            await self._setup.changes.make(self._host, SetLinkUp(device=self._device))
        return self._set_link("down")

    async def _restore(self) -> None:
        if self._device is None:
            await self._run(self._asked.restore)
            return
        await self._run(self._set_link("up"))
        await self._setup.dut.mend()  # a link that goes down loses the addresses and neighbours that nicbench gave it

    def _set_link(self, state: str) -> tuple[str, ...]:
        return ("ip", "link", "set", "dev", str(self._device), state)

    async def _run(self, command: tuple[str, ...]) -> None:
        await self._host.run(command, timeout_s=self._asked.timeout_s)
