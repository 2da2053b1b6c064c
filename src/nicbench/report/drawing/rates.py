"""The charts of configurations side by side. A few have a group of bars for each frame size, with whiskers for what is
known. Many have a small chart for each frame size, in which each has a row with its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import altair as alt
from markupsafe import escape

from nicbench.core.table import Goal
from nicbench.report.document.blocks import Panel
from nicbench.report.document.inlines import inlines, strong
from nicbench.report.document.paper import drawing
from nicbench.report.drawing.charts import Format, finish_chart, legend_of, note_of
from nicbench.report.drawing.cutting import cut_intervals, cut_marks, cut_marks_lying
from nicbench.report.drawing.svg import INK, SERIES, inline, svg
from nicbench.report.rates import RatesRow, RatesTable


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
