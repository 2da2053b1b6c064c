"""How much of a run is left, by the estimates of its calibration and tests and the time of the trials made so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Final

from nicbench.bench_file import BenchFile
from nicbench.events import Event, RoundFinished, RunFinished, StageStarted, TestStarted, TrialFinished, TurnStarted
from nicbench.model.trial import CALIBRATION, TrialRequest
from nicbench.model.turn import ALONE, Turn
from nicbench.stages.calibrate import planned_calibration
from nicbench.units import format_duration_s

AT_MOST: Final = "at most"
BOUNDS: Final[Mapping[str, str]] = MappingProxyType({"frames": AT_MOST, "rounds": "about"})
"""What the estimate of a method is: how long tools take to start, prepare and end is not known beforehand."""


def planned(bench: BenchFile) -> list[tuple[str, float]]:
    """Calibration and tests of every turn in order, by their keys in the run, with their estimates in seconds."""
    return [
        (turn.key(name), estimate_s)
        for turn in bench.turns
        for each in (bench.of_turn(turn),)
        for name, estimate_s in (
            (CALIBRATION, planned_calibration(each).estimate_s),
            *((test.name, test.build().estimate_s()) for test in each.tests),
        )
    ]


def ends(bench: BenchFile) -> list[int]:
    """After how many of what is planned the run may end; of a fixed number of runs after all of it."""
    configurations = len(bench.configurations)
    turns = [
        turn
        for turn in bench.turns
        if turn.number % configurations == 0 and bench.runs.may_end(turn.run - bench.runs.warm_up, configurations)
    ]
    each = len(planned(bench)) // len(bench.turns)
    return [each * turn.number for turn in turns]


class TimeLeft:
    """An upper bound where ``bound`` says so: a search that ends early, or a test that has ended, gives back
    what it did not use.

    Where the number of runs grows, there are two: to the next of the ``ends`` (after so many of what is planned) at
    which the run may end, and to the last.
    """

    def __init__(self, planned: Sequence[tuple[str, float]], ends: Sequence[int] = (), bound: str = AT_MOST) -> None:
        self._bound = bound
        self._planned_s = dict(planned)
        until_s = list(accumulate(self._planned_s.values(), initial=0.0))
        self._total_s = until_s[-1]
        self._ends_s = [until_s[end] for end in ends] or [self._total_s]
        self._ended_s = 0.0
        self._current: str | None = None
        self._spent_s = 0.0
        self._turn = ALONE

    def note(self, event: Event) -> None:
        """Takes account of an event."""
        if isinstance(event, TurnStarted):
            self._begin(Turn(event.configuration, event.run, event.number, event.of))
        elif isinstance(event, StageStarted | TestStarted | RunFinished):
            self._ended_s += self._planned_s.get(self._current or "", 0.0)
            self._spent_s = 0.0
            begun = _begun(event)
            self._current = None if begun is None else self._turn.key(begun)
        elif isinstance(event, TrialFinished):
            self._spent_s += _took_s(event.trial.request)
        elif isinstance(event, RoundFinished):
            self._spent_s += event.round.request.duration_s

    def _begin(self, turn: Turn) -> None:
        """A turn: those before it are over, also where a resumed run left them out."""
        self._turn, self._current, self._spent_s, self._ended_s = turn, None, 0.0, 0.0
        for name, estimate_s in self._planned_s.items():
            if name.startswith(turn.key("")):
                break
            self._ended_s += estimate_s
        while len(self._ends_s) > 1 and self._ends_s[0] <= self._ended_s:
            self._ends_s.pop(0)

    @property
    def share_done(self) -> float:
        """From 0 to 1."""
        return min(1.0, self._done_s / self._total_s) if self._total_s > 0.0 else 0.0

    def text(self) -> str:
        """In words, rounded as an estimate should be."""
        left_s, to_the_cap_s = self._ends_s[0] - self._done_s, self._total_s - self._done_s
        if to_the_cap_s <= 0.0:
            return "nearly done"
        at_most = f"{self._bound} {_whole_seconds(left_s)} left"
        return at_most if len(self._ends_s) == 1 else f"{at_most} ({_whole_seconds(to_the_cap_s)} with all runs)"

    @property
    def _done_s(self) -> float:
        # Repeats are in no estimate: they never make a test look more than finished.
        return self._ended_s + min(self._spent_s, self._planned_s.get(self._current or "", 0.0))


def _whole_seconds(duration_s: float) -> str:
    return format_duration_s(float(max(1, round(duration_s))))


def _begun(event: StageStarted | TestStarted | RunFinished) -> str | None:
    """Calibration is the one stage with an estimate of its own."""
    if isinstance(event, TestStarted):
        return event.test
    return event.stage if isinstance(event, StageStarted) and event.stage == CALIBRATION else None


def _took_s(request: TrialRequest) -> float:
    return request.duration_s + request.drain_s + 2 * request.settle_s  # RFC 2544 section 23
