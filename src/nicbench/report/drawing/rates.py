"""The chart of configurations beside each other: a group of bars for each frame size, whiskers for what is known."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from nicbench.core.table import Goal
from nicbench.report.drawing.charts import Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import INK, SERIES
from nicbench.report.rates import RatesTable


def rates_chart(table: RatesTable, goal: Goal, form: Format) -> dict[str, Any] | None:
    """None where no configuration has a rate. A rate that may be higher has a whisker downwards alone.

    Nor where there are more configurations than colours: they have a chart for each frame size (``multiples``).
    """
    if table.is_long:
        return None
    factor = table.factor(goal)
    points = [
        {
            "size": row.size,
            "configuration": cell.configuration,
            "rate": cell.rate_frames_per_s * factor,
            "lower": (cell.span.lower if cell.span else cell.rate_frames_per_s) * factor,
            "upper": _finite(cell.span.upper if cell.span else math.inf, cell.rate_frames_per_s) * factor,
            **({} if cell.span and math.isfinite(cell.span.upper) else {"range": ""}),
        }
        for row in table.rows
        for cell in row.cells[goal.value]
        if cell.rate_frames_per_s is not None
    ]
    if not points:
        return None
    names = list(table.names)
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    legend = alt.Legend(
        orient="top", title=None, columns=max(1, form.columns * 10 // max(map(len, names))), labelLimit=0
    )
    base = alt.Chart(inline(points)).encode(
        x=alt.X("size:N", title="frame size [bytes, with FCS]", axis=alt.Axis(labelAngle=0, grid=False))
        .sort([row.size for row in table.rows])
        .scale(paddingInner=0.25),
        xOffset=alt.XOffset("configuration:N", sort=names, scale=alt.Scale(domain=names)),
    )
    bars = base.mark_bar().encode(
        y=alt.Y("rate:Q", title=f"{goal.name} [{table.unit(goal)}]"),
        color=alt.Color("configuration:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    )
    whiskers = base.mark_rule(color=INK, strokeWidth=1.4).encode(y="lower:Q", y2="upper:Q")
    return finished(alt.layer(bars, whiskers), form)


def _finite(value: float, otherwise: float) -> float:
    return otherwise if math.isinf(value) else value
