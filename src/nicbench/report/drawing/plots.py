"""The plots and curves of a section (core/table.py).

A plot has values of one unit over frame sizes, or over the intervals of a soak test. A curve has a percentage over a
percentage, both from 0 to 100 (RFC 2544 section 26.3); only loads that overload a port go further, and then the axis of
the loads ends at the next hundred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from nicbench.core.result import Result
from nicbench.core.table import Column, Plot
from nicbench.report.cells import factor_of, number_in, text_of, value_of, with_unit
from nicbench.report.drawing.charts import DASHES, PLAIN_NUMBERS, SHAPES, Format, finish_chart, legend_of
from nicbench.report.drawing.svg import SERIES, inline
from nicbench.report.section import Row, Section
from nicbench.report.tables import CONFIGURATION

_NAMED = 12
"""The most values of x that are named one by one; with more, a numeric axis names some of them."""
_HEADROOM = 1.06


def split_plots(plot: Plot, section: Section) -> tuple[tuple[Section, str], ...]:
    """Returns a section for each value of ``each``, with its name where there are several; else the whole section."""
    return ((section, ""),) if plot.each is None else split_parts(section, plot.each)


def split_parts(section: Section, each: Column) -> tuple[tuple[Section, str], ...]:
    """Returns a section for each value of a column, with that value in words where there are several."""
    parts: dict[str, list[Row]] = {}
    for row in section.rows:
        parts.setdefault(with_unit(each, text_of(each, row.result)), []).append(row)
    return tuple((replace(section, rows=tuple(rows)), name if len(parts) > 1 else "") for name, rows in parts.items())


def plot_chart(plot: Plot, section: Section, form: Format) -> dict[str, Any] | None:
    """Returns a plot with a line for each ``y``; None where it would have fewer than two points, or where all values
    are 0.
    """
    sums = {row.result.id for row in section.sums}
    results = [row.result for row in section.rows if row.result.id not in sums]
    points = _points(plot, results)
    places = list(dict.fromkeys(point["x"] for point in points))
    if len(places) < 2 or not any(point["y"] for point in points):
        return None
    names = list(dict.fromkeys(point["line"] for point in points))
    numbered = len(places) > _NAMED and all(place.isdigit() for place in places)
    title = _titled(plot.x.head, plot.x.unit)
    if numbered:
        points = [{**point, "x": int(point["x"])} for point in points]
        x = alt.X("x:Q", title=title, axis=alt.Axis(grid=False, tickMinStep=1, format="d")).scale(zero=False)
    else:
        x = alt.X("x:N", title=title, sort=places, axis=alt.Axis(labelAngle=0, grid=False)).scale(domain=places)
    heads = [column.head for column in plot.y]
    shared = heads[0] if len(heads) == 1 else heads[0].partition(",")[0]
    y = alt.Y("y:Q", title=_titled(shared, plot.y[0].unit), **_axis(plot, points))
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    legend = legend_of(names, form, symbolSize=70, symbolDash=[1, 0]) if len(names) > 1 else None
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    base = alt.Chart(inline(points)).encode(
        x=x, color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    )
    dash = alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    layers = [base.mark_line(strokeWidth=1.6).encode(y=y, strokeDash=dash)]
    if any("lower" in point for point in points):
        layers.append(base.mark_rule(strokeWidth=9, opacity=0.35).encode(y=alt.Y("lower:Q", title=""), y2="upper:Q"))
    if not numbered or len(places) <= 5 * _NAMED:
        shape = alt.Shape("line:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
        layers.append(base.mark_point(size=58, filled=True, opacity=1).encode(y=y, shape=shape))
    return finish_chart(alt.layer(*layers), form)


def _points(plot: Plot, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Returns the points in the numbers of the axis; where results of several frame sizes share an x, each line is of
    one size.
    """
    sizes = [str(value_of(result, "size")) for result in results]
    several = plot.x.value != "size" and len(set(sizes)) > 1
    told = [column for column in plot.lines if len({text_of(column, result) for result in results}) > 1]
    beside = [column for column in told if column.value == CONFIGURATION]
    told = [column for column in told if column.value != CONFIGURATION]
    only = len(plot.y) == 1 and not several
    points: list[dict[str, Any]] = []
    for column in plot.y:
        factor = factor_of(column.form)
        for result, size in zip(results, sizes, strict=True):
            value = number_in(result, column.value)
            if value is None or (plot.logarithmic and value <= 0):
                continue
            own = () if (beside or told) and only else (_line(column, plot, size, several),)
            others = (with_unit(one, text_of(one, result)) for one in told)
            line = ", ".join((*(text_of(one, result) for one in beside), *own, *others))
            point = {"x": text_of(plot.x, result), "y": value * factor, "line": line}
            bounds = [number_in(result, name) for name in (plot.lower, plot.upper) if name]
            if len(bounds) == 2 and None not in bounds:
                lower, upper = (bound * factor for bound in bounds if bound is not None)
                point |= {"lower": lower, "upper": upper}
            points.append(point)
    return points


def _line(column: Column, plot: Plot, size: str, several_sizes: bool) -> str:
    telling = column.head.partition(", ")[2] or column.head
    if not several_sizes:
        return telling
    of_size = with_unit(Column(value="size", head="Frame", unit="bytes", form="text"), size)
    return of_size if len(plot.y) == 1 else f"{telling}, {of_size}"


def _axis(plot: Plot, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = [value for point in points for value in (point["y"], point.get("upper")) if value is not None]
    if not plot.logarithmic:
        return {"scale": alt.Scale(domain=[0, max(values) * _HEADROOM], nice=False)}
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values)) - 1e-9))
    return {
        "scale": alt.Scale(type="log", domain=[10.0**low, 10.0**high], nice=False),
        "axis": alt.Axis(values=[10.0**decade for decade in range(low, high + 1)], labelExpr=PLAIN_NUMBERS),
    }


_HUNDRED = alt.Scale(domain=[0, 100], nice=False)
_TENS = alt.Axis(values=list(range(0, 101, 10)), labelFlush=False)


def curves(section: Section) -> tuple[tuple[Section, str], ...]:
    """Returns the whole section without a name. Where its curve has more lines than there are colours, returns a
    section for each value of the first column of ``lines`` instead, with that value as its name.
    """
    curve = section.table.curve
    if curve is None:
        return ()
    names = set(_lines([row.result for row in section.rows], curve.lines)) if section.rows else set()
    parts = split_parts(section, curve.lines[0]) if len(names) > len(SERIES) else ()
    return parts if 1 < len(parts) < len(names) else ((section, ""),)


def curve_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """Returns a chart with a line for each combination of the curve's ``lines``; None where the table has no curve or
    nothing is known.
    """
    curve = section.table.curve
    if curve is None:
        return None
    known = [row.result for row in section.rows if number_in(row.result, curve.y.value) is not None]
    if not known:
        return None
    points: list[dict[str, Any]] = [
        {"x": number_in(result, curve.x.value), "y": number_in(result, curve.y.value), "line": line}
        for result, line in zip(known, _lines(known, curve.lines), strict=True)
    ]
    names = list(dict.fromkeys(point["line"] for point in points))
    legend = legend_of(names, form, symbolSize=70, symbolDash=[1, 0])
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    hundreds = max(1, *(math.ceil(point["x"] / 100.0) for point in points if point["x"] is not None))
    loads = alt.Scale(domain=[0, 100 * hundreds], nice=False)
    steps = alt.Axis(values=list(range(0, 100 * hundreds + 1, 10 * hundreds)), labelFlush=False)
    base = alt.Chart(inline(points)).encode(
        x=alt.X("x:Q", title=_titled(curve.x.head, curve.x.unit), scale=loads, axis=steps),
        y=alt.Y("y:Q", title=_titled(curve.y.head, curve.y.unit), scale=_HUNDRED, axis=_TENS),
        color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    )
    line = base.mark_line(strokeWidth=1.6).encode(
        strokeDash=alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    )
    dots = base.mark_point(size=52, filled=True, opacity=1).encode(
        shape=alt.Shape("line:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    )
    return finish_chart(alt.layer(line, dots), form)


def _lines(results: Sequence[Result], columns: Sequence[Column]) -> list[str]:
    """Returns the name of each result's line: what tells it from the other lines, without what all have in common."""
    texts = [[with_unit(column, text_of(column, result)) for column in columns] for result in results]
    telling = [number for number, level in enumerate(zip(*texts, strict=True)) if len(set(level)) > 1] or [0]
    return [", ".join(words[number] for number in telling) for words in texts]


def _titled(head: str, unit: str | None) -> str:
    """Returns a title as in the heading of a table: "Load [% of line rate]"."""
    return f"{head} [{unit}]" if unit else head
