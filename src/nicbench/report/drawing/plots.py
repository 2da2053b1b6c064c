"""Bar charts: of a section (core/table.py), of the share of the line rate, and of the bins of a long tail.

The bars of a section have a value of each port or client, side by side for each way of sending. A frame rate with its
share of the line rate as a line is the figure that card makers' zero-loss reports have. The long tail has frames or
messages in each latency bin on a logarithmic axis, with the bars of the rows side by side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from nicbench.core.lists import grouped
from nicbench.core.result import Result
from nicbench.core.table import Column, Plot
from nicbench.report.cells import factor_of, number_in, text_of, value_of, with_unit
from nicbench.report.comparison import HeatMap
from nicbench.report.drawing.kit import (
    DASHES,
    PLAIN_NUMBERS,
    SHAPES,
    Format,
    Spec,
    bar_colours,
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
from nicbench.report.drawing.svg import INK, SERIES
from nicbench.report.section import Further, Section
from nicbench.report.tables import CONFIGURATION
from nicbench.report.tails import SLOWEST_OF, TailTable

_MOST: Final = MappingProxyType({True: 96, False: 48})
"""The most bars that a reader can distinguish, in a wide chart (True) and in a narrow one (False)."""
_UPRIGHT: Final = {"labelAngle": 0, "grid": False}
"""An axis of names."""


def bars_chart(section: Section, form: Format) -> Spec | None:
    """Returns the bar chart of a section; None where it would have fewer than two bars, or more than a reader can
    distinguish on a wide page.
    """
    bars = section.table.bars
    if bars is None:
        return None
    lines = _telling(bars.lines, [row.result for row in section.rows])
    points: list[dict[str, Any]] = [
        {
            "x": text_of(bars.x, row.result),
            "y": value * factor_of(bars.y.form),
            "line": _bar_line(lines, row.result),
        }
        for row in section.rows
        if (value := number_in(row.result, bars.y.value)) is not None
    ]
    if not 2 <= len(points) <= _MOST[True] or not any(point["y"] for point in points):
        return None
    lies_down = len(points) > _MOST[form.is_wide] or not form.is_wide
    names = _names(bars.lines, [row.result for row in section.rows], {point["line"] for point in points})
    places: list[str] = list(dict.fromkeys(point["x"] for point in points))
    place, height = ("y", "x") if lies_down else ("x", "y")
    encoding = {
        place: channel("x:N", title=bars.x.head, sort=places, axis=_UPRIGHT, scale={"paddingInner": 0.25}),
        f"{place}Offset": channel("line:N", sort=names, scale={"domain": names}),
        height: channel("y:Q", title=title_of(bars.y), axis={"grid": True}),
        **bar_colours("line", names, legend_of_names(names, form) if len(names) > 1 else None),
    }
    if lies_down:
        form = replace(form, height=max(form.height, 9 * len(points) + 12 * len(places)))
    return finish_chart(form, marks(points, "bar", **encoding))


def _telling(columns: tuple[Column, ...], results: Sequence[Result]) -> tuple[Column, ...]:
    """Returns the columns in which results differ; all columns if they are equal."""
    telling = tuple(column for column in columns if len({text_of(column, result) for result in results}) > 1)
    return telling or columns


def _names(columns: tuple[Column, ...], results: Sequence[Result], drawn: Collection[str]) -> list[str]:
    """Returns the names of the bars of a group, ordered by the first column, then by the next, so that configurations
    stand side by side.
    """
    orders = [list(dict.fromkeys(text_of(column, result) for result in results)) for column in columns]

    def place(result: Result) -> tuple[int, ...]:
        return tuple(order.index(text_of(column, result)) for column, order in zip(columns, orders, strict=True))

    named = dict.fromkeys(_bar_line(_telling(columns, results), result) for result in sorted(results, key=place))
    return [name for name in named if name in drawn]


def _bar_line(columns: tuple[Column, ...], result: Result) -> str:
    return ", ".join(with_unit(column, text_of(column, result)) for column in columns)


_RATE, _SHARE = "frame rate", "% of line rate"


def tells_something(section: Section) -> bool:
    """Returns whether bars in addition to the share of the line rate say more than the rates alone. They do not for a
    single row, nor where the link is nominal or simulated.
    """
    plan = section.known.plan
    return len(section.rows) > 1 and not (plan and (plan.link_is_nominal or plan.simulated))


def share_bars_chart(further: Further, form: Format) -> Spec | None:
    """Returns a chart with the frame rate as bars and the share of the line rate as a line on its own axis; None
    without any rate.
    """
    bars_of = further.table.bars
    if bars_of is None:
        return None
    factor = factor_of(bars_of.rate.form)
    known = [
        (row.cells[0], rate * factor, number_in(row.result, bars_of.share.value))
        for row in further.rows
        if (rate := number_in(row.result, bars_of.rate.value)) is not None
    ]
    if not known:
        return None
    sizes = [row.cells[0] for row in further.rows]
    x = channel("size:N", sort=sizes, title="frame size [bytes, with FCS]", axis=_UPRIGHT)
    names = [_RATE, _SHARE]
    colour = told_apart("what", names, SERIES, legend=legend(names, form, symbolOpacity=1))
    rates = [{"size": size, "value": rate, "what": _RATE} for size, rate, _ in known]
    top = _HEADROOM * max(rate for _, rate, _ in known)
    shares = [{"size": size, "value": share, "what": _SHARE} for size, _, share in known if share is not None]
    y_rate = channel("value:Q", title=f"frame rate [{bars_of.rate.unit}]", scale=from_to(0, top))
    hundred = {"values": [0, 25, 50, 75, 100], "grid": False}
    y_share = channel("value:Q", title=_SHARE, scale=from_to(0, 105), axis=hundred)
    look = {"opacity": 0.85, "width": min(90, form.width // 2 // len(known))}
    bars = marks(rates, "bar", look, x=x, color=colour, y=y_rate)
    line = marks(shares, "line", {"strokeWidth": 1.8, "point": {"size": 60}}, x=x, color=colour, y=y_share)
    return finish_chart(form, bars, line, resolve={"scale": {"y": "independent"}})


def bins_chart(table: TailTable, form: Format) -> Spec | None:
    """Returns a chart with a group of bars for each bin and a bar for each row, none for a bin without frames; None
    where nothing is known.
    """
    points = [
        {"bin": head, "row": row.name, "frames": count} for row in table.rows for head, count in row.counts if count > 0
    ]
    if not points:
        return None
    least = min(count for row in table.rows for _, count in row.counts if count > 0)
    ticks = decades(min(0, math.floor(math.log10(least))), math.ceil(math.log10(max(table.most, 10.0))))
    names, bins = [row.name for row in table.rows], list(table.bins)
    labels = {"labelAngle": 0 if form.columns > 4 else -45, "grid": False}
    bars = marks(
        points,
        "bar",
        x=channel("bin:N", title="latency [µs]", axis=labels, sort=bins, scale={"domain": bins, "paddingInner": 0.25}),
        xOffset=channel("row:N", sort=names, scale={"domain": names}),
        y=channel(
            "frames:Q",
            title=table.what,
            scale=from_to(ticks[0], ticks[-1], type="log"),
            axis={"values": ticks, "labelExpr": PLAIN_NUMBERS},
        ),
        y2={"datum": ticks[0]},
        **bar_colours("row", names, legend_of_names(names, form)),
    )
    return finish_chart(form, bars)


MOST_SLOWEST: Final = 3
"""The most rows of a tail with three lines each that a reader can distinguish."""


def slowest_chart(table: TailTable, form: Format) -> Spec | None:
    """Returns a chart of the chance that the slowest of several comes within a time, a line for each number and row;
    None where nothing is known, or of too many rows.
    """
    names = [row.name for row in table.rows]
    points: list[dict[str, Any]] = [
        {"time": float(bound), "number": f"of {number:,}", "row": row.name, "chance": 100.0 * chance.estimate}
        for row in table.rows
        for number, chances in zip(SLOWEST_OF, row.slowest, strict=True)
        for bound, chance in zip(table.bounds, chances, strict=True)
        if chance is not None
    ]
    if len(points) < 2 or len(names) > MOST_SLOWEST:
        return None
    numbers = [f"of {number:,}" for number in SLOWEST_OF]
    place = {
        "x": channel("time:Q", title="time [µs]"),
        "y": channel("chance:Q", title="chance that the slowest is within [%]", scale=from_to(0, 100)),
        "color": told_apart("number", numbers, SERIES, legend=legend_of_names(numbers, form)),
    }
    known = legend_of_names(names, form, symbolSize=70, symbolFillColor=INK, symbolDash=[1, 0])
    dash = told_apart("row", names, DASHES, legend=known)
    shape = told_apart("row", names, SHAPES, legend=known)
    lines = marks(points, "line", {"strokeWidth": 1.8, "interpolate": "step-after"}, **place, strokeDash=dash)
    dots = marks(points, "point", {"size": 58, "filled": True, "opacity": 1}, **place, shape=shape)
    return finish_chart(form, lines, dots)


_ROW_HEIGHT: Final = 44
_WEAKEST, _STRONGEST = 0.08, 0.6
"""The strongest still lets the number in it be read."""


def heat_chart(shown: HeatMap, form: Format) -> Spec | None:
    """Returns the heat map; None where fewer than two values are known."""
    points: list[dict[str, Any]] = [
        {"row": row, "column": column, "y": number, "text": text}
        for (row, column), (number, text) in shown.cells.items()
        if number is not None
    ]
    if len(points) < 2:
        return None
    rows: list[str]
    columns: list[str]
    rows, columns = (list(dict.fromkeys(point[name] for point in points)) for name in ("row", "column"))
    axis = {**_UPRIGHT, "ticks": False, "domain": False}
    x = channel("column:N", title=shown.columns, sort=columns, axis=axis if shown.columns else None)
    y = channel("row:N", title=shown.rows, sort=rows, axis=axis)
    scale = {"range": [_WEAKEST, _STRONGEST], "zero": True}
    strength = channel("y:Q", title=title_of(shown.shown), legend=None, scale=scale)
    bold = {"color": INK, "fontSize": form.font + 1, "fontWeight": "bold"}
    return finish_chart(
        replace(form, height=_ROW_HEIGHT * len(rows)),
        marks(points, "rect", {"color": SERIES[0], "stroke": None}, x=x, y=y, opacity=strength),
        marks(points, "text", bold, x=x, y=y, text="text:N"),
    )


_NAMED = 12
"""The most values of x that are named one by one; with more, a numeric axis names some of them."""
_HEADROOM = 1.06


def split_plots(plot: Plot, section: Section) -> tuple[tuple[Section, str], ...]:
    """Returns a section for each value of ``each``, with its name where there are several; else the whole section."""
    return ((section, ""),) if plot.each is None else split_parts(section, plot.each)


def split_parts(section: Section, each: Column) -> tuple[tuple[Section, str], ...]:
    """Returns a section for each value of a column, with that value in words where there are several."""
    parts = grouped((with_unit(each, text_of(each, row.result)), row) for row in section.rows)
    return tuple((replace(section, rows=tuple(rows)), name if len(parts) > 1 else "") for name, rows in parts.items())


def plot_chart(plot: Plot, section: Section, form: Format) -> Spec | None:
    """Returns a plot with a line for each ``y``; None where it would have fewer than two points, or where all values
    are 0.
    """
    sums = {row.result.id for row in section.sums}
    points = _points(plot, [row.result for row in section.rows if row.result.id not in sums])
    places = list(dict.fromkeys(point["x"] for point in points))
    if len(places) < 2 or not any(point["y"] for point in points):
        return None
    names = list(dict.fromkeys(point["line"] for point in points))
    numbered = len(places) > _NAMED and all(place.isdigit() for place in places)
    if numbered:
        points = [{**point, "x": int(point["x"])} for point in points]
        axis = {"grid": False, "tickMinStep": 1, "format": "d"}
        x = channel("x:Q", title=title_of(plot.x), axis=axis, scale={"zero": False})
    else:
        x = channel("x:N", title=title_of(plot.x), sort=places, axis=_UPRIGHT, scale={"domain": places})
    first = plot.y[0]
    shared = first if len(plot.y) == 1 else first.replace(head=first.head.partition(",")[0])
    y = channel("y:Q", title=title_of(shared), **_axis(plot, points))
    known = legend_of_names(names, form, symbolSize=70, symbolDash=[1, 0]) if len(names) > 1 else None
    place = {"x": x, "color": told_apart("line", names, SERIES, legend=known)}
    dash = told_apart("line", names, DASHES, legend=None)
    layers = [marks(points, "line", {"strokeWidth": 1.6}, **place, y=y, strokeDash=dash)]
    if any("lower" in point for point in points):
        bar = {"strokeWidth": 9, "opacity": 0.35}
        layers.append(marks(points, "rule", bar, **place, y=channel("lower:Q", title=""), y2="upper"))
    if not numbered or len(places) <= 5 * _NAMED:
        shape = told_apart("line", names, SHAPES, legend=known)
        layers.append(marks(points, "point", {"size": 58, "filled": True, "opacity": 1}, **place, y=y, shape=shape))
    return finish_chart(form, *layers)


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
    points = []
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
    of_size = with_unit(Column("size", "Frame", unit="bytes", form="text"), size)
    return of_size if len(plot.y) == 1 else f"{telling}, {of_size}"


def _axis(plot: Plot, points: Sequence[dict[str, Any]]) -> Spec:
    values = [value for point in points for value in (point["y"], point.get("upper")) if value is not None]
    if not plot.logarithmic:
        return {"scale": from_to(0, max(values) * _HEADROOM)}
    low = math.floor(math.log10(min(values)))
    ticks = decades(low, max(low + 1, math.ceil(math.log10(max(values)) - 1e-9)))
    axis = {"values": ticks, "labelExpr": PLAIN_NUMBERS}
    return {"scale": from_to(ticks[0], ticks[-1], type="log"), "axis": axis}


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


def curve_chart(section: Section, form: Format) -> Spec | None:
    """Returns a chart with a line for each combination of the curve's ``lines``; None where the table has no curve or
    nothing is known.
    """
    curve = section.table.curve
    known = [row.result for row in section.rows if curve and number_in(row.result, curve.y.value) is not None]
    if curve is None or not known:
        return None
    points: list[dict[str, Any]] = [
        {"x": number_in(result, curve.x.value), "y": number_in(result, curve.y.value), "line": line}
        for result, line in zip(known, _lines(known, curve.lines), strict=True)
    ]
    names = list(dict.fromkeys(point["line"] for point in points))
    shown = legend_of_names(names, form, symbolSize=70, symbolDash=[1, 0])
    hundreds = max(1, *(math.ceil(point["x"] / 100.0) for point in points if point["x"] is not None))

    def percent(axis: str, column: Column, hundreds: int) -> Spec:
        steps = {"values": list(range(0, 100 * hundreds + 1, 10 * hundreds)), "labelFlush": False}
        return channel(axis, title=title_of(column), scale=from_to(0, 100 * hundreds), axis=steps)

    place = {
        "x": percent("x:Q", curve.x, hundreds),
        "y": percent("y:Q", curve.y, 1),
        "color": told_apart("line", names, SERIES, legend=shown),
    }
    dash = told_apart("line", names, DASHES, legend=None)
    shape = told_apart("line", names, SHAPES, legend=shown)
    return finish_chart(
        form,
        marks(points, "line", {"strokeWidth": 1.6}, **place, strokeDash=dash),
        marks(points, "point", {"size": 52, "filled": True, "opacity": 1}, **place, shape=shape),
    )


def _lines(results: Sequence[Result], columns: Sequence[Column]) -> list[str]:
    """Returns the name of each result's line: what tells it from the other lines, without what all have in common."""
    texts = [[with_unit(column, text_of(column, result)) for column in columns] for result in results]
    telling = [number for number, level in enumerate(zip(*texts, strict=True)) if len(set(level)) > 1] or [0]
    return [", ".join(words[number] for number in telling) for words in texts]
