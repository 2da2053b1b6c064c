"""A heat map: a field for each combination of two axes, the stronger the greater its value, with the value in it."""

from __future__ import annotations

from typing import Any, Final

import altair as alt

from nicbench.report.drawing.charts import Format, finish_chart
from nicbench.report.drawing.svg import INK, SERIES, inline
from nicbench.report.heat_maps import HeatMap

_ROW_HEIGHT: Final = 44
_WEAKEST, _STRONGEST = 0.08, 0.6
"""The strongest still lets the number in it be read."""


def heat_chart(shown: HeatMap, form: Format) -> dict[str, Any] | None:
    """Returns the heat map; None where fewer than two values are known."""
    known = [cell for cell in shown.cells if cell.number is not None]
    if len(known) < 2:
        return None
    points: list[dict[str, Any]] = [
        {"row": cell.row, "column": cell.column, "y": cell.number, "text": cell.text} for cell in known
    ]
    rows: list[str]
    columns: list[str]
    rows, columns = (list(dict.fromkeys(point[name] for point in points)) for name in ("row", "column"))
    axis = alt.Axis(labelAngle=0, grid=False, ticks=False, domain=False)
    unit = f" [{shown.shown.unit}]" if shown.shown.unit else ""
    base = alt.Chart(inline(points)).encode(
        x=alt.X("column:N", title=shown.columns, sort=columns, axis=axis if shown.columns else None),
        y=alt.Y("row:N", title=shown.rows, sort=rows, axis=axis),
    )
    strength = alt.Opacity(
        "y:Q", title=f"{shown.shown.head}{unit}", legend=None, scale=alt.Scale(range=[_WEAKEST, _STRONGEST], zero=True)
    )
    fields = base.mark_rect(color=SERIES[0], stroke=None).encode(opacity=strength)
    numbers = base.mark_text(color=INK, fontSize=form.font + 1, fontWeight="bold").encode(text="text:N")
    height = _ROW_HEIGHT * len(rows)
    return finish_chart(fields + numbers, Format(form.width, height, form.font, form.columns))
