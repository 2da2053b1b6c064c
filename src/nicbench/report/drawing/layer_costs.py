"""The chart of what each layer costs: a bar for each configuration, with its interval, by frame size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from nicbench.report.drawing.charts import Format, finish_chart, legend_of
from nicbench.report.drawing.svg import INK, SERIES, inline
from nicbench.report.statistics.layer_costs import Cost


@dataclass(frozen=True, slots=True)
class CostsOf:
    """The costs that one chart shows, and what its axis says."""

    costs: tuple[Cost, ...]
    names: tuple[str, ...]
    title: str


def costs_chart(shown: CostsOf, form: Format) -> dict[str, Any] | None:
    """Returns the chart; None where nothing is known, or there are more configurations than colours."""
    if not shown.costs or len(shown.names) >= len(SERIES):
        return None
    unit, factor = unit_of(shown.costs)
    points = [
        {
            "size": cost.size,
            "configuration": cost.configuration,
            "added": cost.added_ns * factor,
            "lower": cost.lower_ns * factor,
            "upper": cost.upper_ns * factor,
        }
        for cost in shown.costs
    ]
    names = list(shown.names)
    # The first configuration has the first colour in the charts of the rates.
    colours = list(SERIES[1 : len(names) + 1])
    x = alt.X("size:N", title="frame size [bytes, with FCS]", axis=alt.Axis(labelAngle=0, grid=False))
    x = x.sort(list(dict.fromkeys(cost.size for cost in shown.costs))).scale(paddingInner=0.25)
    place = alt.XOffset("configuration:N", sort=names, scale=alt.Scale(domain=names))
    base = alt.Chart(inline(points)).encode(x=x, xOffset=place)
    bars = base.mark_bar().encode(
        y=alt.Y("added:Q", title=f"{shown.title} [{unit}]"),
        color=alt.Color("configuration:N", scale=alt.Scale(domain=names, range=colours), legend=legend_of(names, form)),
    )
    whiskers = base.mark_rule(color=INK, strokeWidth=1.4).encode(y="lower:Q", y2="upper:Q")
    return finish_chart(alt.layer(bars, whiskers), form)


def unit_of(costs: Sequence[Cost]) -> tuple[str, float]:
    """Returns the unit in which the greatest of the costs has few digits, and the factor that converts ns to it."""
    greatest = max(abs(cost.added_ns) for cost in costs)
    return ("µs", 1e-3) if greatest >= 10_000.0 else ("ns", 1.0)
