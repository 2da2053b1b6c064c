"""The chart of the long tail: frames or messages in each latency bin on a logarithmic axis, rows abreast."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from nicbench.report.drawing.charts import Format, bar_colours, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.tails import TailTable


def bins_chart(table: TailTable, form: Format) -> dict[str, Any] | None:
    """A group of bars for each bin, one for each row; a bin without a frame has none. None where nothing is known."""
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
    columns = max(1, form.columns * 10 // max(map(len, names)))
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
            **bar_colours("row", names, alt.Legend(orient="top", title=None, columns=columns, labelLimit=0)),
        )
    )
    return finished(chart, form)
