"""The charts of configurations side by side. A few have a group of bars for each frame size, with whiskers for what is
known. Many have a small chart for each frame size, in which each has a row with its interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

from markupsafe import escape

from nicbench.core.result import Bounded, number_of
from nicbench.core.table import Goal
from nicbench.core.trial import Trial
from nicbench.core.units import SCALES, suitable_form
from nicbench.report.cells import factor_of, number_in, text_of, with_unit
from nicbench.report.comparison import Cost
from nicbench.report.document.blocks import Panel
from nicbench.report.document.finishing import drawing
from nicbench.report.document.making import inlines, strong
from nicbench.report.drawing.charts import cut_intervals, cut_marks, cut_marks_lying, note_of
from nicbench.report.drawing.kit import (
    DASHES,
    Format,
    Spec,
    channel,
    decades,
    finish_chart,
    from_to,
    legend,
    legend_of_names,
    marks,
    title_of,
    told_apart,
)
from nicbench.report.drawing.svg import INK, MUTED, SERIES, svg
from nicbench.report.rates import RatesRow, RatesTable
from nicbench.report.section import Section


def rates_chart(table: RatesTable, goal: Goal, form: Format) -> Spec | None:
    """Returns a bar chart of the rates, in which a rate that may be higher has only a downward whisker.

    Returns None where no configuration has a rate, and where there are more configurations than colours: those have a
    chart for each frame size (``rate_multiples``).
    """
    points = [] if table.is_long else [point for row in table.rows for point in _points(table, row, goal)]
    if not points:
        return None
    points, cut = cut_intervals(points, "value")
    sizes = [row.size for row in table.rows]
    title = f"{goal.name} [{table.unit(goal)}]"
    return _bars_with_whiskers(points, sizes, table.names, SERIES, title, form, cut)


def costs_chart(costs: Sequence[Cost], form: Format, *, names: Sequence[str], title: str) -> Spec | None:
    """Returns the chart of what configurations add to the first; None where nothing is known, or there are more
    configurations than colours.
    """
    if not costs or len(names) >= len(SERIES):
        return None
    unit, factor = unit_of(costs)
    points = [
        {
            "size": cost.size,
            "name": cost.configuration,
            "value": cost.added_ns * factor,
            "lower": cost.lower_ns * factor,
            "upper": cost.upper_ns * factor,
        }
        for cost in costs
    ]
    sizes = list(dict.fromkeys(cost.size for cost in costs))
    # The first configuration has the first colour in the charts of the rates.
    return _bars_with_whiskers(points, sizes, names, SERIES[1:], f"{title} [{unit}]", form)


def unit_of(costs: Sequence[Cost]) -> tuple[str, float]:
    """Returns the unit in which the greatest of the costs has few digits, and the factor that converts ns to it."""
    greatest = max((abs(cost.added_ns) for cost in costs), default=0.0)
    return ("µs", 1e-3) if greatest >= 10_000.0 else ("ns", 1.0)


def _bars_with_whiskers(
    points: Sequence[dict[str, Any]],
    sizes: Sequence[str],
    names: Sequence[str],
    colours: Sequence[str],
    title: str,
    form: Format,
    cut: Sequence[dict[str, Any]] = (),
) -> Spec:
    """Returns a chart with a group of bars for each frame size, and a bar for each configuration."""
    axis = {"labelAngle": 0, "grid": False}
    place = {
        "x": channel(
            "size:N", title="frame size [bytes, with FCS]", axis=axis, sort=sizes, scale={"paddingInner": 0.25}
        ),
        "xOffset": channel("name:N", sort=names, scale={"domain": names}),
    }
    colour = told_apart("name", names, colours, legend=legend_of_names(names, form))
    return finish_chart(
        form,
        marks(points, "bar", **place, y=channel("value:Q", title=title), color=colour),
        marks(points, "rule", {"color": INK, "strokeWidth": 1.4}, **place, y="lower:Q", y2="upper"),
        *cut_marks(cut, sizes[-1], place, form.font),
    )


def has_cut_intervals(table: RatesTable, goal: Goal) -> bool:
    """Returns whether a chart of a goal cuts an interval."""
    of_sizes = [_points(table, row, goal) for row in table.rows]
    charts = of_sizes if table.is_long else [[point for points in of_sizes for point in points]]
    return any(cut_intervals(points, "value")[1] for points in charts)


def _points(table: RatesTable, row: RatesRow, goal: Goal) -> list[dict[str, Any]]:
    """Returns a point for each known rate at a frame size, with its interval in the unit of the axis."""
    factor = table.factor(goal)
    found = []
    for cell in row.cells[goal.value]:
        if (rate := cell.rate_frames_per_s) is not None:
            lower, upper = (cell.span.lower, cell.span.upper) if cell.span else (rate, math.inf)
            point = {
                "size": row.size,
                "name": cell.configuration,
                "note": note_of(cell.results, goal),
                "value": rate * factor,
                "lower": lower * factor,
                "upper": (upper if math.isfinite(upper) else rate) * factor,
            }
            found.append(point if math.isfinite(upper) or table.is_long else {**point, "range": ""})
    return found


_WIDTH: Final = 292
"""The width of a drawing in pixels: as narrow as a phone; on a wide page several stand side by side."""
_NAME: Final = 120
"""The width for names in pixels; a longer name is cut."""
_MOST_NAMED: Final = 20
"""The most rows that have names; where there are more, each has its number in the table above, for names would be too
small to read.
"""


def are_numbered(table: RatesTable) -> bool:
    """Returns whether rows have numbers in place of names."""
    return len(table.names) > _MOST_NAMED


def rate_multiples(table: RatesTable, goal: Goal, numbered: Iterator[int]) -> tuple[Panel, ...]:
    """Returns a panel for each frame size with a known rate; none where the bars of one chart do as well."""
    return tuple(
        Panel(
            drawing(svg(_chart(table, points, goal), next(numbered), str(escape(f"{goal.name} at {row.size_words}")))),
            head=inlines(strong(row.size_words)),
        )
        for row in (table.rows if table.is_long else ())
        if (points := _points(table, row, goal))
    )


def _chart(table: RatesTable, points: Sequence[dict[str, Any]], goal: Goal) -> Spec:
    as_numbers = are_numbered(table)
    shown = {name: str(number) if as_numbers else name for number, name in enumerate(table.names, 1)}
    names = list(shown.values())
    drawn, cut = cut_intervals([{**point, "name": shown[point["name"]]} for point in points], "value")
    form = Format(_WIDTH - (26 if as_numbers else _NAME), (13 if as_numbers else 17) * len(names), font=11, columns=3)
    axis = {"labelLimit": _NAME - 8, "ticks": False, "domain": False, "labelPadding": 6, "labelOverlap": False}
    y = channel("name:N", sort=names, title=None, axis=axis, scale={"domain": names})
    told = {"title": f"{goal.name} [{table.unit(goal)}]", "scale": {"zero": False, "nice": True}}
    ticks = {"tickCount": 4, "labelOverlap": True}
    bar = {"strokeWidth": 4, "opacity": 0.35, "color": SERIES[0]}
    dot = {"size": 30, "filled": True, "opacity": 1, "color": SERIES[0]}
    return finish_chart(
        form,
        marks(drawn, "rule", bar, y=y, x=channel("lower:Q", **told), x2="upper"),
        marks(drawn, "point", dot, y=y, x=channel("value:Q", **told, axis=ticks)),
        *cut_marks_lying(cut, y, form.font),
    )


_PASSED, _FAILED, _INVALID = "trial that met {}", "trial that met no goal", "invalid trial"
_SHAPES = ("circle", "diamond", "square")
"""Of trials that met a goal, by the goal, the strictest first."""
_LOSSLESS, _LOSSY = "trial without loss", "trial with loss"
_MOST_DECADES = 5
_HEADROOM = 1.06
_FAR_APART = 4.0


def search_chart(section: Section, form: Format, trials: Sequence[Trial]) -> Spec | None:
    """Returns a chart with a mark for each trial and a vertical line for each rate; None where there are fewer than
    two trials, or where no rate was searched for and all trials have one load.

    A mark says by its shape and its colour which goal its trial met. The axis of the losses is logarithmic above the
    least of them, and has 0 at its foot: a single frame may decide a search.
    """
    goals = section.table.rates.goals if section.table.rates else ()
    values = section.rows[0].result.values
    sent = [(trial, load) for trial in trials if (load := trial.sent_frames_per_s) is not None]
    scale = SCALES[suitable_form("mpps", max((load for _, load in sent), default=0.0))]
    points: list[dict[str, Any]] = [
        {
            "load": load * scale.factor,
            "lost": 100.0 * trial.reading.counts.loss_ratio,
            "what": _kind(trial, goals),
            "note": _note(trial),
        }
        for trial, load in sent
    ]
    if len(points) < 2 or (not goals and len({point["load"] for point in points}) < 2):
        return None
    found = [(goal.name, values.get(goal.value)) for goal in goals]
    rates: list[dict[str, Any]] = [
        {"load": rate * scale.factor, "what": name} for name, value in found if (rate := number_of(value)) is not None
    ]
    zones: list[dict[str, Any]] = [
        {"load": (value.lower or 0.0) * scale.factor, "upper": value.upper * scale.factor, "what": name}
        for name, value in found
        if isinstance(value, Bounded) and value.upper is not None
    ]
    looks = {kind: look for kind, look in _looks(goals).items() if any(point["what"] == kind for point in points)}
    lines = list(dict.fromkeys(each["what"] for each in (*rates, *zones)))
    for number, name in enumerate(lines):
        looks[name] = "stroke", SERIES[1 + number % (len(SERIES) - 1)], [1, 0] if number == 0 else [5, 3]
    names = list(looks)
    shapes, colours, dashes = zip(*looks.values(), strict=True)
    known = legend(names, form, symbolStrokeWidth=2)
    colour, shape, dash = (told_apart("what", names, each, legend=known) for each in (colours, shapes, dashes))
    x = channel("load:Q", title=f"load [{scale.unit}]", **_loads([point["load"] for point in (*points, *rates)]))
    y = channel("lost:Q", title="frames lost [%]", **_losses([point["lost"] for point in points]))
    dot = {"size": 62, "filled": True, "opacity": 0.85}
    return finish_chart(
        form,
        marks(zones, "rect", {"opacity": 0.16, "clip": True}, x=x, x2="upper", color=colour),
        marks(rates, "rule", {"strokeWidth": 1.8}, x=x, color=colour, strokeDash=dash),
        marks(points, "point", dot, x=x, y=y, color=colour, shape=shape),
    )


def _kind(trial: Trial, goals: Sequence[Goal]) -> str:
    """Says which goal a trial met, the strictest of them; without goals a trial without loss met the only one."""
    if not trial.verdict.valid:
        return _INVALID
    loss_ratio = trial.reading.counts.loss_ratio
    met = next((goal.name for goal in goals if loss_ratio <= (goal.loss_ratio or 0.0)), None)
    if not goals:
        return _LOSSLESS if loss_ratio <= 0.0 else _LOSSY
    return _FAILED if met is None else _PASSED.format(met)


def _looks(goals: Sequence[Goal]) -> dict[str, tuple[str, str, list[int]]]:
    """Returns shape, colour and dash of each kind of trial."""
    met = [_PASSED.format(goal.name) for goal in goals] or [_LOSSLESS]
    found = {kind: (_SHAPES[min(n, len(_SHAPES) - 1)], SERIES[0], [1, 0]) for n, kind in enumerate(met)}
    found[_FAILED if goals else _LOSSY] = "triangle-down", SERIES[-1], [1, 0]
    return {**found, _INVALID: ("cross", MUTED, [1, 0])}


def _losses(lost_percent: Sequence[float]) -> Spec:
    """Returns the axis of the losses: 0, and above it a logarithmic one from the decade of the least loss on."""
    losses = [loss for loss in lost_percent if loss > 0.0]
    if not losses:
        return {"scale": from_to(0, 1)}
    lowest, highest = math.floor(math.log10(min(losses))), math.ceil(math.log10(max(losses)))
    steps = decades(lowest, max(highest, lowest + 1))
    ticks = [0.0, *steps[:: math.ceil(len(steps) / _MOST_DECADES)]]
    top = min(100.0, _HEADROOM * max(10.0**lowest * 2.0, *losses)) if max(losses) < 100.0 else 100.0 * _HEADROOM
    scale = from_to(0, top, type="symlog", constant=10.0**lowest)
    return {"scale": scale, "axis": {"values": ticks, "labelExpr": "format(datum.value, '~r')"}}


def _note(trial: Trial) -> str:
    """Names the trial, and why it is invalid or was adjusted."""
    reasons = ", ".join(trial.verdict.texts)
    return f"trial {trial.id}{f': {reasons}' if reasons else ''}"


def _loads(loads: Sequence[float]) -> Spec:
    """Returns the axis of the loads: from 0, or logarithmic where a search came from far above, so that its end is more
    than a single dot.
    """
    least, most = min(loads), max(loads)
    if least <= 0 or most < _FAR_APART * least:
        return {"scale": from_to(0, _HEADROOM * most), "axis": {"labelFlush": False}}
    low, high = least / _HEADROOM**3, most * _HEADROOM
    tens = decades(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    ticks = [tick for ten in tens for step in (1, 2, 5) if low <= (tick := step * ten) <= high]
    return {
        "scale": from_to(low, high, type="log"),
        "axis": {"values": ticks, "labelExpr": "format(datum.value, '~r')"},
    }


# The axis shows so many median widths of the later intervals: the first ones would squeeze all others into a line.
_WIDTHS = 4.0


def narrowing_chart(section: Section, form: Format) -> Spec | None:
    """Returns the chart of a narrowing estimate; None where the table has none, or fewer than two
    estimates are known.
    """
    asked = section.table.narrowing
    if asked is None:
        return None
    points: list[dict[str, Any]] = []
    for row in section.rows:
        numbers = [number_in(row.result, name) for name in (asked.x.value, asked.y.value, asked.lower, asked.upper)]
        if row.result.trials or any(number is None for number in numbers):
            continue  # the result of the search repeats the last estimate
        x, y, lower, upper = (float(number or 0.0) for number in numbers)
        factor = factor_of(asked.y.form)
        line = with_unit(asked.lines, text_of(asked.lines, row.result))
        points.append({"x": x, "y": y * factor, "lower": lower * factor, "upper": upper * factor, "line": line})
    if len(points) < 2:
        return None
    names = list(dict.fromkeys(point["line"] for point in points))
    scale = from_to(*_range(points), zero=False)
    place = {
        "x": channel("x:Q", title=title_of(asked.x)),
        "color": told_apart("line", names, SERIES, legend=legend(names, form, labelLimit=0)),
    }
    steps = {"clip": True, "interpolate": "step-after"}
    lower_end = channel("lower:Q", title=title_of(asked.y), scale=scale)
    dash = told_apart("line", names, DASHES, legend=None)
    return finish_chart(
        form,
        marks(points, "area", {"opacity": 0.25, **steps}, **place, y=lower_end, y2="upper"),
        marks(points, "line", {"strokeWidth": 1.6, **steps}, **place, y=channel("y:Q", scale=scale), strokeDash=dash),
    )


def _range(points: list[dict[str, Any]]) -> tuple[float, float]:
    """Returns the range of the axis, which shows the later estimates whole and cuts off the first."""
    lows, highs = [], []
    for name in dict.fromkeys(point["line"] for point in points):
        own = [point for point in points if point["line"] == name]
        later = own[len(own) // 2 :]
        width = _WIDTHS * statistics.median(point["upper"] - point["lower"] for point in later)
        lows.append(max(0.0, min(point["lower"] for point in later) - width / 2.0))
        highs.append(max(point["upper"] for point in later) + width / 2.0)
    low, high = min(lows), max(highs)
    return (low, high) if high > low else (low - 1.0, high + 1.0)
