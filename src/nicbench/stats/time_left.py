"""How much of a run is left, estimated from what its parts were planned to take and from the events so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.events import (
    Event,
    ResultReady,
    RoundBegun,
    RoundFinished,
    RunFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
)
from nicbench.core.round import Round
from nicbench.core.trial import CALIBRATION, Trial
from nicbench.core.turn import ALONE, Turn
from nicbench.core.units import format_duration_s

_MINUTES_FROM_S = 120.0
_ROUNDING = 1.0 + 1e-9
"""Sums of the durations of trials differ by less from what was planned."""


Seconds = Annotated[float, Field(ge=0.0, le=1e12)]


class Estimate(Frozen):
    """What is known of the time left at one event; it moves with the seconds since, while a trial or round runs.

    ``until_end_s`` is the time of the whole run up to where it may end first, ``total_s`` that up to its last end.
    ``ended_s`` were planned for parts that ended, ``planned_s`` for the present one (None: there is none), of which
    ``spent_s`` are measured. ``sample_s`` is the duration of the trial or round under way, 0 where none is.
    """

    until_end_s: Seconds
    total_s: Seconds
    ended_s: Seconds
    planned_s: Seconds | None
    spent_s: Seconds
    sample_s: Seconds

    def share_done(self, since_s: float = 0.0) -> float:
        """Returns the share of the run that is done, from 0 to 1, so many seconds after the event."""
        return min(1.0, self._done_s(since_s) / self.total_s) if self.total_s > 0.0 else 0.0

    def text(self, since_s: float = 0.0) -> str | None:
        """Describes the time left so many seconds after the event, rounded; None where it is not known.

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
