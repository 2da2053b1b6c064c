"""Where a run is and what is left: a bar on a terminal, plain lines elsewhere. A subscriber of the bus.

It draws only when an event arrives, and none arrives while frames are sent: ``TrialStarted`` is published before the
transmission, ``TrialFinished`` after the drain. Nothing here runs by a timer, because a redraw would disturb the trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from nicbench.cli.output import messages
from nicbench.cli.time_left import AT_MOST, TimeLeft
from nicbench.events import (
    CeilingFound,
    Event,
    IntervalsChecked,
    Note,
    ResultReady,
    RoundBegun,
    RoundFinished,
    StageStarted,
    TesterLatencyFound,
    TestStarted,
    TrialFinished,
    TrialStarted,
    TurnStarted,
)
from nicbench.model.frame_size import size_words
from nicbench.model.result import Result
from nicbench.model.round import Round
from nicbench.model.trial import Trial
from nicbench.model.turn import run_words
from nicbench.stats.rounds import moved_bits_per_s, what_of, words_of
from nicbench.units import format_bits_per_s, format_mpps

_LONGEST_FAILURE: Final = 110
"""Characters of a failure on a line; the report has all of it."""


class Display(Protocol):
    """Shows one event at a time."""

    def show(self, event: Event) -> None:
        """Shows ``event``; never raises for reasons of its own."""


@contextmanager
def make_progress(
    planned: Sequence[tuple[str, float]], *, enabled: bool, ends: Sequence[int] = (), bound: str = AT_MOST
) -> Iterator[Display]:
    """The display that suits stderr. ``planned``: calibration and tests in order, with their estimates in seconds.

    ``ends``: after how many of them the run may end, where the number of runs grows. ``bound``: what the estimates are.
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
    """Warnings and errors only."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, event: Event) -> None:
        if isinstance(event, Note) and event.level != "info":
            self._console.print(f"{event.level}: {event.text}", markup=False)


class _Lines(_Notes):
    """One line for each stage, test and finished trial: for logs."""

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
    """A bar over the whole run, with the trial at hand beside it."""

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
        return f"runs until the mean is known: {event.text}"
    if isinstance(event, StageStarted):
        return event.text
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
    place = f"{trial.test}  {_point(trial.parameters)}{trial.request.purpose}"
    load = _load(trial.request.load_frames_per_s)
    refused = f", refused {counts.unsent_backpressure}" if counts.unsent_backpressure else ""
    altered = f", altered {counts.corrupted}" if counts.corrupted else ""
    return f"  {trial.id}  {place}  {load}  lost {counts.lost} of {counts.sent}{refused}{altered}  {verdict}"


def _round_line(one: Round) -> str:
    """Where it stands, what it moved, and the verdict; of many failures the first, shortened."""
    findings = [found.text for found in one.verdict.findings]
    verdict = "invalid: " + _shortened(findings[0]) if findings else "valid"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    jobs = f"{len(one.request.jobs)} job{'s' if len(one.request.jobs) > 1 else ''}"
    moved = moved_bits_per_s(one)
    parts = (one.id, one.test, what_of(one), jobs, *([format_bits_per_s(moved)] if moved else []), verdict + more)
    return "  " + "  ".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_FAILURE else f"{text[:_LONGEST_FAILURE].rstrip()}..."


def _is_of_rounds(result: Result) -> bool:
    """A round gives many results; its own line says how it went."""
    return bool(result.trials) and result.trials[0].startswith("r")


def _point(parameters: dict[str, Any]) -> str:
    return f"{size_words(parameters)}  " if parameters.get("frame_bytes") is not None else ""


def _load(load_frames_per_s: float | None) -> str:
    return "as fast as it goes" if load_frames_per_s is None else f"{format_mpps(load_frames_per_s)} Mpps"
