"""Learning frames before each trial: they prove that every way passes frames, and teach the DUT every flow.

Bridges, firewalls, address translation and switches in software set up a flow when its first frame comes, and may drop
or delay that frame. So each flow is sent before a trial counts anything, until frames of all flows have come back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum, auto
from typing import Final

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import Bus, Note
from nicbench.core.frame_size import Size, words_of
from nicbench.core.frozen import frozen
from nicbench.core.judging import Reason
from nicbench.core.pattern import Way
from nicbench.core.reading import LearntFlows
from nicbench.core.result import Result
from nicbench.core.trial import OF_THE_TESTER, Purpose, Reading, Trial, TrialRequest
from nicbench.measure.samples import Slot
from nicbench.measure.surroundings import TrialSetup

# How long frames take through the DUT, as learning frames and trials have shown: one time, for whatever waits.
#
# Learning, the proof that frames pass, the drain of a trial, and the proof behind it wait no less than that.


_AT_ONCE_S: Final = 0.02
"""The time that the first learning frames behind a trial are waited for; most DUTs return them at once."""
_STUCK_S: Final = 0.5
"""The time that a DUT may need, behind a trial that was too much for it, before it forwards again."""
_LONGER: Final = 2.0
"""The factor by which waits grow once frames came back only after a wait: the next ones may take longer."""
_LEAST_LONGER_DRAIN_S: Final = 0.5


class Patience:
    """``needed_s`` is what frames are waited for at least; 0 until some took longer than they were given."""

    def __init__(self, journaled: Iterable[Trial] = ()) -> None:
        self.needed_s = 0.0
        for trial in journaled:
            self.note(trial)

    def note_wait(self, wait_s: float) -> None:
        """Takes notice that frames came back when they were waited for so long, and not when it was less."""
        self.needed_s = max(self.needed_s, _LONGER * wait_s)

    def note(self, trial: Trial) -> None:
        """Takes notice of a trial: of the drain that it had, and of frames that came after it."""
        used_s = trial.reading.drain_s or trial.request.drain_s
        if Reason.LATE in trial.verdict.reasons:
            longer_s = _LONGER * (used_s + trial.request.settle_s)
            self.needed_s = max(self.needed_s, longer_s, _LEAST_LONGER_DRAIN_S)
        self.needed_s = max(self.needed_s, trial.reading.drain_s or 0.0)

    def settle(self, request: TrialRequest) -> TrialRequest:
        """Returns the request with as long a settle time as learning frames need."""
        return request.replace(settle_s=max(request.settle_s, self.needed_s))

    def drain(self, request: TrialRequest) -> TrialRequest:
        """Returns the request with as long a drain as its frames need."""
        return request.replace(drain_s=max(request.drain_s, self.needed_s))

    def waits_behind(self, request: TrialRequest) -> tuple[float, ...]:
        """Returns how long learning frames behind a trial are waited for, one time after the other."""
        last_s = max(request.settle_s, self.needed_s + _STUCK_S)
        short = (min(request.settle_s, _AT_ONCE_S), request.settle_s)
        return (*(each for each in dict.fromkeys(short) if self.needed_s <= each < last_s), last_s)


_UNTAUGHT: Final = (*OF_THE_TESTER, Purpose.CONNECTIONS)
"""Trials before which no flows are taught: they have none, or are to see how the DUT takes new ones."""
UNTIL_FRAMES_COME_BACK_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
"""The times that learning frames are waited for, one after the other: a link needs seconds to come up."""
_FORGETS: Final = {Reason.LINK_CHANGED, Reason.PEER_FAILED, Reason.UNLEARNT}
"""After such a trial nobody knows which flows the DUT still has."""
_STANDS_S: Final = 1.0
"""The time for which the proof holds that frames came back on every way, if nothing but a trial was done."""
_LEARN_AGAIN_S: Final = 30.0
"""Learning frames go out again after so long, whatever passes: tables of addresses age on ways that carry no load."""


class _Proof(Enum):
    """How the proof ended that frames come back."""

    PASSES = auto()
    CAME_BACK = auto()  # nothing did at first
    TOO_LONG = auto()  # only smaller frames do


@frozen
class _Passage:
    """Frames of a size came back on every way (monotonic times)."""

    size: Size
    bidirectional: bool
    learnt_s: float
    """When they last were learning frames."""
    seen_s: float

    def holds_for(self, request: TrialRequest) -> bool:
        """Whether nothing has to be sent to know that the trial's ways pass frames."""
        now = time.monotonic()
        is_same = (request.size, request.bidirectional) == (self.size, self.bidirectional)
        return is_same and now - self.seen_s < _STANDS_S and now - self.learnt_s < _LEARN_AGAIN_S


class Learner:
    """Sends the learning frames of one run, one trial after the other."""

    def __init__(self, setup: TrialSetup, bus: Bus, patience: Patience) -> None:
        self._setup = setup
        self._patience = patience
        self._bus = bus
        self._too_long: set[float] = set()
        self._said: set[tuple[str, str]] = set()
        self._taught_for = ""
        self._last_s: float | None = None
        """When every flow had a frame last (monotonic); None where the DUT knows none of them."""
        self._learnt: tuple[LearntFlows, ...] = ()
        self._passage: _Passage | None = None

    async def learn(self, slot: Slot, request: TrialRequest) -> tuple[LearntFlows, ...]:
        """Sends them, and gives what came back when every flow was sent last; nothing where flows are not taught.

        HostError where of some way nothing comes back, also after a while: a trial would charge the DUT with what a
        pulled cable or a lost route did. Nothing is sent where frames of the size came back a moment ago.
        """
        asked, request = request, self._patience.settle(request)
        if request.purpose in _UNTAUGHT or self._setup.learning.flows == "few":
            await self._prove(slot, request)
            return ()
        is_due = self._is_due(slot, request)
        learnt = await self._teach(slot, request) if is_due else ()
        if not learnt or _silent_ways(learnt):
            proof = await self._prove(slot, request)
            if proof is _Proof.TOO_LONG:
                return ()
            if proof is _Proof.CAME_BACK:
                is_due, learnt, request = True, (), self._patience.settle(asked)
        if is_due:
            self._learnt = await self._teach_rest(slot, request, learnt)
            self._taught_for, self._last_s = slot.test, time.monotonic()
            self._say(slot)
        return self._learnt

    def note(self, trial: Trial) -> None:
        """Takes notice of a trial: its frames keep the flows alive, or whatever happened in it made the DUT forget."""
        request, streams = trial.request, trial.reading.streams
        if request.purpose in OF_THE_TESTER:
            return
        if request.interruption is not None or _FORGETS & set(trial.verdict.reasons):
            self._last_s = self._passage = None
        elif self._last_s is not None and all(
            stream.flows is not None and stream.counts.sent >= stream.flows.flows for stream in streams
        ):
            self._last_s = time.monotonic() - (trial.reading.drain_s or request.drain_s) - request.settle_s
        every_way_passed = not trial.reading.counts.lost and not request.ways
        if self._passage is not None and every_way_passed and all(stream.counts.received for stream in streams):
            self._passage = replace(self._passage, seen_s=time.monotonic())

    def _is_due(self, slot: Slot, request: TrialRequest) -> bool:
        """Whether every flow is to be sent: before each test, and where the DUT may have forgotten."""
        if self._last_s is None or slot.test != self._taught_for:
            return True
        return time.monotonic() + request.settle_s - self._last_s > self._setup.learning.again_after

    async def _teach(
        self, slot: Slot, request: TrialRequest, attempt: int = 0, before: int = 0
    ) -> tuple[LearntFlows, ...]:
        """One attempt; ``before`` counts the frames of each flow that were sent already."""
        setup, frames = self._setup, 2**attempt
        learnt = await setup.tester.teach(slot.number, request, setup.addressing, frames)
        return tuple(each.replace(frames_per_flow=before + frames) for each in learnt)

    async def _teach_rest(
        self, slot: Slot, request: TrialRequest, learnt: tuple[LearntFlows, ...]
    ) -> tuple[LearntFlows, ...]:
        """Further attempts, where some flows do not pass after the first one, or it was in vain."""
        for attempt in range(1 if learnt else 0, self._setup.learning.attempts):
            if learnt and not any(each.silent or each.unsent for each in learnt):
                break
            before = max((each.frames_per_flow for each in learnt), default=0)
            learnt = await self._teach(slot, request, attempt, before)
            if not learnt:
                break
        return learnt

    def _say(self, slot: Slot) -> None:
        """Warns of flows that do not pass or were not sent, once in a test."""
        for each in self._learnt:
            if each.silent:
                frames = f": none of {each.frames_per_flow} learning frames of each of them came back"
                self._warn_once(slot, each.say(self._setup.port_names), frames)
            if each.unsent:
                self._warn_once(slot, each.say_unsent(self._setup.port_names))

    def _warn_once(self, slot: Slot, said: str, more: str = "") -> None:
        if (slot.test, said) not in self._said:
            self._said.add((slot.test, said))
            place = f"{slot.test}, before trial {Trial.id_of(slot.number)}"
            self._bus.publish(Note(level="warning", text=f"{place}: {said}{more}"))

    async def _prove(self, slot: Slot, request: TrialRequest) -> _Proof:
        """Sends a few learning frames on every way until some come back of each."""
        if self._passage is not None and self._passage.holds_for(request):
            return _Proof.PASSES
        place = f"{slot.test}, before trial {Trial.id_of(slot.number)}"
        silent = await self._silent_ways(slot, request)
        if not silent:
            return _Proof.PASSES
        if await self._is_only_too_long(slot, request):
            return _Proof.TOO_LONG
        patient = request
        for wait_s in UNTIL_FRAMES_COME_BACK_S:
            if (failure := await self._setup.dut.failure()) is not None:
                raise dead_dut_error(failure, place)
            if request.purpose not in OF_THE_TESTER:
                with contextlib.suppress(NicbenchError):  # what cannot be mended yet shows in that nothing comes back
                    await self._setup.dut.mend()
            patient = request.replace(settle_s=max(request.settle_s, wait_s))
            if not (silent := await self._silent_ways(slot, patient)):
                await self._tell_late(slot, request, patient)
                return _Proof.CAME_BACK
            if await self._is_only_too_long(slot, patient):
                return _Proof.TOO_LONG
        if (failure := await self._setup.dut.failure()) is not None:
            raise dead_dut_error(failure, place)
        raise HostError(
            f"nothing comes back {self._words_of(silent)}: none of the learning frames, "
            f"for {sum(UNTIL_FRAMES_COME_BACK_S):.0f} s",
            place=place,
            next_step="check the cables, the links, and that the DUT forwards on every way (addresses, neighbours, "
            f"routes), or write a longer `settle` where frames take over {patient.settle_s:g} s; what was measured is "
            "kept, and `nicbench resume` goes on from there",
        )

    async def _tell_late(self, slot: Slot, request: TrialRequest, patient: TrialRequest) -> None:
        """Says why frames came back at last: they take longer than was waited at first, or the path came up now."""
        text = f"{slot.test}, before trial {Trial.id_of(slot.number)}: no learning frame came back at first"
        if await self._silent_ways(slot, request):
            self._patience.note_wait(patient.settle_s)
            needed_s = self._patience.needed_s
            text += f": they take longer than {request.settle_s:g} s, and are waited for {needed_s:g} s from now on"
        self._bus.publish(Note(level="warning", text=text))

    async def find_broken_path(self, slot: Slot, request: TrialRequest, reading: Reading) -> str | None:
        """What says that the path broke in the midst of a trial: frames were lost, and none comes back behind it.

        A cable that died with its links up, or a DUT that forgot its routes, loses frames as an overloaded DUT does.
        """
        if not reading.counts.lost or request.purpose in OF_THE_TESTER or request.interruption is not None:
            return None
        if request.frame_bytes in self._too_long:
            request = self._with_smallest_frames(request)
        for wait_s in self._patience.waits_behind(request):
            silent = await self._silent_ways(slot, request.replace(settle_s=wait_s))
            if not silent:
                return None
        return f"nothing came back any more {self._words_of(silent)}, also after the trial"

    def _words_of(self, ways: frozenset[Way]) -> str:
        names = self._setup.port_names
        return ", ".join(f"from port {names[one]} to {names[other]}" for one, other in sorted(ways))

    def _with_smallest_frames(self, request: TrialRequest) -> TrialRequest:
        return request.replace(frame_bytes=self._setup.smallest_frame_bytes, mix=None)

    async def _silent_ways(self, slot: Slot, request: TrialRequest) -> frozenset[Way]:
        """Sends a few learning frames, and gives the ways of the trial on which none came back."""
        setup = self._setup
        counted = {(way.transmit, way.receive) for way in setup.counted_ways(request)}
        silent = await setup.tester.learn(slot.number, request, setup.addressing) & counted
        self._passage = None
        if not silent and request.purpose not in OF_THE_TESTER:
            now = time.monotonic()
            self._passage = _Passage(request.size, request.bidirectional, now, now)
        return silent

    async def _is_only_too_long(self, slot: Slot, request: TrialRequest) -> bool:
        """Whether the smallest frames come back where those of the trial do not: the DUT does not take their size."""
        smallest = self._setup.smallest_frame_bytes
        if request.frame_bytes == smallest:
            return False
        proof = self._with_smallest_frames(request)
        again = request.replace(settle_s=2.0 * request.settle_s)
        if await self._silent_ways(slot, proof) or not await self._silent_ways(slot, again):
            return False  # a path that comes back just now, or slowly, is asked once more for the trial's size
        if request.frame_bytes not in self._too_long:
            self._too_long.add(request.frame_bytes)
            text = (
                f"{slot.test}: no learning frame of {words_of(request.size)} comes back; those of {smallest} bytes do"
            )
            self._bus.publish(Note(level="warning", text=text))
        return True


def add_unlearnt(result: Result, trials: Iterable[Trial], port_names: tuple[str, ...]) -> Result:
    """The result with the flows that did not pass, or were not taught, before its trials: what they lose is in its
    figures.
    """
    said: dict[str, None] = {}
    for each in (each for trial in trials for each in trial.reading.learning):
        if each.silent:
            said[f"{each.say(port_names)}, as learning frames showed"] = None
        if each.unsent:
            said[each.say_unsent(port_names)] = None
    return result.replace(disturbances=(*result.disturbances, *said)) if said else result


def _silent_ways(learnt: Iterable[LearntFlows]) -> frozenset[Way]:
    """The ways on which nothing came back."""
    learnt = tuple(learnt)
    passed = {(each.transmit_port, each.receive_port) for each in learnt if each.silent + each.unsent < each.flows}
    return frozenset((each.transmit_port, each.receive_port) for each in learnt) - passed


def dead_dut_error(failure: str, place: str, engine: EngineError | None = None) -> HostError:
    """The run ends where its DUT does: nothing that follows would be measured on it.

    Where the ``engine`` died as well, both are named: a ring in memory takes one with the other, and which was first
    cannot be known.
    """
    message = f"the DUT {failure}"
    if engine is not None and engine.kind == "died":
        message += f"; and {engine.message}: one of them has taken the other with it"
    return HostError(
        message,
        place=place,
        next_step="what was measured is kept; fix the DUT, and `nicbench resume` goes on from there",
    )
