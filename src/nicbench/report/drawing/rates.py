"""The charts of configurations side by side. A few have a group of bars for each frame size, with whiskers for what is
known. Many have a small chart for each frame size, in which each has a row with its interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

import altair as alt
from markupsafe import escape

from nicbench.core.result import Bounded, number_of
from nicbench.core.table import Column, Goal
from nicbench.core.trial import Trial
from nicbench.core.units import SCALES, suitable_form
from nicbench.report.cells import factor_of, number_in, text_of, with_unit
from nicbench.report.document.blocks import Panel
from nicbench.report.document.finishing import drawing
from nicbench.report.document.making import inlines, strong
from nicbench.report.drawing.charts import (
    DASHES,
    Format,
    cut_intervals,
    cut_marks,
    cut_marks_lying,
    finish_chart,
    legend_of,
    note_of,
)
from nicbench.report.drawing.svg import INK, MUTED, SERIES, inline, svg
from nicbench.report.rates import RatesRow, RatesTable
from nicbench.report.section import Section


def rates_chart(table: RatesTable, goal: Goal, form: Format) -> dict[str, Any] | None:
    """Returns a bar chart of the rates, in which a rate that may be higher has only a downward whisker.

    Returns None where no configuration has a rate, and where there are more configurations than colours: those have a
    chart for each frame size (``rate_multiples``).
    """
    if table.is_long:
        return None
    points = _points(table, goal)
    if not points:
        return None
    points, cut = cut_intervals(points, "rate")
    names = list(table.names)
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    legend = legend_of(names, form)
    x = alt.X("size:N", title="frame size [bytes, with FCS]", axis=alt.Axis(labelAngle=0, grid=False))
    x = x.sort([row.size for row in table.rows]).scale(paddingInner=0.25)
    place = alt.XOffset("configuration:N", sort=names, scale=alt.Scale(domain=names))
    y = alt.Y("rate:Q", title=f"{goal.name} [{table.unit(goal)}]")
    colour = alt.Color("configuration:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    base = alt.Chart(inline(points)).encode(x=x, xOffset=place)
    bars = base.mark_bar().encode(y=y, color=colour)
    whiskers = base.mark_rule(color=INK, strokeWidth=1.4).encode(y="lower:Q", y2="upper:Q")
    beyond = cut_marks(cut, table.rows[-1].size, {"x": x, "xOffset": place}, form.font) if cut else []
    return finish_chart(alt.layer(bars, whiskers, *beyond), form)


def has_cut_intervals(table: RatesTable, goal: Goal) -> bool:
    """Returns whether a chart of a goal cuts an interval."""
    points = _points(table, goal)
    if not table.is_long:
        return bool(cut_intervals(points, "rate")[1])
    of_sizes = ([point for point in points if point["size"] == row.size] for row in table.rows)
    return any(cut_intervals(of_size, "rate")[1] for of_size in of_sizes)


def _points(table: RatesTable, goal: Goal) -> list[dict[str, Any]]:
    """Returns a point for each known rate, with its interval in the unit of the axis."""
    factor = table.factor(goal)
    return [
        {
            "size": row.size,
            "configuration": cell.configuration,
            "note": note_of(cell.results, goal),
            "rate": cell.rate_frames_per_s * factor,
            "lower": (cell.span.lower if cell.span else cell.rate_frames_per_s) * factor,
            "upper": _finite(cell.span.upper if cell.span else math.inf, cell.rate_frames_per_s) * factor,
            **({} if cell.span and math.isfinite(cell.span.upper) else {"range": ""}),
        }
        for row in table.rows
        for cell in row.cells[goal.value]
        if cell.rate_frames_per_s is not None
    ]


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
    if not table.is_long:
        return ()
    return tuple(
        Panel(
            drawing(svg(chart, next(numbered), str(escape(f"{goal.name} at {row.size_words}")))),
            head=inlines(strong(row.size_words)),
        )
        for row in table.rows
        if (chart := _chart(table, row, goal)) is not None
    )


def _chart(table: RatesTable, row: RatesRow, goal: Goal) -> dict[str, Any] | None:
    as_numbers = are_numbered(table)
    names = [str(number) if as_numbers else name for number, name in enumerate(table.names, 1)]
    factor = table.factor(goal)
    points = [
        {
            "name": name,
            "note": note_of(cell.results, goal),
            "rate": cell.rate_frames_per_s * factor,
            "lower": (cell.span.lower if cell.span else cell.rate_frames_per_s) * factor,
            "upper": _finite(cell.span.upper if cell.span else math.inf, cell.rate_frames_per_s) * factor,
        }
        for name, cell in zip(names, row.cells[goal.value], strict=True)
        if cell.rate_frames_per_s is not None
    ]
    if not points:
        return None
    points, cut = cut_intervals(points, "rate")
    each = 13 if as_numbers else 17
    form = Format(width=_WIDTH - (26 if as_numbers else _NAME), height=each * len(names), font=11, columns=3)
    axis = alt.Axis(labelLimit=_NAME - 8, ticks=False, domain=False, labelPadding=6, labelOverlap=False)
    y = alt.Y("name:N", sort=names, title=None, axis=axis, scale=alt.Scale(domain=names))
    scale = alt.Scale(zero=False, nice=True)
    x = alt.X(
        "rate:Q", title=f"{goal.name} [{table.unit(goal)}]", scale=scale, axis=alt.Axis(tickCount=4, labelOverlap=True)
    )
    ends = alt.X("lower:Q", scale=scale, title=f"{goal.name} [{table.unit(goal)}]")
    base = alt.Chart(inline(points)).encode(y=y)
    interval = base.mark_rule(strokeWidth=4, opacity=0.35, color=SERIES[0]).encode(x=ends, x2="upper:Q")
    rate = base.mark_point(size=30, filled=True, opacity=1, color=SERIES[0]).encode(x=x)
    beyond = cut_marks_lying(alt.Chart(inline(cut)).encode(y=y), form.font) if cut else []
    return finish_chart(alt.layer(interval, rate, *beyond), form)


def _finite(value: float, otherwise: float) -> float:
    return otherwise if math.isinf(value) else value


_PASSED, _FAILED, _INVALID = "trial that met {}", "trial that met no goal", "invalid trial"
_SHAPES = ("circle", "diamond", "square")
"""Of trials that met a goal, by the goal, the strictest first."""
_LOSSLESS, _LOSSY = "trial without loss", "trial with loss"
_MOST_DECADES = 5
_HEADROOM = 1.06
_FAR_APART = 4.0


def search_chart(section: Section, form: Format, trials: Sequence[Trial]) -> dict[str, Any] | None:
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
    marks = _marks(goals)
    kinds = [kind for kind in marks if any(point["what"] == kind for point in points)]
    names = [*kinds, *dict.fromkeys(each["what"] for each in (*rates, *zones))]
    lines = len(names) - len(kinds)
    colours = [marks[kind][1] for kind in kinds]
    colours += [SERIES[1 + number % (len(SERIES) - 1)] for number in range(lines)]
    shapes = [marks[kind][0] for kind in kinds] + ["stroke"] * lines
    dashes = [[1, 0]] * len(kinds) + [[1, 0] if number == 0 else [5, 3] for number in range(lines)]
    legend = alt.Legend(orient="top", title=None, columns=form.columns, symbolStrokeWidth=2)
    colour = alt.Color("what:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    shape = alt.Shape("what:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    dash = alt.StrokeDash("what:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    x = alt.X("load:Q", title=f"load [{scale.unit}]", **_loads([point["load"] for point in (*points, *rates)]))
    y = alt.Y("lost:Q", title="frames lost [%]", **_losses([point["lost"] for point in points]))
    bars = alt.Chart(inline(zones)).mark_rect(opacity=0.16, clip=True)
    layers: list[Any] = [
        bars.encode(x=x, x2="upper:Q", color=colour),
        alt.Chart(inline(rates)).mark_rule(strokeWidth=1.8).encode(x=x, color=colour, strokeDash=dash),
    ]
    dots = alt.Chart(inline(points)).mark_point(size=62, filled=True, opacity=0.85)
    layers.append(dots.encode(x=x, y=y, color=colour, shape=shape))
    return finish_chart(alt.layer(*layers), form)


def _kind(trial: Trial, goals: Sequence[Goal]) -> str:
    """Says which goal a trial met, the strictest of them; without goals a trial without loss met the only one."""
    if not trial.verdict.valid:
        return _INVALID
    loss_ratio = trial.reading.counts.loss_ratio
    met = next((goal.name for goal in goals if loss_ratio <= (goal.loss_ratio or 0.0)), None)
    if not goals:
        return _LOSSLESS if loss_ratio <= 0.0 else _LOSSY
    return _FAILED if met is None else _PASSED.format(met)


def _marks(goals: Sequence[Goal]) -> dict[str, tuple[str, str]]:
    """Returns shape and colour of each kind of trial."""
    met = [_PASSED.format(goal.name) for goal in goals] or [_LOSSLESS]
    passed = {kind: (_SHAPES[min(n, len(_SHAPES) - 1)], SERIES[0]) for n, kind in enumerate(met)}
    return {**passed, _FAILED if goals else _LOSSY: ("triangle-down", SERIES[-1]), _INVALID: ("cross", MUTED)}


def _losses(lost_percent: Sequence[float]) -> dict[str, Any]:
    """Returns the axis of the losses: 0, and above it a logarithmic one from the decade of the least loss on."""
    losses = [loss for loss in lost_percent if loss > 0.0]
    if not losses:
        return {"scale": alt.Scale(domain=[0, 1], nice=False)}
    lowest, highest = math.floor(math.log10(min(losses))), math.ceil(math.log10(max(losses)))
    decades = range(lowest, max(highest, lowest + 1) + 1)
    step = math.ceil(len(decades) / _MOST_DECADES)
    ticks = [0.0, *(10.0**decade for decade in list(decades)[::step])]
    top = min(100.0, _HEADROOM * max(10.0**lowest * 2.0, *losses)) if max(losses) < 100.0 else 100.0 * _HEADROOM
    return {
        "scale": alt.Scale(type="symlog", constant=10.0**lowest, domain=[0, top], nice=False),
        "axis": alt.Axis(values=ticks, labelExpr="format(datum.value, '~r')"),
    }


def _note(trial: Trial) -> str:
    """Names the trial, and why it is invalid or was adjusted."""
    reasons = ", ".join(finding.text for finding in trial.verdict.findings)
    return f"trial {trial.id}{f': {reasons}' if reasons else ''}"


def _loads(loads: Sequence[float]) -> dict[str, Any]:
    """Returns the axis of the loads: from 0, or logarithmic where a search came from far above, so that its end is more
    than a single dot.
    """
    least, most = min(loads), max(loads)
    if least <= 0 or most < _FAR_APART * least:
        return {"scale": alt.Scale(domain=[0, _HEADROOM * most], nice=False), "axis": alt.Axis(labelFlush=False)}
    ends = [least / _HEADROOM**3, most * _HEADROOM]
    decades = range(math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1])) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    ticks = [tick for tick in ticks if ends[0] <= tick <= ends[1]]
    return {
        "scale": alt.Scale(type="log", domain=ends, nice=False),
        "axis": alt.Axis(values=ticks, labelExpr="format(datum.value, '~r')"),
    }


# The axis shows so many median widths of the later intervals: the first ones would squeeze all others into a line.
_WIDTHS = 4.0


def narrowing_chart(section: Section, form: Format) -> dict[str, Any] | None:
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
    low, high = _range(points)
    names = list(dict.fromkeys(point["line"] for point in points))
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    legend = alt.Legend(orient="top", title=None, columns=form.columns, labelLimit=0)
    scale_y = alt.Scale(domain=[low, high], nice=False, zero=False)
    base = alt.Chart(inline(points)).encode(
        x=alt.X("x:Q", title=_titled(asked.x)),
        color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    )
    band = base.mark_area(opacity=0.25, clip=True, interpolate="step-after").encode(
        y=alt.Y("lower:Q", title=_titled(asked.y), scale=scale_y), y2="upper:Q"
    )
    line = base.mark_line(strokeWidth=1.6, clip=True, interpolate="step-after").encode(
        y=alt.Y("y:Q", scale=scale_y),
        strokeDash=alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), legend=None),
    )
    return finish_chart(alt.layer(band, line), form)


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


def _titled(column: Column) -> str:
    return f"{column.head} [{column.unit}]" if column.unit else column.head
