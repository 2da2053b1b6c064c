"""Shows where a run is and how much is left: a live view on a terminal, lines elsewhere. Subscribes to the event bus.

The view changes with the events of the run, and a trial is not disturbed by it: only within long ones the time left is
looked at again, every few seconds, and drawn where it reads otherwise. Warnings and notes are printed above the view
and stay; each thing is said once, and repetitions are counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live

from nicbench.cli.live_view import load_words, place_words, reason_words, view
from nicbench.cli.output import messages, messages_share
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
    Waiting,
)
from nicbench.core.result import Result
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.core.turn import run_words
from nicbench.core.units import format_bits_per_s
from nicbench.stats.activity import Activity, Ended, TimeLeft
from nicbench.stats.rounds import moved_bits_per_s, what_of

ABOUT: Final = "about"
"""How an estimate is qualified: trials that are repeated, and what happens around them, take longer than foretold."""
_LONG_S: Final = 10.0
"""Within a trial or round that takes so long or longer the time left moves."""
_LOOK_S: Final = 5.0
_LONGEST_FAILURE: Final = 110
"""The most characters of a failure on a line; the report has all of it."""


class Display(Protocol):
    """Shows one event at a time."""

    def show(self, event: Event) -> None:
        """Shows ``event``; never raises for reasons of its own."""


@contextmanager
def make_progress(
    planned: Sequence[tuple[str, float]], *, enabled: bool, ends: Sequence[int] = ()
) -> Iterator[Display]:
    """Makes the display that suits stderr. ``planned``: calibration and tests in order, with estimates in seconds.

    ``ends``: after how many of them the run may end, where the number of runs grows.
    """
    console = messages()
    if not enabled:
        yield _Notes(console)
    elif console.is_terminal and not console.is_dumb_terminal:
        with (
            Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live,
            messages_share(console),
        ):
            shown = LiveView(live, TimeLeft(planned, ends))
            try:
                yield shown
            finally:
                shown.close()
    else:
        yield _Lines(console)


class _Notes:
    """Says warnings and errors, each once; how often they were repeated is said after the test."""

    levels: frozenset[str] = frozenset({"warning", "error"})

    def __init__(self, console: Console) -> None:
        self._console = console
        self._counted: dict[tuple[str, str], int] = {}
        self._activity = Activity()

    def show(self, event: Event) -> None:
        before, self._activity = self._activity, self._activity.after(event)
        if isinstance(event, Note):
            self._show_note(event)
        elif isinstance(event, TurnStarted | StageStarted | TestStarted | RunFinished):
            self._end_part(before)

    def _show_note(self, note: Note) -> None:
        key = (note.level, note.text)
        if note.level in self.levels and key not in self._counted:
            self._counted[key] = 1
            self._say(note.text if note.level == "info" else f"{note.level}: {note.text}")

    def _end_part(self, before: Activity) -> None:
        """Says after a test or stage what was repeated in it."""
        for key, told in self._counted.items():
            more = before.notes.get(key, 0) - told
            if more > 0:
                self._counted[key] = told + more
                self._say(f"  said {'once' if more == 1 else f'{more} times'} more: {key[1]}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)


class _Told(_Notes):
    """Also says notes that are no warnings, and how many samples of a test were invalid, and why."""

    levels = frozenset({"info", "warning", "error"})

    def _end_part(self, before: Activity) -> None:
        for one in before.invalid:
            if one.count > 1:
                self._say(f"  {one.count} {one.first.kind}s invalid: {reason_words(one.reasons)}, {_first(one.first)}")
        super()._end_part(before)


class _Lines(_Told):
    """Prints one line for each stage, test and finished trial, for logs. Of invalid ones alike only the first."""

    def show(self, event: Event) -> None:
        super().show(event)  # first what there is to say of the part that ended
        if isinstance(event, TrialFinished | RoundFinished) and self._is_repeated(event):
            return
        text = _line(event)
        if text is not None:
            self._say(text)

    def _is_repeated(self, event: TrialFinished | RoundFinished) -> bool:
        if event.sample.verdict.valid:
            return False
        return all(one.first.id != event.sample.id for one in self._activity.invalid)


class LiveView(_Told):
    """Shows what is measured in a few lines, which change with every event; ``clock`` counts seconds."""

    def __init__(self, live: Live, time_left: TimeLeft, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(live.console)
        self._live = live
        self._time_left = time_left
        self._clock = clock
        self._began = clock()
        self._drawn: tuple[str | None, int] = None, 0
        self._drawing = threading.RLock()
        self._looking: threading.Event | None = None
        """Set to end the thread that looks, where one does."""

    def show(self, event: Event) -> None:
        with self._drawing:
            self._time_left.note(event)
            if isinstance(event, TrialStarted | RoundBegun):
                self._began = self._clock()
            super().show(event)
            self._draw()
        is_long = self._time_left.estimate.sample_s >= _LONG_S
        if is_long and self._looking is None:
            self._looking = threading.Event()
            threading.Thread(target=self._keep_looking, args=(self._looking,), daemon=True, name="time left").start()
        elif not is_long:
            self.close()

    def close(self) -> None:
        """Ends looking at the clock."""
        if self._looking is not None:
            self._looking.set()
            self._looking = None

    def look(self) -> None:
        """Draws the time left anew where it reads otherwise than before."""
        with self._drawing:
            if self._now() != self._drawn:
                self._draw()

    def _keep_looking(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK_S):
            self.look()

    def _now(self) -> tuple[str | None, int]:
        """The time left in words, and the share done in percent."""
        estimate, since_s = self._time_left.estimate, self._clock() - self._began
        return estimate.text(since_s), round(100.0 * estimate.share_done(since_s))

    def _draw(self) -> None:
        self._drawn = left, percent = self._now()
        size = self._console.size
        shown = view(self._activity, left, percent / 100.0, width=size.width, height=size.height)
        self._live.update(shown, refresh=True)


def _first(one: Ended) -> str:
    at = [place_words(one.parameters), load_words(one.load_frames_per_s) if one.kind == "trial" else ""]
    return f"first at {', '.join(filter(None, at))} ({one.id})"


def _line(event: Event) -> str | None:
    if isinstance(event, TurnStarted):
        named = f"configuration {event.configuration}, {run_words(event.run, warm_up=event.warm_up)}"
        return f"{named} (turn {event.number} of {'at most ' if event.at_most else ''}{event.of})"
    if isinstance(event, IntervalsChecked):
        return f"precision of the mean: {event.text}"
    if isinstance(event, Waiting):
        return f"waiting: {event.text}"
    if isinstance(event, StageStarted):
        return event.text
    if isinstance(event, DriverChosen):
        return f"driver of the tester's interfaces: {event.driver}, because {event.reason}"
    if isinstance(event, CeilingFound | TesterLatencyFound):
        return f"  {event.text}"
    if isinstance(event, TestStarted):
        points = f"{event.points} point{'' if event.points == 1 else 's'}"
        return f"test {event.test} ({event.method}): {points}, {ABOUT} {event.estimate_s:.0f} s"
    if isinstance(event, TrialFinished):
        return _trial_line(event.trial)
    if isinstance(event, RoundFinished):
        return _round_line(event.round)
    if isinstance(event, ResultReady) and not _is_of_rounds(event.result):
        return f"{event.test}  {_point(event.result.parameters)}done: {event.result.verdict.value}"
    return None


def _trial_line(trial: Trial) -> str:
    counts = trial.reading.counts
    reasons = reason_words(trial.verdict.reasons)
    verdict = (
        f"adjusted: {reasons}" if trial.verdict.adjusted else "valid" if trial.verdict.valid else f"invalid: {reasons}"
    )
    place = f"{trial.test}  {_point(trial.parameters)}{trial.request.purpose}"
    load = load_words(trial.request.load_frames_per_s)
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


def _point(parameters: dict[str, object]) -> str:
    return f"{place_words(parameters)}  " if parameters.get("frame_bytes") is not None else ""
