"""Shows where a run is and how much is left: a live view on a terminal, lines elsewhere. Subscribes to the event bus.

The view changes with the events of the run, and a trial is not disturbed by it: only within long ones the time left is
looked at again, every few seconds, and drawn where it reads otherwise. Warnings and notes are printed above the view
and stay; each is printed once, and repetitions are counted.
"""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from nicbench.cli.output import messages, messages_share
from nicbench.core.events import (
    CeilingFound,
    DriverChosen,
    Event,
    GoalBounds,
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
from nicbench.core.frame_size import size_words
from nicbench.core.result import Result
from nicbench.core.round import Round
from nicbench.core.trial import Trial
from nicbench.core.turn import run_words
from nicbench.core.units import count_of, format_bits_per_s, format_duration_s, format_rate, format_ratio
from nicbench.stats.activity import Activity, Current, Ended, Hottest, Shared, TimeLeft
from nicbench.stats.rounds import moved_bits_per_s, what_of, words_of

# The live view of a run on a terminal: its activity as a few lines that need no colour and fit the terminal's width.
# Pure: ``view`` makes lines of what ``stats/activity.py`` says; ``progress.py`` shows them.

WIDEST: Final = 100
"""The greatest width of the view: longer lines are hard to read."""
_NARROW: Final = 60
_SHOWN_LAST: Final = 5
_BAR: Final = {True: 8, False: 24}
"""The width of the bar where the terminal is narrow, and where it is not."""
_LEAST_OF_LAST: Final = 1
_LEAST_LOSS: Final = 1e-6


def view(activity: Activity, left: str | None, share_done: float, *, width: int, height: int) -> Text:
    """Returns the lines that a terminal of this size shows; ``left`` is the time left in words, None where unknown."""
    width = min(width, WIDEST)
    narrow = width < _NARROW
    above = [*_wrap(_headings(activity, narrow=narrow), width), *_bounds(activity.bounds, narrow=narrow)]
    below = [*_wrap(_machine(activity), width), _left(left, share_done, narrow=narrow, activity=activity)]
    room = max(_LEAST_OF_LAST, min(_SHOWN_LAST, height - 1 - len(above) - len(below)))
    lines = [*above, *_columns([_ended_cells(one, narrow=narrow) for one in activity.last[:room]]), *below]
    # What does not fit is cut, for lines that the terminal wraps cannot be taken back from the screen.
    shown = [Text(line, no_wrap=True) for line in lines[-max(1, height - 1) :]]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
    return Text("\n", no_wrap=True, end="").join(shown)


def _wrap(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(line, width, subsequent_indent=f"{indent}  ", drop_whitespace=True) or [""]


def place_words(parameters: Mapping[str, Any]) -> str:
    """Describes the point that is measured: a frame size, or what a round does."""
    if parameters.get("frame_bytes") is not None:
        return size_words(dict(parameters))
    return words_of(parameters)


def load_words(load_frames_per_s: float | None) -> str:
    """Describes a load of a port."""
    return "as fast as possible" if load_frames_per_s is None else format_rate(load_frames_per_s)


def _headings(activity: Activity, *, narrow: bool) -> Iterator[str]:
    turn, test, current = activity.turn, activity.test, activity.current
    if turn is not None:
        at_most = "at most " if turn.at_most else ""
        run = run_words(turn.run, warm_up=turn.warm_up)
        yield f"{turn.configuration}, {run} (turn {turn.number} of {at_most}{turn.of})"
    if activity.waiting is not None:
        yield f"waiting: {activity.waiting}"
        return
    if activity.ended is not None:
        yield "the run is done" if activity.ended.complete else "the run ends before it is done"
        return
    last = activity.last[0] if activity.last else None
    measured = current or last
    place = "" if measured is None else place_words(measured.parameters)
    if test is None:
        yield ", ".join(filter(None, (activity.stage, place)))
    else:
        yield f"{', '.join(filter(None, (test.test, place)))}{_done(activity.results, test.results, narrow=narrow)}"
    if current is not None:
        yield f"  {_current_words(current, activity)}"
    elif last is not None:
        yield f"  after {last.kind} {activity.samples}"


def _done(results: int, of: int | None, *, narrow: bool) -> str:
    """Says how many results a test has, and of how many where that is known beforehand."""
    if of is None or results > of:
        named = "done" if narrow else "result so far" if results == 1 else "results so far"
        return f" ({results} {named})" if results else ""
    return f" ({results} of {of}{'' if narrow else ' results'})" if of > 1 else ""


def _current_words(current: Current, activity: Activity) -> str:
    load = count_of(current.jobs, "job") if current.kind == "round" else load_words(current.load_frames_per_s)
    parts = [f"{current.kind} {current.number}: {load} for {format_duration_s(current.duration_s)}"]
    if current.bidirectional:
        parts.append("both ways")
    if current.repeat:
        parts.append(f"repeat {current.repeat}")
    if activity.search is not None:
        parts.append(f"search has {activity.search.trials} of at most {activity.search.maximum_trials}")
    return ", ".join(parts)


def _bounds(bounds: Iterable[GoalBounds], *, narrow: bool) -> list[str]:
    """A line for each goal of a search: the loads between which its rate lies, and how wide that still is."""
    return _columns([(f"{one.goal}:", *_sides(one, narrow=narrow)) for one in bounds])


def _sides(one: GoalBounds, *, narrow: bool) -> tuple[str, ...]:
    low, high = one.passing_frames_per_s, one.failing_frames_per_s
    if narrow:
        sides = ("" if side is None else format_rate(side) for side in (low, high))
        return (" to ".join(side or "?" for side in sides),)
    passes = "nothing passed" if low is None else f"passes {format_rate(low)}"
    fails = "nothing failed" if high is None else f"fails {format_rate(high)}"
    return passes, fails, f"{format_ratio((high - low) / high)} apart" if low is not None and high else ""


def _ended_cells(one: Ended, *, narrow: bool) -> tuple[str, ...]:
    verdict = "adjusted" if one.adjusted else "valid" if one.valid else f"invalid: {reason_words(one.reasons)}"
    if one.kind == "round":
        moved = "" if one.moved_bits_per_s is None else format_bits_per_s(one.moved_bits_per_s)
        return (moved, verdict) if narrow else (one.id, place_words(one.parameters), moved, verdict)
    lost = "" if one.failed is None or not one.offered else f"lost {_loss_words(one.failed / one.offered)}"
    if narrow:
        return load_words(one.load_frames_per_s), lost if one.valid else verdict
    if lost and one.failed:
        lost += f" ({one.failed} of {one.offered})"
    return one.id, load_words(one.load_frames_per_s), lost, verdict


def _loss_words(ratio: float) -> str:
    """A share in percent; one that is too small for that many digits is not told as none."""
    if 0.0 < ratio < _LEAST_LOSS:
        return f"< {100.0 * _LEAST_LOSS:.4f} %"
    return format_ratio(ratio)


def reason_words(reasons: Iterable[str]) -> str:
    """The reasons why a sample is invalid, as words."""
    return ", ".join(reason.replace("_", " ") for reason in reasons)


def _machine(activity: Activity) -> Iterator[str]:
    counted = ", ".join(f"{one.count} {reason_words(one.reasons)}" for one in activity.invalid)
    if counted:
        yield f"  invalid in this test: {counted}"
    if activity.shared is not None:
        yield f"  {_shared_words(activity.shared)}"
    if activity.hottest is not None:
        yield f"  {_hottest_words(activity.hottest)}"
    for one in activity.hardware:
        yield f"  {one.words} ({'' if one.count == 1 else f'{one.count} times, last '}{one.last})"


def _shared_words(shared: Shared) -> str:
    parts = (
        (shared.stolen, "stolen by the hypervisor"),
        (shared.other_tasks, "used by others"),
        (shared.slowed, "slowed by a neighbour"),
    )
    told = ", ".join(f"{100.0 * share:.1f} % {words}" for share, words in parts if share is not None)
    return f"{shared.of}: {told}"


def _hottest_words(hottest: Hottest) -> str:
    limit = "" if hottest.limit_celsius is None else f" (limit {hottest.limit_celsius:.0f} °C)"
    return f"hottest: {hottest.celsius:.0f} °C{limit}, {hottest.where}"


def _left(left: str | None, share_done: float, *, narrow: bool, activity: Activity) -> str:
    """The bar and the time left; of a run that waits only how long it takes, as nobody knows how long it waits."""
    if activity.waiting is not None:
        return "" if left is None else f"{left}, once it begins"
    length = _BAR[narrow]
    full = round(share_done * length)
    told = "time left not known" if left is None else left
    return f"[{'#' * full}{'.' * (length - full)}] {100.0 * share_done:.0f} %  {told}"


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of cells that stand below one another; columns that are empty in every row take no room."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True) if width)
        lines.append(f"  {'  '.join(cells)}".rstrip())
    return lines


ABOUT: Final = "about"
"""How an estimate is qualified: trials that are repeated, and what happens around them, take longer than foretold."""
_LONG_S: Final = 10.0
"""The shortest trial or round during which the time left is updated."""
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
    """Prints warnings and errors once each; the number of their repetitions follows after the test."""

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
    """Also prints notes other than warnings, and how many samples of a test were invalid, and why."""

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
        points = count_of(event.points, "point")
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
    findings = one.verdict.texts
    verdict = "invalid: " + _shorten(findings[0]) if findings else "valid"
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    jobs = count_of(len(one.request.jobs), "job")
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
