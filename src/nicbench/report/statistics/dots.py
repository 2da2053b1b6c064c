"""Small charts, one for each point: every run a dot, the median with its interval, outliers ringed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
from markupsafe import Markup, escape

from nicbench.report.drawing.charts import finish_chart
from nicbench.report.drawing.run_columns import FORM, draw_parts, stride_of, ticks_of_runs
from nicbench.report.drawing.svg import INK, SERIES, inline, svg
from nicbench.report.statistics.over_runs import OverRuns, TestStatistics

_FEWEST_RUNS: Final = 3
_MOST_FIGURES: Final = 12
_OF_MANY: Final = 6
_HEADROOM: Final = 0.12


@dataclass(frozen=True, slots=True)
class RunsFigure:
    """A chart of the runs at one point: the point's circumstances as heading, and the drawing."""

    heading: str
    drawing: Markup


def runs_figures(test: TestStatistics, numbered: Iterator[int]) -> tuple[RunsFigure, ...]:
    """Makes a chart for each point and value that has three runs or more.

    If there are too many charts, only those with the most outliers or the greatest variation are made.
    """
    grouped: dict[tuple[str, str], list[OverRuns]] = {}
    for row in test.rows:
        if row.found.n >= _FEWEST_RUNS:
            grouped.setdefault((row.of.point.given, row.of.value.name), []).append(row)
    found = []
    for rows in _select_shown(list(grouped.values())):
        head = rows[0].point
        heading = f"{head}: {rows[0].of.value.quantity.name}" if test.values else head
        label = str(escape(f"{heading}: {rows[0].of.value.quantity.name} of every run"))
        drawing = Markup(svg(_chart(rows, compares=test.compares), next(numbered), label))  # noqa: S704 - from numbers
        found.append(RunsFigure(heading, drawing))
    return tuple(found)


def _select_shown(groups: list[list[OverRuns]]) -> list[list[OverRuns]]:
    """Selects the groups to draw if there are too many; they stay in the order of the table."""
    if len(groups) <= _MOST_FIGURES:
        return groups
    chosen = sorted(range(len(groups)), key=lambda place: _restlessness(groups[place]), reverse=True)[:_OF_MANY]
    return [groups[place] for place in sorted(chosen)]


def _restlessness(rows: Sequence[OverRuns]) -> tuple[int, float]:
    """Returns a sort key for variation: the number of outliers, then the greatest coefficient of variation."""
    outliers = sum(len(row.found.outliers) for row in rows)
    return outliers, max(row.found.coefficient_of_variation or 0.0 for row in rows)


def _chart(rows: Sequence[OverRuns], *, compares: bool) -> dict[str, Any]:
    """Makes a chart with a column for each run and a part for each configuration."""
    runs = max(len(row.runs) for row in rows)
    stride = stride_of(runs)
    columns = len(rows) * stride
    names = [row.configuration for row in rows]
    quantity = rows[0].of.value.quantity
    dots: list[dict[str, Any]] = []
    rings: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    bands: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        begin = number * stride
        far = {one.run for one in row.found.outliers}
        for place, (run, value) in enumerate(row.runs, start=1):
            if value is None:
                continue
            point = {"x": begin + place, "y": value, "name": row.configuration, "run": str(run)}
            dots.append(point)
            if run in far:
                rings.append(point)
        ends = {"x": begin + 0.4, "x2": begin + len(row.runs) + 0.6, "name": row.configuration}
        medians.append({**ends, "y": row.found.median})
        interval = row.found.median_interval
        if interval.lower is not None and interval.upper is not None:
            bands.append({**ends, "y": interval.lower, "y2": interval.upper})
    values = [dot["y"] for dot in dots] + [end for band in bands for end in (band["y"], band["y2"])]
    least, most = min(values), max(values)
    reach = _HEADROOM * (most - least) or 0.05 * abs(most) or 1.0
    low = max(0.0, least - reach) if least >= 0.0 else least - reach
    ticks, labels = _ticks(rows, stride)
    x = alt.X(
        "x:Q",
        title="run",
        scale=alt.Scale(domain=[0, columns - 1], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=f"[{labels}][datum.value]", grid=False, labelOverlap=False),
    )
    title = f"{quantity.name} [{quantity.unit}]" if quantity.unit else quantity.name
    y = alt.Y("y:Q", title=title, scale=alt.Scale(domain=[low, most + reach], nice=False), axis=alt.Axis(tickCount=5))
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names, range=[SERIES[place % len(SERIES)] for place in range(len(names))]),
        legend=None,
    )
    said = [alt.Tooltip("run:N", title="run"), alt.Tooltip("y:Q", title=title)]
    step = FORM.width / columns
    size = min(6.0, max(2.2, 0.62 * step)) ** 2
    layers: list[Any] = [
        alt.Chart(inline(bands))
        .mark_rect(opacity=0.22, aria=False)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q", color=colour),
        alt.Chart(inline(medians)).mark_rule(strokeWidth=1.6, aria=False).encode(x=x, x2="x2:Q", y=y, color=colour),
        alt.Chart(inline(dots)).mark_circle(size=size, opacity=0.75).encode(x=x, y=y, color=colour, tooltip=said),
    ]
    if rings:
        layers.append(
            alt.Chart(inline(rings))
            .mark_point(size=4.5 * size, filled=False, strokeWidth=1.2, color=INK, opacity=1, aria=False)
            .encode(x=x, y=y)
        )
    layers += draw_parts(names, runs, x, colour, named=compares)
    return finish_chart(alt.layer(*layers), FORM)


def _ticks(rows: Sequence[OverRuns], stride: int) -> tuple[list[int], str]:
    """Returns the tick positions, and the labels of all axis positions as items of a Vega expression, digits only."""
    labels = [""] * (len(rows) * stride)
    for number, row in enumerate(rows):
        for place, (run, _) in enumerate(row.runs, start=1):
            labels[number * stride + place] = str(int(run))
    ticks = [number * stride + place for number, row in enumerate(rows) for place in ticks_of_runs(len(row.runs))]
    return ticks, ", ".join(f"'{label}'" for label in labels)
