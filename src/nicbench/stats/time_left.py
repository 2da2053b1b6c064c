"""How much of a run is left, estimated from what its parts were planned to take and from the events so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from nicbench.core.events import (
    Event,
    RoundFinished,
    RunFinished,
    StageStarted,
    TestStarted,
    TrialFinished,
    TurnStarted,
)
from nicbench.core.trial import CALIBRATION, TrialRequest
from nicbench.core.turn import ALONE, Turn
from nicbench.core.units import format_duration_s

_MINUTES_FROM_S = 120.0
_ROUNDING = 1.0 + 1e-9
"""Sums of the durations of trials differ by less from what was planned."""


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
        self._spent_s = 0.0
        self._turn = ALONE

    def note(self, event: Event) -> None:
        """Takes an event into account."""
        if isinstance(event, TurnStarted):
            self._begin(Turn(event.configuration, event.run, event.number, event.of))
        elif isinstance(event, StageStarted | TestStarted | RunFinished):
            self._ended_s += self._planned_s.get(self._current or "", 0.0)
            self._spent_s = 0.0
            part = _estimated_part(event)
            self._current = None if part is None else self._turn.key(part)
        elif isinstance(event, TrialFinished):
            self._spent_s += _duration_s(event.trial.request)
        elif isinstance(event, RoundFinished):
            self._spent_s += event.round.request.duration_s

    def _begin(self, turn: Turn) -> None:
        """Begins a turn: those before it count as done, also where a resumed run skipped them."""
        self._turn, self._current, self._spent_s, self._ended_s = turn, None, 0.0, 0.0
        for name, estimate_s in self._planned_s.items():
            if name.startswith(turn.key("")):
                break
            self._ended_s += estimate_s
        while len(self._ends_s) > 1 and self._ends_s[0] <= self._ended_s:
            self._ends_s.pop(0)

    @property
    def share_done(self) -> float:
        """The share of the run that is done, from 0 to 1."""
        return min(1.0, self._done_s / self._total_s) if self._total_s > 0.0 else 0.0

    def text(self) -> str | None:
        """Describes the time left, rounded as an estimate should be; None where it is not known.

        That is so where nothing has an estimate, and where the last test takes longer than it was planned to.
        """
        left_s, to_the_cap_s = self._ends_s[0] - self._done_s, self._total_s - self._done_s
        if to_the_cap_s <= 0.0:
            return None if self._takes_longer or self._total_s <= 0.0 else "almost done"
        after = " after this test" if self._takes_longer else ""
        about = f"about {_rounded(left_s)} left{after}"
        return about if len(self._ends_s) == 1 else f"{about} ({_rounded(to_the_cap_s)} with all runs)"

    @property
    def _takes_longer(self) -> bool:
        """Whether the current test has used up its estimate, by repeats."""
        planned_s = self._planned_s.get(self._current or "", 0.0)
        return self._current is not None and self._spent_s > planned_s * _ROUNDING

    @property
    def _done_s(self) -> float:
        # Repeats are in no estimate, so a test never counts for more than its estimate.
        return self._ended_s + min(self._spent_s, self._planned_s.get(self._current or "", 0.0))


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


def _duration_s(request: TrialRequest) -> float:
    return request.duration_s + request.drain_s + 2 * request.settle_s  # RFC 2544 section 23
