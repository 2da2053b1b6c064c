"""The chart of an estimate that narrows: its interval as a band, its value as a line, over time."""

from __future__ import annotations

import statistics
from typing import Any

import altair as alt

from nicbench.core.table import Column
from nicbench.report.cells import factor_of, number_of, text_of, with_unit
from nicbench.report.drawing.charts import DASHES, Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import SERIES
from nicbench.report.section import Section

# Of the widths of the later half: the first intervals would press all others into a line.
_WIDTHS = 4.0


def narrowing_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """None where the table has no such chart, or fewer than two estimates are known."""
    asked = section.table.narrowing
    if asked is None:
        return None
    points: list[dict[str, Any]] = []
    for row in section.rows:
        numbers = [number_of(row.result, name) for name in (asked.x.value, asked.y.value, asked.lower, asked.upper)]
        if row.result.trials or any(number is None for number in numbers):
            continue  # the one that stands is the last of them once more
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
    return finished(alt.layer(band, line), form)


def _range(points: list[dict[str, Any]]) -> tuple[float, float]:
    """What the axis shows: the later estimates whole, the first cut off."""
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
