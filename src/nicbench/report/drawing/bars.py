"""The bars of a section (model/table.py): a value of each port or client, side by side for each way of sending."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import altair as alt

from nicbench.model.result import Result
from nicbench.model.table import Column, Form
from nicbench.report.cells import number_of, text_of, with_unit
from nicbench.report.drawing.charts import Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import SERIES
from nicbench.report.tables import Section

_SCALES: Final = MappingProxyType[Form, float](
    {"mpps": 1e-6, "gigabits": 1e-9, "gigahertz": 1e-9, "microseconds": 1e-3, "milliseconds": 1e-6, "megabytes": 1e-6}
)
_MOST: Final = MappingProxyType({True: 96, False: 48})
"""So many bars can be told apart, wide and narrow."""


def bars_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """None where there would be fewer than two bars, or more than can be told apart on a wide page."""
    bars = section.table.bars
    if bars is None:
        return None
    points: list[dict[str, Any]] = [
        {
            "x": text_of(bars.x, row.result),
            "y": value * _SCALES.get(bars.y.form, 1.0),
            "line": _line(bars.lines, row.result),
        }
        for row in section.rows
        if (value := number_of(row.result, bars.y.value)) is not None
    ]
    if not 2 <= len(points) <= _MOST[True] or not any(point["y"] for point in points):
        return None
    lies_down = len(points) > _MOST[form.width > 500] or form.width < 500
    names: list[str] = list(dict.fromkeys(point["line"] for point in points))
    places: list[str] = list(dict.fromkeys(point["x"] for point in points))
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    legend = (
        alt.Legend(orient="top", title=None, columns=max(1, form.columns * 10 // max(map(len, names))), labelLimit=0)
        if len(names) > 1
        else None
    )
    place = alt.Axis(labelAngle=0, grid=False)
    heights = alt.Axis(grid=True)
    titles = (bars.x.head, f"{bars.y.head} [{bars.y.unit}]" if bars.y.unit else bars.y.head)
    colour = alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), sort=names, legend=legend)
    base = alt.Chart(inline(points)).mark_bar()
    if lies_down:
        chart = base.encode(
            y=alt.Y("x:N", title=titles[0], sort=places, axis=place).scale(paddingInner=0.25),
            yOffset=alt.YOffset("line:N", sort=names, scale=alt.Scale(domain=names)),
            x=alt.X("y:Q", title=titles[1], axis=heights),
            color=colour,
        )
        tall = Format(form.width, max(form.height, 9 * len(points) + 12 * len(places)), form.font, form.columns)
        return finished(chart, tall)
    chart = base.encode(
        x=alt.X("x:N", title=titles[0], sort=places, axis=place).scale(paddingInner=0.25),
        xOffset=alt.XOffset("line:N", sort=names, scale=alt.Scale(domain=names)),
        y=alt.Y("y:Q", title=titles[1], axis=heights),
        color=colour,
    )
    return finished(chart, form)


def _line(columns: tuple[Column, ...], result: Result) -> str:
    return ", ".join(with_unit(column, text_of(column, result)) for column in columns)
