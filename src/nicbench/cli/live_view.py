"""The live view of a run on a terminal: its activity as a few lines that need no colour and fit the terminal's width.

Pure: ``view`` makes lines of what ``stats/activity.py`` says; ``progress.py`` shows them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text

from nicbench.core.events import GoalBounds
from nicbench.core.frame_size import size_words
from nicbench.core.turn import run_words
from nicbench.core.units import format_bits_per_s, format_duration_s, format_rate, format_ratio
from nicbench.stats.activity import Activity, Current, Ended, Hottest, Shared
from nicbench.stats.rounds import words_of

WIDEST: Final = 100
"""The view is no wider than this: longer lines are hard to read."""
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
    lines = [*above, *_last(activity.last[:room], narrow=narrow), *below]
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
    if current.kind == "round":
        load = f"{current.jobs} job{'' if current.jobs == 1 else 's'}"
    else:
        load = load_words(current.load_frames_per_s)
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


def _last(last: Iterable[Ended], *, narrow: bool) -> list[str]:
    return _columns([_ended_cells(one, narrow=narrow) for one in last])


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
