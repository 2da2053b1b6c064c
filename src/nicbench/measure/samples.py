"""What trials of frames and rounds of workloads have in common: how a sample is made, repeated, journaled and used.

A method is given a ``LiveContext``, which asks ``Repeats`` for a valid sample, which asks a ``Maker`` for one sample at
a time. What differs between the two kinds is in ``trials.py`` and ``frame_context.py``, and in ``rounds.py``.

A run never waits without bound for a quiet machine: repeats are bounded in number, and by a share of a test's time
budget for all of them (``RepeatPolicy``). Time is counted in seconds of samples, not read from a clock, so that a
resumed run decides as the first did.
"""

from __future__ import annotations

import reprlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

from nicbench.core.errors import HostError, NicbenchError
from nicbench.core.events import Bus, ResultReady, RoundBegun, RoundFinished, TrialFinished, TrialStarted
from nicbench.core.frozen import frozen
from nicbench.core.judging import RepeatPolicy, Sample
from nicbench.core.result import Result
from nicbench.core.turn import ALONE, Turn

SampleT = TypeVar("SampleT", bound=Sample)
RequestT = TypeVar("RequestT")


@frozen
class SampleLog(Generic[SampleT]):
    """Where a maker finds the samples of a run that is resumed, and where it publishes new ones.

    ``began`` is when the run did (monotonic); ``turn`` is part of every key where configurations or runs take turns.
    """

    journaled: Mapping[str, SampleT]
    bus: Bus
    turn: Turn = ALONE
    began: float = field(default_factory=time.monotonic)


@frozen
class Slot:
    """The place in the run of a sample that is being made."""

    number: int
    key: str
    test: str
    parameters: dict[str, Any]
    repeat: int
    began: float
    """When it was asked for (monotonic)."""


class Maker(ABC, Generic[SampleT, RequestT]):
    """Makes one sample at a time, or finds it in the journal of a run that is being resumed.

    A sample's ``key`` is the place it has in the run; the same samples lead to the same keys, so a resumed run asks for
    the very samples that were journaled, and then goes on.
    """

    def __init__(self, log: SampleLog[SampleT]) -> None:
        self.log = log
        # A journaled sample keeps its number, and a new one takes the next: also where an older nicbench ordered them
        # in another way.
        self._number = max((sample.number for sample in log.journaled.values()), default=0)

    def has(self, key: str) -> bool:
        """Whether the journal holds this sample."""
        return self.log.turn.key(key) in self.log.journaled

    async def make(self, key: str, test: str, parameters: dict[str, Any], request: RequestT, repeat: int) -> SampleT:
        """The sample of this key: replayed if it was journaled, else measured now, judged and published."""
        key, request = self.log.turn.key(key), self.request_in_turn(request)
        known = self.log.journaled.get(key)
        if known is not None:
            _refuse_other_request(known, request)
            return known
        self._number += 1
        slot = Slot(self._number, key, test, parameters, repeat, time.monotonic())
        self.log.bus.publish(self.started_event(slot, request))
        sample, error = await self.measure(slot, request)
        self.log.bus.publish(self.finished_event(sample))
        if error is not None:
            raise error
        return sample

    def record_of(self, slot: Slot) -> dict[str, Any]:
        """The fields that every sample has, for one that was just measured."""
        turn = self.log.turn
        return {
            "key": slot.key,
            "test": slot.test,
            "configuration": turn.configuration,
            "run": turn.run,
            "warm_up": turn.warm_up,
            "parameters": slot.parameters,
            "repeat": slot.repeat,
            "at_s": round(time.monotonic() - self.log.began, 3),
            "took_s": round(time.monotonic() - slot.began, 3),
        }

    def request_in_turn(self, request: RequestT) -> RequestT:
        """The request that is made in this turn."""
        return request

    @abstractmethod
    def started_event(self, slot: Slot, request: RequestT) -> TrialStarted | RoundBegun:
        """The event that is published before it is measured."""

    @abstractmethod
    async def measure(self, slot: Slot, request: RequestT) -> tuple[SampleT, NicbenchError | None]:
        """Measures and judges one sample.

        With an error the sample is kept, and then the run ends: nothing could be measured after it.
        """

    @abstractmethod
    def finished_event(self, sample: SampleT) -> TrialFinished | RoundFinished:
        """The event that journals it."""


def _refuse_other_request(known: Sample, request: Any) -> None:
    """NicbenchError where a journaled sample was made for another request than this run's."""
    if known.request == request:
        return
    differing = "; ".join(
        f"{name} {reprlib.repr(value)} there, {reprlib.repr(getattr(request, name))} here"
        for name, value in known.request
        if value != getattr(request, name)
    )
    raise NicbenchError(
        f"the journal's {known.kind} {known.id} asked for another thing than this run does: {differing}",
        place=known.key,
        next_step="the bench file or nicbench itself changed since: start a new run",
    )


class RepeatRule(ABC, Generic[SampleT]):
    """What repeating means for a kind of samples: their cost, and which of several invalid ones is used."""

    policy: ClassVar[RepeatPolicy]

    @abstractmethod
    def cost_s(self, sample: SampleT) -> float:
        """Seconds that a repeat takes, by what was asked for."""

    @abstractmethod
    def disturbance(self, sample: SampleT) -> tuple[float, ...]:
        """How disturbed a sample was; of several the one with the least is used. It never looks at what was lost."""

    def may_help(self, sample: SampleT) -> bool:
        """Whether measuring it again might go otherwise."""
        return True

    def is_owed(self, sample: SampleT) -> bool:
        """Whether a first repeat is due even where the time for repeats does not suffice for it."""
        return False

    def useless(self, sample: SampleT) -> str | None:
        """Why an invalid sample is useless even as a disturbed one; None where it may be used."""
        return None

    def compare(self, before: SampleT, last: SampleT, policy: RepeatPolicy) -> None:
        """Looks at two invalid samples in a row, and may raise what they say together."""


class Repeats(Generic[SampleT]):
    """The repeats of one test. ``time_budget_s`` is the time its samples were planned to take."""

    def __init__(self, time_budget_s: float, rule: RepeatRule[SampleT], policy: RepeatPolicy | None = None) -> None:
        self._rule = rule
        self._policy = policy if policy is not None else rule.policy
        self._left_s = max(time_budget_s * self._policy.budget_share, self._policy.least_s)
        self._is_in_vain = False
        """Whether a repeat that was due failed in the same way: further ones must fit into the time for repeats."""

    @property
    def left_s(self) -> float:
        """Time that may still go to repeats."""
        return self._left_s

    async def measure(
        self,
        once: Callable[[int], Awaitable[SampleT]],
        has: Callable[[int], bool] = lambda _: False,
        *,
        repeats: bool = True,
    ) -> tuple[SampleT, bool]:
        """A valid sample and ``False``, or the least disturbed of several and ``True``.

        Without ``repeats``, only a useless sample is repeated.

        ``once`` makes one sample at the point in question; its argument is the number of the repeat, 0 for the first.
        ``has`` tells whether the journal has that sample. A useless sample is repeated whatever that costs; HostError
        where all repeats are useless. A run that is resumed after that begins them anew.
        """
        samples: list[SampleT] = []
        usable = []
        most, is_new = 1 + self._policy.maximum_repeats, False
        while True:
            is_new = is_new or not has(len(samples))
            last = await once(len(samples))
            samples.append(last)
            if last.verdict.valid:
                return last, False
            why = self._rule.useless(last)
            if why is None:
                usable.append(last)
                if not repeats:
                    return last, True
            if len(samples) > 1 and why is None and self._rule.useless(samples[-2]) is None:
                self._rule.compare(samples[-2], last, self._policy)
            is_owed = self._rule.is_owed(last)
            self._is_in_vain = self._is_in_vain or (len(samples) > 1 and is_owed)
            cost_s = self._rule.cost_s(last)
            has_time = cost_s <= self._left_s or (is_owed and not self._is_in_vain)
            is_last = len(samples) >= most or not self._rule.may_help(last)
            if usable and (is_last or not has_time):
                return min(usable, key=self._rule.disturbance), True
            if is_last and is_new:
                raise _nothing_told(last, why, len(samples))
            if is_last:
                most += 1 + self._policy.maximum_repeats
            self._left_s -= cost_s


def _nothing_told(last: Sample, why: str | None, times: int) -> HostError:
    """The run ends: whatever a method made of these samples would be charged to the DUT."""
    return HostError(
        f"{why}, in each of {times} {last.kind}s" if times > 1 else str(why),
        place=f"{last.test}, {last.kind} {last.id} and those before it",
        next_step="after a change of a link check cable, transceiver and kernel log; where frames came late, "
        "give `drain` more time; what was measured is kept, and `nicbench resume` goes on from there",
    )


@frozen
class TestSetting:
    """The settings of the context of a test: ``estimate_s`` is its planned time, ``earlier`` the results before it."""

    __test__ = False  # not a test class for pytest

    name: str
    seed: int
    estimate_s: float
    earlier: Mapping[str, tuple[Result, ...]] = field(default_factory=dict)


class LiveContext(ABC, Generic[SampleT, RequestT]):
    """The context of one test of a run, which measures; see ``methods.base.AnyContext``."""

    def __init__(self, test: TestSetting, maker: Maker[SampleT, RequestT], rule: RepeatRule[SampleT]) -> None:
        self.seed = test.seed
        self._test = test
        self._samples = maker
        self._repeats = Repeats(test.estimate_s, rule)
        self._points_measured = 0

    async def sample(self, point: dict[str, Any], request: RequestT, *, repeats: bool = True) -> tuple[SampleT, bool]:
        """One judged sample, repeated where invalid; True where the least disturbed of several had to be used."""
        sequence, self._points_measured = self._points_measured, self._points_measured + 1
        name = self._test.name

        async def once(repeat: int) -> SampleT:
            return await self._samples.make(f"{name}/{sequence}/{repeat}", name, point, request, repeat)

        return await self._repeats.measure(
            once, lambda repeat: self._samples.has(f"{name}/{sequence}/{repeat}"), repeats=repeats
        )

    @property
    def kept(self) -> tuple[SampleT, ...]:
        """The samples of this test that the journal of a resumed run has."""
        log = self._samples.log
        first = log.turn.key(f"{self._test.name}/")
        return tuple(sample for key, sample in log.journaled.items() if key.startswith(first))

    def results_of(self, test: str) -> tuple[Result, ...]:
        """The results of an earlier test of this run."""
        return self._test.earlier.get(test, ())

    def publish(self, result: Result) -> None:
        """Journals and shows a result."""
        self._samples.log.bus.publish(ResultReady(test=self._test.name, result=self.complete(result)))

    def complete(self, result: Result) -> Result:
        """With what no method knows of: whose turn it was."""
        turn = self._samples.log.turn
        return result.replace(
            id=turn.key(result.id),
            test=self._test.name,
            configuration=turn.configuration,
            run=turn.run,
            warm_up=turn.warm_up,
        )
