"""Shows where a run is and how much is left: a bar on a terminal, lines elsewhere. Subscribes to the event bus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from nicbench.bench_file import BenchFile
from nicbench.cli.output import messages
from nicbench.core.events import (
    CeilingFound,
    DriverChosen,
    Event,
    IntervalsChecked,
    Note,
    ResultReady,
    RoundBegun,
    RoundFinished,
    RunFinished,
    StageStarted,
    TesterLatencyFound,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
)
from nicbench.core.frame_size import size_words
from nicbench.core.result import Result
from nicbench.core.round import Round
from nicbench.core.trial import CALIBRATION, Trial, TrialRequest
from nicbench.core.turn import ALONE, Turn, run_words
from nicbench.core.units import format_bits_per_s, format_duration_s, format_rate
from nicbench.stages.tester import plan_calibration
from nicbench.stats.rounds import moved_bits_per_s, what_of, words_of

_LONGEST_FAILURE: Final = 110
"""The most characters of a failure on a line; the report has all of it."""
AT_MOST: Final = "at most"
BOUNDS: Final[Mapping[str, str]] = MappingProxyType({"frames": AT_MOST, "rounds": "about"})
"""How to qualify a method's estimate: how long tools take to start, prepare and end is not known beforehand."""


def list_planned(bench: BenchFile) -> list[tuple[str, float]]:
    """Lists calibration and tests of every turn in order, by their keys in the run, with estimates in seconds."""
    return [
        (turn.key(name), estimate_s)
        for turn in bench.turns
        for each in (bench.of_turn(turn),)
        for name, estimate_s in (
            (CALIBRATION, plan_calibration(each).estimate_s),
            *((test.name, test.build().estimate_s()) for test in each.tests),
        )
    ]


def ends(bench: BenchFile) -> list[int]:
    """Lists after how many planned items the run may end; with a fixed number of runs, only after all of them."""
    configurations = len(bench.configurations)
    turns = [
        turn
        for turn in bench.turns
        if turn.number % configurations == 0 and bench.runs.may_end(turn.run - bench.runs.warm_up, configurations)
    ]
    each = len(list_planned(bench)) // len(bench.turns)
    return [each * turn.number for turn in turns]


class TimeLeft:
    """Estimates the time left, an upper bound where ``bound`` says so: searches that end early give back time.

    Where the number of runs grows there are two: the time to the next of the ``ends`` at which the run may end, and to
    the last.
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

    def text(self) -> str:
        """Describes the time left, rounded as an estimate should be."""
        left_s, to_the_cap_s = self._ends_s[0] - self._done_s, self._total_s - self._done_s
        if to_the_cap_s <= 0.0:
            return "almost done"
        at_most = f"{self._bound} {_whole_seconds(left_s)} left"
        return at_most if len(self._ends_s) == 1 else f"{at_most} ({_whole_seconds(to_the_cap_s)} with all runs)"

    @property
    def _done_s(self) -> float:
        # Repeats are in no estimate, so a test never counts for more than its estimate.
        return self._ended_s + min(self._spent_s, self._planned_s.get(self._current or "", 0.0))


def _whole_seconds(duration_s: float) -> str:
    return format_duration_s(float(max(1, round(duration_s))))


def _estimated_part(event: StageStarted | TestStarted | RunFinished) -> str | None:
    """Returns the test or stage with an estimate that begins; calibration is the only such stage."""
    if isinstance(event, TestStarted):
        return event.test
    return event.stage if isinstance(event, StageStarted) and event.stage == CALIBRATION else None


def _duration_s(request: TrialRequest) -> float:
    return request.duration_s + request.drain_s + 2 * request.settle_s  # RFC 2544 section 23


class Display(Protocol):
    """Shows one event at a time."""

    def show(self, event: Event) -> None:
        """Shows ``event``; never raises for reasons of its own."""


@contextmanager
def make_progress(
    planned: Sequence[tuple[str, float]], *, enabled: bool, ends: Sequence[int] = (), bound: str = AT_MOST
) -> Iterator[Display]:
    """Makes the display that suits stderr. ``planned``: calibration and tests in order, with estimates in seconds.

    ``ends``: after how many of them the run may end, where the number of runs grows. ``bound``: how to qualify
    estimates.
    """
    console = messages()
    if not enabled:
        yield _Notes(console)
    elif console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[left]}"),
            console=console,
            auto_refresh=False,
            transient=True,
        ) as bar:
            yield _Bar(bar, TimeLeft(planned, ends, bound))
    else:
        yield _Lines(console, bound)


class _Notes:
    """Shows warnings and errors only."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, event: Event) -> None:
        if isinstance(event, Note) and event.level != "info":
            self._console.print(f"{event.level}: {event.text}", markup=False)


class _Lines(_Notes):
    """Prints one line for each stage, test and finished trial, for logs."""

    def __init__(self, console: Console, bound: str) -> None:
        super().__init__(console)
        self._bound = bound

    def show(self, event: Event) -> None:
        text = _line(event, self._bound)
        if text is not None:
            self._console.print(text, markup=False)
        else:
            super().show(event)


class _Bar(_Notes):
    """Shows a bar over the whole run, with the current trial beside it."""

    def __init__(self, bar: Progress, time_left: TimeLeft) -> None:
        super().__init__(bar.console)
        self._bar = bar
        self._time_left = time_left
        self._task = bar.add_task("", total=1.0, left="")
        self._trials = 0
        self._turn = ""

    def show(self, event: Event) -> None:
        super().show(event)
        self._time_left.note(event)
        if isinstance(event, TestStarted):
            self._trials = 0
        if isinstance(event, TurnStarted):
            self._turn = f"{event.configuration}, {run_words(event.run, warm_up=event.warm_up)}  "
        text = self._text(event)
        if text is not None:
            self._bar.update(
                self._task,
                description=f"{self._turn}{text}",
                completed=self._time_left.share_done,
                left=self._time_left.text(),
            )
            self._bar.refresh()

    def _text(self, event: Event) -> str | None:
        if isinstance(event, StageStarted):
            return event.text
        if isinstance(event, DriverChosen):
            return f"the tester's driver is {event.driver}"
        if isinstance(event, TestStarted):
            return event.test
        if isinstance(event, RoundBegun):
            self._trials += 1
            return f"{event.test}  {words_of(event.parameters)}  round {self._trials}"
        if isinstance(event, TrialStarted):
            self._trials += 1
            return f"{event.test}  {_point(event.parameters)}trial {self._trials}  {_load(event.load_frames_per_s)}"
        return None


def _line(event: Event, bound: str) -> str | None:
    if isinstance(event, TurnStarted):
        named = f"configuration {event.configuration}, {run_words(event.run, warm_up=event.warm_up)}"
        return f"{named} (turn {event.number} of {'at most ' if event.at_most else ''}{event.of})"
    if isinstance(event, IntervalsChecked):
        return f"precision of the mean: {event.text}"
    if isinstance(event, StageStarted):
        return event.text
    if isinstance(event, DriverChosen):
        return f"driver of the tester's interfaces: {event.driver}, because {event.reason}"
    if isinstance(event, CeilingFound | TesterLatencyFound):
        return f"  {event.text}"
    if isinstance(event, TestStarted):
        return f"test {event.test} ({event.method}): {event.points} points, {bound} {event.estimate_s:.0f} s"
    if isinstance(event, TrialFinished):
        return _trial_line(event.trial)
    if isinstance(event, RoundFinished):
        return _round_line(event.round)
    if isinstance(event, ResultReady) and not _is_of_rounds(event.result):
        return f"{event.test}  {_point(event.result.parameters)}done: {event.result.verdict.value}"
    return None


def _trial_line(trial: Trial) -> str:
    counts = trial.reading.counts
    verdict = "valid" if trial.verdict.valid else "invalid: " + ", ".join(trial.verdict.reasons)
    verdict = "adjusted" if trial.verdict.adjusted else verdict
    place = f"{trial.test}  {_point(trial.parameters)}{trial.request.purpose}"
    load = _load(trial.request.load_frames_per_s)
    refused = f", refused {counts.unsent_backpressure}" if counts.unsent_backpressure else ""
    altered = f", altered {counts.corrupted}" if counts.corrupted else ""
    return f"  {trial.id}  {place}  {load}  lost {counts.lost} of {counts.sent}{refused}{altered}  {verdict}"


def _round_line(one: Round) -> str:
    """Describes a round: its place, what it moved, and the verdict; of many failures the first, shortened."""
    findings = [found.text for found in one.verdict.findings]
    verdict = "invalid: " + _shorten(findings[0]) if findings else "valid"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    jobs = f"{len(one.request.jobs)} job{'s' if len(one.request.jobs) > 1 else ''}"
    moved = moved_bits_per_s(one)
    parts = (one.id, one.test, what_of(one), jobs, *([format_bits_per_s(moved)] if moved else []), verdict + more)
    return "  " + "  ".join(parts)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_FAILURE else f"{text[:_LONGEST_FAILURE].rstrip()}..."


def _is_of_rounds(result: Result) -> bool:
    """Returns whether a result is of rounds, whose own lines already say how they went."""
    return result.measured_by == "round"


def _point(parameters: dict[str, Any]) -> str:
    return f"{size_words(parameters)}  " if parameters.get("frame_bytes") is not None else ""


def _load(load_frames_per_s: float | None) -> str:
    return "as fast as possible" if load_frames_per_s is None else format_rate(load_frames_per_s)
