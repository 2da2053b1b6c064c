"""The bars of a section (model/table.py): a value of each port or client, side by side for each way of sending."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import MappingProxyType
from typing import Any, Final

import altair as alt

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import factor_of, number_of, text_of, with_unit
from nicbench.report.drawing.charts import Format, bar_colours, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.section import Section

_MOST: Final = MappingProxyType({True: 96, False: 48})
"""So many bars can be told apart, wide and narrow."""


def bars_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """None where there would be fewer than two bars, or more than can be told apart on a wide page."""
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
        if (value := number_of(row.result, bars.y.value)) is not None
    ]
    if not 2 <= len(points) <= _MOST[True] or not any(point["y"] for point in points):
        return None
    lies_down = len(points) > _MOST[form.width > 500] or form.width < 500
    names = _names(bars.lines, [row.result for row in section.rows], {point["line"] for point in points})
    places: list[str] = list(dict.fromkeys(point["x"] for point in points))
    legend = (
        alt.Legend(orient="top", title=None, columns=max(1, form.columns * 10 // max(map(len, names))), labelLimit=0)
        if len(names) > 1
        else None
    )
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
        return finished(chart, tall)
    chart = base.encode(
        x=alt.X("x:N", title=titles[0], sort=places, axis=place).scale(paddingInner=0.25),
        xOffset=alt.XOffset("line:N", sort=names, scale=alt.Scale(domain=names)),
        y=alt.Y("y:Q", title=titles[1], axis=heights),
        **colours,
    )
    return finished(chart, form)


def _telling(columns: tuple[Column, ...], results: Sequence[Result]) -> tuple[Column, ...]:
    """Those in which results differ; all where there are none."""
    telling = tuple(column for column in columns if len({text_of(column, result) for result in results}) > 1)
    return telling or columns


def _names(columns: tuple[Column, ...], results: Sequence[Result], drawn: Collection[str]) -> list[str]:
    """Of the bars of a group, in the order of the first column, then of the next: configurations stand side by side."""
    orders = [list(dict.fromkeys(text_of(column, result) for result in results)) for column in columns]

    def place(result: Result) -> tuple[int, ...]:
        return tuple(order.index(text_of(column, result)) for column, order in zip(columns, orders, strict=True))

    named = dict.fromkeys(_line(_telling(columns, results), result) for result in sorted(results, key=place))
    return [name for name in named if name in drawn]


def _line(columns: tuple[Column, ...], result: Result) -> str:
    return ", ".join(with_unit(column, text_of(column, result)) for column in columns)
