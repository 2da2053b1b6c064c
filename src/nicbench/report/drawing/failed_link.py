"""The chart of a link that failed: what each client moved, with the time in which the link was down behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import altair as alt

from nicbench.report.document.blocks import Figure
from nicbench.report.drawing.charts import DASHES, Format, finished
from nicbench.report.drawing.figures import Figures
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.svg import INK, MUTED, SERIES
from nicbench.report.failed_links import FailedLink

_FAILED_LINK_HEIGHT: Final = 190
_FAILED_LINK_HEADROOM: Final = 1.12


def failed_link_figure(failed: FailedLink, figures: Figures) -> Figure | None:
    """None where no tool told what it moved over time."""
    caption = (
        "What each client moved, by its tool’s word, the mean of each of its intervals, from when it was started, "
        "which is a moment before its first byte. The link was down in the shaded time."
    )
    return figures.figure(failed_link_chart, failed, f"{failed.id}: what each client moved over time", caption)


def failed_link_chart(failed: FailedLink, form: Format) -> dict[str, Any] | None:
    """Steps: the mean of each interval of the tool's."""
    points = [
        {"t": round(time_s, 3), "rate": one.bits_per_s / 1e6, "line": one.who}
        for one, last in _with_last(failed)
        for time_s in ((one.begin_s, one.end_s) if last else (one.begin_s,))
    ]
    if not points:
        return None
    names = list(dict.fromkeys(one.who for one in failed.moved))
    end_s = max(one.end_s for one in failed.moved)
    top = max(one.bits_per_s for one in failed.moved) / 1e6 * _FAILED_LINK_HEADROOM or 1.0
    x = alt.Scale(domain=[0, end_s], nice=False)
    axis = alt.Axis(grid=False)
    title = "time since the clients began [s]"
    down = [{"from": failed.down_at_s, "to": min(failed.up_at_s or end_s, end_s), "what": "link down"}]
    behind = alt.Chart(inline(down))
    shade = behind.mark_rect(color=MUTED, opacity=0.22).encode(
        x=alt.X("from:Q", title=title, scale=x, axis=axis), x2="to:Q", y=alt.value(0), y2=alt.value(_FAILED_LINK_HEIGHT)
    )
    named = behind.mark_text(align="left", baseline="top", dx=4, dy=4, fontSize=form.font - 1, color=INK)
    legend = alt.Legend(orient="top", title=None, columns=form.columns, labelLimit=0, symbolStrokeWidth=2)
    colours = alt.Scale(domain=names, range=[SERIES[number % len(SERIES)] for number in range(len(names))])
    dashes = alt.Scale(domain=names, range=[DASHES[number % len(DASHES)] for number in range(len(names))])
    lines = alt.Chart(inline(points)).mark_line(interpolate="step-after", strokeWidth=1.8)
    lines = lines.encode(
        x=alt.X("t:Q", title=title, scale=x, axis=axis),
        y=alt.Y("rate:Q", title="throughput [Mb/s]", scale=alt.Scale(domain=[0, top], nice=False)),
        color=alt.Color("line:N", sort=names, scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("line:N", sort=names, scale=dashes, legend=legend),
    )
    layers = (shade, named.encode(x=alt.X("from:Q", title=title, scale=x), y=alt.value(0), text="what:N"), lines)
    return finished(alt.layer(*layers), replace(form, height=_FAILED_LINK_HEIGHT))


def _with_last(failed: FailedLink) -> Iterator[tuple[Any, bool]]:
    """Each interval, and whether it is the last of its client."""
    for one, after in pairwise((*failed.moved, None)):
        if one is not None:
            yield one, after is None or after.who != one.who
