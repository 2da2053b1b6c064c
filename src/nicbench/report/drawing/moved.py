"""The chart of what a machine moved over time: a line for each way through each interface or drive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import altair as alt

from nicbench.report.document.blocks import Figure
from nicbench.report.document.inlines import inlines, raised
from nicbench.report.drawing.charts import DASHES, Format, finished
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import SERIES
from nicbench.report.moved import Flow, Moved

_MOVED_HEIGHT: Final = 150
_MOVED_STEPS: Final = {True: 300, False: 120}
"""Wide and narrow: more would be finer than the lines."""
_MOVED_HEADROOM: Final = 1.06


def moved_figure(moved: Moved, host: str, figures: Figures) -> Figure | None:
    """None where nothing was moved."""
    panel = figures.drawn(moved_chart, moved, f"{host}, {moved.kind.name.lower()}: MB/s over time")
    below = (f"{moved.kind.name} of {host} over time, 10", raised("6"), " bytes per second, the mean of each snapshot.")
    return None if panel is None else Figure((panel,), inlines(*below))


def moved_chart(moved: Moved, form: Format) -> dict[str, Any] | None:
    """None where nothing was moved."""
    points: list[dict[str, Any]] = [
        {"t": round(at_s, 3), "rate": rate, "line": flow.name}
        for flow in moved.flows
        for at_s, rate in _stepped(flow, _MOVED_STEPS[form.width > 500])
    ]
    top = max((point["rate"] for point in points), default=0.0)
    if not top:
        return None
    names = [flow.name for flow in moved.flows]
    # A colour for each interface, a dash for each way.
    ways = len(moved.kind.ways)
    colours = [SERIES[number // ways % len(SERIES)] for number in range(len(names))]
    dashes = [DASHES[number % ways] for number in range(len(names))]
    columns = max(1, form.columns * 9 // max(map(len, names)))
    legend = alt.Legend(orient="top", title=None, columns=columns, labelLimit=0, symbolStrokeWidth=2)
    end_s = max(point["t"] for point in points)
    begin_s = min(point["t"] for point in points)
    title = "time since the recording began [s]"
    chart = alt.Chart(inline(points)).mark_line(interpolate="step-after", strokeWidth=1.6)
    chart = chart.encode(
        x=alt.X("t:Q", title=title, scale=alt.Scale(domain=[begin_s, end_s], nice=False), axis=alt.Axis(grid=False)),
        y=alt.Y(
            "rate:Q", title=f"{moved.kind.name} [MB/s]", scale=alt.Scale(domain=[0, top * _MOVED_HEADROOM], nice=False)
        ),
        color=alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend),
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=alt.Scale(domain=names, range=dashes), legend=legend),
    )
    return finished(alt.layer(chart), replace(form, height=_MOVED_HEIGHT))


def _stepped(flow: Flow, most: int) -> Iterator[tuple[float, float]]:
    """Where each step begins, with its rate in MB/s, and where the last one ends; neighbours are taken together."""
    steps = flow.steps
    least_s = (steps[-1].end_s - steps[0].begin_s) / most
    begin_s, amount, rate = steps[0].begin_s, 0, 0.0
    for number, step in enumerate(steps):
        amount += step.moved_bytes
        if step.end_s - begin_s >= least_s or number == len(steps) - 1:
            rate = amount / max(step.end_s - begin_s, 1e-9) / 1e6
            yield begin_s, rate
            begin_s, amount = step.end_s, 0
    yield steps[-1].end_s, rate
