"""Bar charts: of a section (core/table.py), of the share of the line rate, and of the bins of a long tail.

The bars of a section have a value of each port or client, side by side for each way of sending. A frame rate with its
share of the line rate as a line is the figure that card makers' zero-loss reports have. The long tail has frames or
messages in each latency bin on a logarithmic axis, with the bars of the rows side by side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Any, Final

import altair as alt

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import factor_of, number_in, text_of, with_unit
from nicbench.report.drawing.charts import Format, bar_colours, finish_chart, legend_of
from nicbench.report.drawing.svg import SERIES, inline
from nicbench.report.section import Further, Section
from nicbench.report.tails import TailTable

_MOST: Final = MappingProxyType({True: 96, False: 48})
"""The most bars that can be told apart, in a wide chart (True) and in a narrow one (False)."""


def bars_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """Returns the bar chart of a section; None where it would have fewer than two bars, or more than can be told apart
    on a wide page.
    """
    bars = section.table.bars
    if bars is None:
        return None
    lines = _telling(bars.lines, [row.result for row in section.rows])
    points: list[dict[str, Any]] = [
        {
            "x": text_of(bars.x, row.result),
            "y": value * factor_of(bars.y.form),
            "line": _line(lines, row.result),
        }
        for row in section.rows
        if (value := number_in(row.result, bars.y.value)) is not None
    ]
    if not 2 <= len(points) <= _MOST[True] or not any(point["y"] for point in points):
        return None
    lies_down = len(points) > _MOST[form.width > 500] or form.width < 500
    names = _names(bars.lines, [row.result for row in section.rows], {point["line"] for point in points})
    places: list[str] = list(dict.fromkeys(point["x"] for point in points))
    legend = legend_of(names, form) if len(names) > 1 else None
    place = alt.Axis(labelAngle=0, grid=False)
    heights = alt.Axis(grid=True)
    titles = (bars.x.head, f"{bars.y.head} [{bars.y.unit}]" if bars.y.unit else bars.y.head)
    colours = bar_colours("line", names, legend)
    base = alt.Chart(inline(points)).mark_bar()
    if lies_down:
        chart = base.encode(
            y=alt.Y("x:N", title=titles[0], sort=places, axis=place).scale(paddingInner=0.25),
            yOffset=alt.YOffset("line:N", sort=names, scale=alt.Scale(domain=names)),
            x=alt.X("y:Q", title=titles[1], axis=heights),
            **colours,
        )
        tall = Format(form.width, max(form.height, 9 * len(points) + 12 * len(places)), form.font, form.columns)
        return finish_chart(chart, tall)
    chart = base.encode(
        x=alt.X("x:N", title=titles[0], sort=places, axis=place).scale(paddingInner=0.25),
        xOffset=alt.XOffset("line:N", sort=names, scale=alt.Scale(domain=names)),
        y=alt.Y("y:Q", title=titles[1], axis=heights),
        **colours,
    )
    return finish_chart(chart, form)


def _telling(columns: tuple[Column, ...], results: Sequence[Result]) -> tuple[Column, ...]:
    """Returns the columns in which results differ; all columns where there are none."""
    telling = tuple(column for column in columns if len({text_of(column, result) for result in results}) > 1)
    return telling or columns


def _names(columns: tuple[Column, ...], results: Sequence[Result], drawn: Collection[str]) -> list[str]:
    """Returns the names of the bars of a group, ordered by the first column, then by the next, so that configurations
    stand side by side.
    """
    orders = [list(dict.fromkeys(text_of(column, result) for result in results)) for column in columns]

    def place(result: Result) -> tuple[int, ...]:
        return tuple(order.index(text_of(column, result)) for column, order in zip(columns, orders, strict=True))

    named = dict.fromkeys(_line(_telling(columns, results), result) for result in sorted(results, key=place))
    return [name for name in named if name in drawn]


def _line(columns: tuple[Column, ...], result: Result) -> str:
    return ", ".join(with_unit(column, text_of(column, result)) for column in columns)


_HEADROOM = 1.06
_RATE, _SHARE = "frame rate", "% of line rate"


def tells_something(section: Section) -> bool:
    """Returns whether bars beside the share of the line rate say more than the rates alone. They do not for a single
    row, nor where the link is nominal or simulated.
    """
    plan = section.known.plan
    return len(section.rows) > 1 and not (plan and (plan.link_is_nominal or plan.simulated))


def share_bars_chart(further: Further, form: Format) -> dict[str, Any] | None:
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
    x = alt.X(
        "size:N",
        sort=[row.cells[0] for row in further.rows],
        title="frame size [bytes, with FCS]",
        axis=alt.Axis(labelAngle=0, grid=False),
    )
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=[_RATE, _SHARE], range=[SERIES[0], SERIES[1]]),
        legend=alt.Legend(orient="top", title=None, symbolOpacity=1),
    )
    rates = [{"size": size, "value": rate, "what": _RATE} for size, rate, _ in known]
    top = _HEADROOM * max(rate for _, rate, _ in known)
    shares = [{"size": size, "value": share, "what": _SHARE} for size, _, share in known if share is not None]
    bars = alt.Chart(inline(rates)).mark_bar(opacity=0.85, width=min(90, form.width // 2 // len(known)))
    line = alt.Chart(inline(shares)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=60))
    rate_scale = alt.Scale(domain=[0, top], nice=False)
    share_axis = alt.Axis(values=[0, 25, 50, 75, 100], grid=False)
    layers = alt.layer(
        bars.encode(x=x, color=colour, y=alt.Y("value:Q", title=f"frame rate [{bars_of.rate.unit}]", scale=rate_scale)),
        line.encode(
            x=x,
            color=colour,
            y=alt.Y("value:Q", title=_SHARE, scale=alt.Scale(domain=[0, 105], nice=False), axis=share_axis),
        ),
    )
    return finish_chart(layers.resolve_scale(y="independent"), form)


def bins_chart(table: TailTable, form: Format) -> dict[str, Any] | None:
    """Returns a chart with a group of bars for each bin and a bar for each row, none for a bin without frames; None
    where nothing is known.
    """
    points = [
        {"bin": head, "row": row.name, "frames": count} for row in table.rows for head, count in row.counts if count > 0
    ]
    if not points:
        return None
    least = min(count for row in table.rows for _, count in row.counts if count > 0)
    bottom = 10.0 ** min(0, math.floor(math.log10(least)))
    top = 10.0 ** math.ceil(math.log10(max(table.most, 10.0)))
    decades = [10.0**decade for decade in range(round(math.log10(bottom)), round(math.log10(top)) + 1)]
    names = [row.name for row in table.rows]
    chart = (
        alt.Chart(inline(points))
        .mark_bar()
        .encode(
            x=alt.X("bin:N", title="latency [µs]", axis=alt.Axis(labelAngle=0 if form.columns > 4 else -45, grid=False))
            .sort(list(table.bins))
            .scale(domain=list(table.bins), paddingInner=0.25),
            xOffset=alt.XOffset("row:N", sort=names, scale=alt.Scale(domain=names)),
            y=alt.Y(
                "frames:Q",
                title=table.what,
                scale=alt.Scale(type="log", domain=[bottom, top], nice=False),
                axis=alt.Axis(
                    values=decades, labelExpr="replace(format(datum.value, ',~f'), regexp(',', 'g'), '\u202f')"
                ),
            ),
            y2=alt.Y2(datum=bottom),
            **bar_colours("row", names, legend_of(names, form)),
        )
    )
    return finish_chart(chart, form)
