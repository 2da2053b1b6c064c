"""Bars of a frame rate, and its share of the line rate as a line: the figure of card makers' zero-loss tables."""

from __future__ import annotations

from typing import Any

import altair as alt

from nicbench.report.cells import factor_of, number_of
from nicbench.report.drawing.charts import Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import SERIES
from nicbench.report.section import Further, Section

_HEADROOM = 1.06
_RATE, _SHARE = "frame rate", "% of line rate"


def tells_something(section: Section) -> bool:
    """Whether bars beside the share of the line rate say more than the rates by themselves: not of a nominal line."""
    plan = section.known.plan
    return len(section.rows) > 1 and not (plan and (plan.link_is_nominal or plan.simulated))


def share_bars_chart(further: Further, form: Format) -> dict[str, Any] | None:
    """Bars of the frame rate, and the share of the line rate as a line on an axis of its own; None without any rate."""
    bars_of = further.table.bars
    if bars_of is None:
        return None
    factor = factor_of(bars_of.rate.form)
    known = [
        (row.cells[0], rate * factor, number_of(row.result, bars_of.share.value))
        for row in further.rows
        if (rate := number_of(row.result, bars_of.rate.value)) is not None
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
    return finished(layers.resolve_scale(y="independent"), form)
