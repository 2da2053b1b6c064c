"""A run under way: its events reduced to the state that a live view shows, and how much of it is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import accumulate
from typing import Annotated, Any, Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.events import (
    BoundsNarrowed,
    Event,
    GoalBounds,
    Note,
    ResultReady,
    RoundBegun,
    RoundFinished,
    RunFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
    Waiting,
)
from nicbench.core.frozen import frozen
from nicbench.core.judging import Sample, SampleKind
from nicbench.core.reading import Measure
from nicbench.core.round import Round
from nicbench.core.trial import CALIBRATION, Trial
from nicbench.core.turn import ALONE, Turn
from nicbench.core.units import format_duration_s
from nicbench.stats.rounds import moved_bits_per_s

# What a run is doing now: its events, reduced to the state that a live view shows.
#
# Pure: ``Activity.after(event)`` returns the next state, and nothing here prints, waits or reads a clock. The terminal
# (``cli/progress.py``) and any other view of a run, of its bus or of a journal that is read again, show the same.
#
# ``stats/activity.py`` estimates what is left, of what ``stages/plan.py`` lists, and its ``Estimate``
# moves with the seconds since an event; ``cli/progress.py`` makes lines of both, and its screens are in
# ``tests/cli/golden`` (NICBENCH_WRITE_GOLDEN=1 writes them anew).


MOST_LAST: Final = 8
"""How many of the samples that ended are kept."""
_MOST_OF_HARDWARE: Final = 3
_CELSIUS: Final = "C"
_NUMBERS: Final = re.compile(r"\d[\d.]*")


@frozen
class Current:
    """The trial or round under way; ``number`` is its place in the test, from 1, repeats included."""

    kind: SampleKind
    number: int
    parameters: Mapping[str, Any]
    duration_s: float
    repeat: int
    purpose: str | None = None
    load_frames_per_s: float | None = None
    """Per port; None as fast as the ports take frames, and of rounds."""
    bidirectional: bool = False
    jobs: int = 0


@frozen
class Ended:
    """A trial or round that ended. ``why`` is its first finding in words, None where it is valid."""

    id: str
    kind: SampleKind
    parameters: Mapping[str, Any]
    repeat: int
    valid: bool
    adjusted: bool
    reasons: tuple[str, ...]
    why: str | None
    load_frames_per_s: float | None = None
    failed: int | None = None
    """The number of frames that the DUT failed (lost, altered or refused), of ``offered``; None of rounds."""
    offered: int | None = None
    moved_bits_per_s: float | None = None

    @classmethod
    def of(cls, sample: Sample) -> Ended:
        """Takes from a finished trial or round what a line about it says."""
        findings = sample.verdict.findings
        common: dict[str, Any] = {
            "id": sample.id,
            "kind": sample.kind,
            "parameters": sample.parameters,
            "repeat": sample.repeat,
            "valid": sample.verdict.valid,
            "adjusted": sample.verdict.adjusted,
            "reasons": tuple(reason.value for reason in sample.verdict.reasons),
            "why": findings[0].text if findings else None,
        }
        if isinstance(sample, Trial):
            counts = sample.reading.counts
            offered = counts.offered
            load = sample.request.load_frames_per_s
            return cls(**common, load_frames_per_s=load, failed=counts.failed, offered=offered)
        return cls(**common, moved_bits_per_s=moved_bits_per_s(sample) if isinstance(sample, Round) else None)


@frozen
class Invalid:
    """Samples of one test that are invalid in the same words, numbers apart: how many, and the first of them."""

    count: int
    first: Ended

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why they are invalid."""
        return self.first.reasons


@frozen
class Shared:
    """What others took during the last sample, as shares 0..1 of the core or machine ``of``; None is unknown."""

    of: str
    stolen: float | None = None
    """What the hypervisor took (steal time)."""
    other_tasks: float | None = None
    slowed: float | None = None
    """The share of looks at the core that found it slowed by a neighbour on its physical core."""

    @property
    def worst(self) -> float:
        """The greatest of the known shares."""
        return max(self.stolen or 0.0, self.other_tasks or 0.0, self.slowed or 0.0)


@frozen
class Hottest:
    """The part that is nearest to its own limit, or the hottest where none has one. Temperatures in °C."""

    where: str
    celsius: float
    limit_celsius: float | None


@frozen
class HardwareEvent:
    """A link that changed, or an error of hardware: in how many samples, and the last of them."""

    words: str
    count: int
    last: str


@frozen
class Activity:
    """The state of a run after some of its events; ``Activity()`` is that before the first."""

    stage: str = ""
    turn: TurnStarted | None = None
    test: TestStarted | None = None
    results: int = 0
    """The results of the test that are complete."""
    samples: int = 0
    """The trials or rounds of the test that began, with those that a resumed run has of it."""
    current: Current | None = None
    search: BoundsNarrowed | None = None
    """How far the search under way has come; None without a search, and before its first trial."""
    last: tuple[Ended, ...] = ()
    """The samples of the test that ended last, the latest first."""
    invalid: tuple[Invalid, ...] = ()
    """The invalid samples of the test, by their reasons."""
    shared: Shared | None = None
    hottest: Hottest | None = None
    hardware: tuple[HardwareEvent, ...] = ()
    """Links that changed and errors of the hardware over the run, the latest last."""
    waiting: str | None = None
    """Whom the run waits for; None where it does not."""
    notes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The count of each note, by its level and text, in the order in which they came first."""
    ended: RunFinished | None = None

    @property
    def bounds(self) -> tuple[GoalBounds, ...]:
        """The bounds of the search under way; empty where none is known."""
        return () if self.search is None else self.search.bounds

    def after(self, event: Event) -> Activity:
        """Returns the state after ``event``; events that change nothing shown return it unchanged."""
        match event:
            case Waiting():
                return replace(self, waiting=event.text)
            case Note():
                key = (event.level, event.text)
                return replace(self, notes={**self.notes, key: self.notes.get(key, 0) + 1})
            case TurnStarted():
                return replace(self._between(), turn=event, test=None)
            case StageStarted():
                return replace(self._between(), stage=event.text, test=None)
            case TestStarted():
                return replace(self._between(), test=event, samples=event.kept)
            case TrialStarted() | RoundBegun():
                return self._begun(event)
            case TrialFinished() | RoundFinished():
                return self._finished(event.sample)
            case BoundsNarrowed():
                return replace(self, search=event)
            case ResultReady():
                return replace(self, results=self.results + 1)
            case RunFinished():
                return replace(self._between(), test=None, ended=event)
        return self

    def _between(self) -> Activity:
        """Before a test or stage: nothing is measured, and nothing counted."""
        return replace(
            self, results=0, samples=0, current=None, search=None, last=(), invalid=(), shared=None, waiting=None
        )

    def _begun(self, event: TrialStarted | RoundBegun) -> Activity:
        number = self.samples + 1
        common: dict[str, Any] = {
            "number": number,
            "parameters": event.parameters,
            "duration_s": event.duration_s,
            "repeat": event.repeat,
        }
        if isinstance(event, TrialStarted):
            current = Current(
                kind="trial",
                **common,
                purpose=event.purpose,
                load_frames_per_s=event.load_frames_per_s,
                bidirectional=event.bidirectional,
            )
        else:
            current = Current(kind="round", **common, jobs=event.jobs)
        # The bounds of one frame size say nothing of the next.
        search = self.search if self.search is None or self.search.parameters == event.parameters else None
        return replace(self, samples=number, current=current, search=search)

    def _finished(self, sample: Sample) -> Activity:
        ended = Ended.of(sample)
        return replace(
            self,
            current=None,
            last=(ended, *self.last)[:MOST_LAST],
            invalid=self.invalid if ended.valid else _count(self.invalid, ended),
            shared=_shared_of(sample),
            hottest=_hottest_of(sample) or self.hottest,
            hardware=_add_hardware(self.hardware, sample),
        )


def _count(known: Iterable[Invalid], ended: Ended) -> tuple[Invalid, ...]:
    found = {_alike(one.first): one for one in known}
    before = found.get(_alike(ended))
    found[_alike(ended)] = Invalid(1, ended) if before is None else replace(before, count=before.count + 1)
    return tuple(found.values())


def _alike(ended: Ended) -> tuple[object, ...]:
    """What samples have in common that are counted as one: two tools that fail differently are distinguished."""
    return ended.reasons, _NUMBERS.sub("#", ended.why or "")


def _shared_of(sample: Sample) -> Shared | None:
    """The core of a trial, or the machine of a round, of which others took most; None where nothing is known."""
    if isinstance(sample, Trial):
        whole_ns = max(1, sample.reading.transmit_ns)
        shares = [
            Shared(
                of=f"core {cpu.cpu}",
                stolen=cpu.steal_ns / whole_ns,
                other_tasks=None if cpu.other_tasks_ns is None else cpu.other_tasks_ns / whole_ns,
                slowed=(cpu.slow_samples or 0) / cpu.speed_samples if cpu.speed_samples else None,
            )
            for cpu in sample.reading.health.cpus
        ]
    elif isinstance(sample, Round):
        shares = [
            Shared(of=machine.machine, stolen=machine.steal, other_tasks=machine.strangers) for machine in sample.cpu
        ]
    else:
        shares = []
    known = [one for one in shares if (one.stolen, one.other_tasks, one.slowed) != (None, None, None)]
    return max(known, key=lambda one: one.worst, default=None)


def _hottest_of(sample: Sample) -> Hottest | None:
    machine = sample.reading.machine if isinstance(sample, Trial) else None
    levels = [level for level in machine.levels if level.unit == _CELSIUS] if machine else []
    found = max(
        levels, key=lambda level: (level.value / level.limit if level.limit else 0.0, level.value), default=None
    )
    return None if found is None else Hottest(f"{found.where} on {found.host}", found.value, found.limit)


def _add_hardware(known: Iterable[HardwareEvent], sample: Sample) -> tuple[HardwareEvent, ...]:
    found = {one.words: one for one in known}
    for words in _hardware_words(sample):
        before = found.pop(words, None)
        found[words] = HardwareEvent(words, before.count + 1 if before else 1, sample.id)
    return tuple(found.values())[-_MOST_OF_HARDWARE:]


def _hardware_words(sample: Sample) -> Iterator[str]:
    """Yields the links that changed during a trial, and the errors of hardware."""
    if not isinstance(sample, Trial):
        return
    machine = sample.reading.machine
    yield from (f"link of {port.name} changed" for port in sample.reading.ports if port.link_changed)
    for event in machine.events if machine else ():
        what = "link changed" if event.measure is Measure.LINK else event.what
        yield f"{event.where} on {event.host}: {what}"


# How much of a run is left, estimated from what its parts were planned to take and from the events so far. Pure.


_MINUTES_FROM_S = 120.0
_ROUNDING = 1.0 + 1e-9
"""Sums of the durations of trials differ by less from what was planned."""


Seconds = Annotated[float, Field(ge=0.0, le=1e12)]


class Estimate(Frozen):
    """What is known of the time left at one event; it moves with the seconds since, while a trial or round runs.

    ``until_end_s`` is the time of the whole run up to where it may end first, ``total_s`` that up to its last end.
    ``ended_s`` were planned for parts that ended, ``planned_s`` for the present one (None between parts), of which
    ``spent_s`` are measured. ``sample_s`` is the duration of the trial or round under way, 0 where none is.
    """

    until_end_s: Seconds
    total_s: Seconds
    ended_s: Seconds
    planned_s: Seconds | None
    spent_s: Seconds
    sample_s: Seconds

    def share_done(self, since_s: float = 0.0) -> float:
        """Returns the share of the run that is done, from 0 to 1, a number of seconds after the event."""
        return min(1.0, self._done_s(since_s) / self.total_s) if self.total_s > 0.0 else 0.0

    def text(self, since_s: float = 0.0) -> str | None:
        """Describes the time left a number of seconds after the event, rounded; None where it is not known.

        That is so where nothing has an estimate, and where the last test takes longer than it was planned to.
        """
        done_s = self._done_s(since_s)
        left_s, to_the_cap_s = self.until_end_s - done_s, self.total_s - done_s
        takes_longer = self.planned_s is not None and self._spent_s(since_s) > self.planned_s * _ROUNDING
        if to_the_cap_s <= 0.0:
            return None if takes_longer or self.total_s <= 0.0 else "almost done"
        after = " after this test" if takes_longer else ""
        about = f"about {_rounded(left_s)} left{after}"
        return about if self.until_end_s == self.total_s else f"{about} ({_rounded(to_the_cap_s)} with all runs)"

    def _spent_s(self, since_s: float) -> float:
        # A clock that jumped, or is another machine's, moves nothing beyond the trial itself.
        return self.spent_s + min(max(since_s, 0.0), self.sample_s)

    def _done_s(self, since_s: float) -> float:
        # Repeats are in no estimate, so a test never counts for more than its estimate.
        return self.ended_s + min(self._spent_s(since_s), self.planned_s or 0.0)


class TimeLeft:
    """Estimates the time left: searches that end early give back time, and repeats are in no estimate.

    ``planned``: calibration and tests in order, with estimates in seconds. Where the number of runs grows there are two
    times: the one to the next of the ``ends`` at which the run may end, and that to the last.
    """

    def __init__(self, planned: Sequence[tuple[str, float]], ends: Sequence[int] = ()) -> None:
        self._planned_s = dict(planned)
        until_s = list(accumulate(self._planned_s.values(), initial=0.0))
        self._total_s = until_s[-1]
        self._ends_s = [until_s[end] for end in ends] or [self._total_s]
        self._ended_s = 0.0
        self._current: str | None = None
        self._spent_s = self._sample_s = 0.0
        self._points = self._points_left = 0
        self._turn = ALONE

    def note(self, event: Event) -> None:
        """Takes an event into account."""
        if isinstance(event, TrialStarted | RoundBegun):
            self._sample_s = event.duration_s
        elif isinstance(event, TurnStarted):
            self._begin(Turn(event.configuration, event.run, event.number, event.of))
        elif isinstance(event, ResultReady):
            self._learn(event)
        elif isinstance(event, StageStarted | TestStarted | RunFinished):
            self._ended_s += self._planned_s.get(self._current or "", 0.0)
            self._spent_s, self._sample_s = event.kept_s if isinstance(event, TestStarted) else 0.0, 0.0
            self._points = self._points_left = (event.results or 0) if isinstance(event, TestStarted) else 0
            part = _estimated_part(event)
            self._current = None if part is None else self._turn.key(part)
        elif isinstance(event, TrialFinished | RoundFinished):
            self._spent_s, self._sample_s = self._spent_s + duration_s(event.sample), 0.0

    def _learn(self, event: ResultReady) -> None:
        """Takes the time that the points of a test took so far for that of those that are left."""
        planned_s = self._planned_s.get(self._current or "")
        if planned_s is None or self._current != self._turn.key(event.test) or self._points_left <= 0:
            return
        self._points_left -= 1
        learnt_s = self._spent_s * self._points / (self._points - self._points_left)
        self._planned_s[self._current or ""] = learnt_s
        self._total_s += learnt_s - planned_s
        self._ends_s = [end_s + learnt_s - planned_s for end_s in self._ends_s]

    def _begin(self, turn: Turn) -> None:
        """Begins a turn: those before it count as done, also where a resumed run skipped them."""
        self._turn, self._current = turn, None
        self._spent_s = self._sample_s = self._ended_s = 0.0
        for name, estimate_s in self._planned_s.items():
            if name.startswith(turn.key("")):
                break
            self._ended_s += estimate_s
        while len(self._ends_s) > 1 and self._ends_s[0] <= self._ended_s:
            self._ends_s.pop(0)

    @property
    def estimate(self) -> Estimate:
        """The estimate after the last event."""
        planned_s = None if self._current is None else self._planned_s.get(self._current, 0.0)
        return Estimate(
            until_end_s=self._ends_s[0],
            total_s=self._total_s,
            ended_s=self._ended_s,
            planned_s=planned_s,
            spent_s=self._spent_s,
            sample_s=self._sample_s,
        )


def _rounded(duration_s: float) -> str:
    """Whole minutes from two up, for an estimate knows no better."""
    if duration_s >= _MINUTES_FROM_S:
        return format_duration_s(60.0 * round(duration_s / 60.0))
    return format_duration_s(float(max(1, round(duration_s))))


def _estimated_part(event: StageStarted | TestStarted | RunFinished) -> str | None:
    """Returns the test or stage with an estimate that begins; calibration is the only such stage."""
    if isinstance(event, TestStarted):
        return event.test
    return event.stage if isinstance(event, StageStarted) and event.stage == CALIBRATION else None


def duration_s(sample: Trial | Round) -> float:
    """Returns how long a trial or round took; in older journals, by what was asked for."""
    if sample.took_s is not None:
        return sample.took_s
    if isinstance(sample, Round):
        return sample.request.duration_s
    request = sample.request
    return request.duration_s + request.drain_s + 2 * request.settle_s  # RFC 2544 section 23
