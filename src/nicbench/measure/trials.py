"""Trials of frames: each is sent by the tester, its losses are laid to places, and it is judged.

``samples.py`` replays, repeats and journals them; ``frame_context.py`` is what a method asks for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import Note, TrialFinished, TrialStarted
from nicbench.core.frame_size import words_of
from nicbench.core.judging import Thresholds
from nicbench.core.pattern import Way, forward_of
from nicbench.core.trial import DutWork, Interruption, InterruptionTimes, Purpose, Reading, Trial, TrialRequest
from nicbench.core.verdict import Reason
from nicbench.hosts.base import Host
from nicbench.measure.health.reader import HealthReader, Snapshot, compare
from nicbench.measure.ledger.base import Side
from nicbench.measure.ledger.losses import add_ledger, add_left_to_kernel, add_overruns
from nicbench.measure.ledger.reader import Counters, LedgerReader
from nicbench.measure.samples import Maker, SampleLog, Slot
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.stats.looks import CoreLooks, sum_looks
from nicbench.testbed.duts.base import Addressing, FrameDut
from nicbench.testbed.testers.base import Tester

PortQueues = tuple[tuple[int, ...], ...]
"""Frames by port and queue."""

_DYING_S = 0.5
_OF_THE_TESTER = (Purpose.CEILING, Purpose.TESTER_LATENCY)
_LONGER_DRAIN = 2.0
_LEAST_LONGER_DRAIN_S = 0.5
"""Where frames came late, the next trial waits so many times as long for them, and no less than this."""
_STUCK_S = 0.5
"""So long a DUT may need, behind a trial that was too much for it, before it forwards again."""
UNTIL_FRAMES_COME_BACK_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""So long learning frames are waited for, one time after the other: a link needs seconds to come up."""


@dataclass(frozen=True, slots=True)
class TrialSetup:
    """What trials are made with: tester and DUT, and what is read on their hosts around each trial."""

    tester: Tester
    dut: FrameDut
    addressing: tuple[Addressing, ...] = ()
    """With what frames are addressed on each way between the tester's ports."""
    dut_cpus: Collection[int] = ()
    """The cores on which the DUT works in the kernel: other programs on them disturb a trial."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """Those on which a command may run in the midst of a trial: ``dut``, ``tester``, ``local``."""
    ledger: LedgerReader = field(default_factory=LedgerReader)
    health: HealthReader | None = None
    port_names: tuple[str, ...] = ()
    """The names of the tester's ports, by their numbers in ``addressing``."""
    smallest_frame_bytes: int = 64
    """The smallest frame that tester and traffic allow."""


class TrialMaker(Maker[Trial, TrialRequest]):
    """Sends trials, one at a time."""

    def __init__(self, setup: TrialSetup, thresholds: Thresholds, log: SampleLog[Trial]) -> None:
        super().__init__(log)
        self._setup = setup
        self._thresholds = thresholds
        self._too_long: set[float] = set()
        self._drain_s = max(map(_drain_after, log.journaled.values()), default=0.0)

    def started_event(self, slot: Slot, request: TrialRequest) -> TrialStarted:
        return TrialStarted(
            test=slot.test,
            parameters=slot.parameters,
            purpose=request.purpose,
            load_frames_per_s=request.load_frames_per_s,
            duration_s=request.duration_s,
            repeat=slot.repeat,
        )

    def finished_event(self, sample: Trial) -> TrialFinished:
        return TrialFinished(trial=sample)

    async def measure(self, slot: Slot, request: TrialRequest) -> tuple[Trial, NicbenchError | None]:
        """One trial in the order of RFC 2544 section 23, between two readings of every counter.

        Where the DUT died in it, the trial is kept and the run ends.
        """
        reading, failure = await self._read(slot, self._with_longer_drain(request))
        if self._drain_s > request.drain_s:
            reading = reading.model_copy(update={"drain_s": self._drain_s})
        broken = f"the DUT {failure}" if failure is not None else await self._find_broken_path(slot, request, reading)
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
        self._drain_s = max(self._drain_s, _drain_after(trial))
        return trial, None if failure is None else _dead_dut_error(failure, f"{slot.test}, trial {trial.id}")

    def _with_longer_drain(self, request: TrialRequest) -> TrialRequest:
        """The request with the drain that earlier trials showed to be needed."""
        return request.model_copy(update={"drain_s": max(request.drain_s, self._drain_s)})

    async def _read(self, slot: Slot, request: TrialRequest) -> tuple[Reading, str | None]:
        """What was read of the trial; and how the DUT died in it, whose counters are then gone."""
        dut = self._setup.dut
        await dut.begin_trial(slot.number)
        await self._learn(slot, request)
        hardware = await self._read_hardware()
        counters = await self._read_counters(request)
        drops, left, overruns = await dut.drops(), await dut.left_to_kernel(), await dut.overruns()
        work, queues = await self._read_work(request), await dut.queue_frames()
        waited, began = await dut.waiting_ns(), time.monotonic_ns()
        try:
            reading = await self._send(slot, request)
        except EngineError as error:
            # A ring in memory that goes with the DUT can take the tester's driver with it before the DUT is quite gone.
            await asyncio.sleep(_DYING_S)
            if (failure := await dut.failure()) is not None:
                place = f"{slot.test}, before trial {Trial.id_of(slot.number)} was read"
                raise _dead_dut_error(failure, place) from error
            raise
        if (failure := await dut.failure()) is not None:
            return reading, failure
        waiting = _share_of_time(waited, await dut.waiting_ns(), time.monotonic_ns() - began)
        reading = reading.model_copy(update={"dut_waiting_share": waiting})
        reading = add_overruns(reading, overruns, await dut.overruns())
        after = (counters, await self._read_counters(request))
        view, receivers = self._setup.ledger.view(Side.TESTER), self._receivers(request)
        reading = add_ledger(reading, drops, await dut.drops(), after, view, receivers)
        reading = add_left_to_kernel(reading, left, await dut.left_to_kernel())
        reading = reading.model_copy(update={"dut_queues": _subtract(queues, await dut.queue_frames())})
        if hardware is not None and (later := await self._read_hardware()) is not None:
            reading = reading.model_copy(update={"machine": compare(hardware, later)})
        if work is not None and (worked := await self._read_work(request)) is not None:
            reading = reading.model_copy(update={"dut_work": worked.subtract(work)})
        return reading, None

    async def _learn(self, slot: Slot, request: TrialRequest) -> None:
        """Sends the learning frames; HostError where of some way none of them comes back, also after a while.

        A trial would charge the DUT with what a pulled cable or a lost route did.
        """
        place = f"{slot.test}, before trial {Trial.id_of(slot.number)}"
        silent = await self._silent_ways(slot, request)
        if not silent or await self._is_only_too_long(slot, request):
            return
        for wait_s in UNTIL_FRAMES_COME_BACK_S:
            if (failure := await self._setup.dut.failure()) is not None:
                raise _dead_dut_error(failure, place)
            if request.purpose not in _OF_THE_TESTER:
                with contextlib.suppress(NicbenchError):  # what cannot be mended yet shows in that nothing comes back
                    await self._setup.dut.mend()
            patient = request.model_copy(update={"settle_s": max(request.settle_s, wait_s)})
            if not (silent := await self._silent_ways(slot, patient)):
                self.log.bus.publish(Note(level="warning", text=f"{place}: no learning frame came back at first"))
                return
            if await self._is_only_too_long(slot, patient):
                return
        raise HostError(
            f"nothing comes back {self._words_of(silent)}: none of the learning frames, "
            f"for {sum(UNTIL_FRAMES_COME_BACK_S):.0f} s",
            place=place,
            next_step="check the cables, the links, and that the DUT forwards on every way (addresses, neighbours, "
            "routes); what was measured is kept, and `nicbench resume` goes on from there",
        )

    async def _find_broken_path(self, slot: Slot, request: TrialRequest, reading: Reading) -> str | None:
        """What says that the path broke in the midst of the trial: frames were lost, and none comes back behind it.

        A cable that died with its links up, or a DUT that forgot its routes, loses frames as an overloaded DUT does.
        """
        if not reading.counts.lost or request.purpose in _OF_THE_TESTER or request.interruption is not None:
            return None
        if request.frame_bytes in self._too_long:
            request = self._with_smallest_frames(request)
        patient = request.model_copy(update={"settle_s": max(request.settle_s, _STUCK_S)})
        if not await self._silent_ways(slot, request) or not (silent := await self._silent_ways(slot, patient)):
            return None
        return f"nothing came back any more {self._words_of(silent)}, also after the trial"

    def _words_of(self, ways: frozenset[Way]) -> str:
        names = self._setup.port_names
        return ", ".join(f"from port {names[one]} to {names[other]}" for one, other in sorted(ways))

    def _with_smallest_frames(self, request: TrialRequest) -> TrialRequest:
        return request.model_copy(update={"frame_bytes": self._setup.smallest_frame_bytes, "mix": None})

    async def _silent_ways(self, slot: Slot, request: TrialRequest) -> frozenset[Way]:
        """Sends learning frames, and gives the ways of the trial on which none came back."""
        setup = self._setup
        return await setup.tester.learn(slot.number, request, setup.addressing) & self._counted_ways(request)

    async def _is_only_too_long(self, slot: Slot, request: TrialRequest) -> bool:
        """Whether the smallest frames come back where those of the trial do not: the DUT does not take their size."""
        smallest = self._setup.smallest_frame_bytes
        if request.frame_bytes == smallest:
            return False
        proof = self._with_smallest_frames(request)
        if await self._silent_ways(slot, proof) or not await self._silent_ways(slot, request):
            return False  # a path that comes back just now is asked once more for the trial's size
        if request.frame_bytes not in self._too_long:
            self._too_long.add(request.frame_bytes)
            text = (
                f"{slot.test}: no learning frame of {words_of(request.size)} comes back; those of {smallest} bytes do"
            )
            self.log.bus.publish(Note(level="warning", text=text))
        return True

    def _counted_ways(self, request: TrialRequest) -> frozenset[Way]:
        """The ways whose frames the trial counts."""
        ways = [(way.transmit, way.receive) for way in self._setup.addressing]
        return frozenset(ways if request.bidirectional else forward_of(ways))

    async def _send(self, slot: Slot, request: TrialRequest) -> Reading:
        """The transmission itself, with whatever is done to the DUT meanwhile."""
        if request.interruption is not None:
            return await self._send_and_interrupt(slot, request, request.interruption)
        return await self._setup.tester.trial(slot.number, request, self._setup.addressing)

    def _receivers(self, request: TrialRequest) -> set[int]:
        """The ports at which frames of the trial are to arrive."""
        return {receive for _, receive in self._counted_ways(request)}

    async def _read_hardware(self) -> Snapshot | None:
        return await self._setup.health.read() if self._setup.health is not None else None

    async def _read_counters(self, request: TrialRequest) -> Counters:
        """Those of the hosts; none in trials of the tester alone, whose frames end in a sink."""
        return Counters() if request.purpose in _OF_THE_TESTER else await self._setup.ledger.read()

    async def _read_work(self, request: TrialRequest) -> DutWork | None:
        """The DUT's own account of its work, where the trial asks for it."""
        return await self._setup.dut.work() if request.purpose is Purpose.AVERAGE else None

    async def _send_and_interrupt(self, slot: Slot, request: TrialRequest, asked: Interruption) -> Reading:
        """A trial while whose frames are sent something is done to the DUT, and when it was."""
        host, when = self._setup.hosts[asked.on], [math.nan, math.nan]

        async def interrupt() -> None:
            transmission = time.monotonic()
            await asyncio.sleep(asked.after_s)
            when[0] = time.monotonic() - transmission
            await host.run(asked.command, timeout_s=asked.timeout_s)
            when[1] = time.monotonic() - transmission

        reading = await self._setup.tester.trial(slot.number, request, self._setup.addressing, interrupt)
        return reading.model_copy(update={"interrupted": InterruptionTimes(began_s=when[0], ended_s=when[1])})

    @property
    def ports(self) -> int:
        """How many of the tester's ports its frames leave or come to."""
        return len({port for way in self._setup.addressing for port in (way.transmit, way.receive)})

    def looks(self, trial: Trial) -> CoreLooks:
        """Returns what the looks at the DUT's cores found in a trial."""
        return sum_looks(cpu for cpu in trial.reading.health.cpus if cpu.cpu in self._setup.dut_cpus)

    @property
    def dut(self) -> FrameDut:
        """The DUT of its trials."""
        return self._setup.dut


def _drain_after(trial: Trial) -> float:
    """The drain that the trials after this one need at least: a longer one where frames came late, else that of it."""
    used = trial.reading.drain_s or trial.request.drain_s
    if any(finding.reason is Reason.LATE for finding in trial.verdict.findings):
        return max(_LONGER_DRAIN * (used + trial.request.settle_s), _LEAST_LONGER_DRAIN_S)
    return trial.reading.drain_s or 0.0


def _share_of_time(before_ns: int | None, after_ns: int | None, elapsed_ns: int) -> float | None:
    """None where one of the ends is not known."""
    if before_ns is None or after_ns is None:
        return None
    return max(0, after_ns - before_ns) / max(1, elapsed_ns)


def _subtract(before: PortQueues, after: PortQueues) -> PortQueues:
    """What each queue received meanwhile; nothing where a count is not known at both ends."""
    if [*map(len, before)] != [*map(len, after)]:
        return ()
    return tuple(
        tuple(max(0, end - start) for start, end in zip(*pair, strict=True)) for pair in zip(before, after, strict=True)
    )


def _dead_dut_error(failure: str, place: str) -> HostError:
    """The run ends where its DUT does: nothing that follows would be measured on it."""
    return HostError(
        f"the DUT {failure}",
        place=place,
        next_step="what was measured is kept; fix the DUT, and `nicbench resume` goes on from there",
    )
