"""Small charts, one for each number of instances: every instance of every run, configurations side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
from markupsafe import Markup, escape

from nicbench.report.drawing.charts import finish_chart
from nicbench.report.drawing.run_columns import FORM, draw_parts, stride_of, ticks_of_runs
from nicbench.report.drawing.svg import INK, SERIES, svg
from nicbench.report.editors.study import OneWay, Study
from nicbench.stats.frames import RATE, trusted_number

_HEADROOM: Final = 1.08


@dataclass(frozen=True, slots=True)
class DotFigure:
    """A chart for one number of instances; ``met`` says in how many runs each configuration met the target."""

    instances: int
    drawing: Markup
    met: str


def dot_figures(study: Study, way: OneWay, numbered: Iterator[int]) -> tuple[DotFigure, ...]:
    """Makes the charts of all numbers of instances on one scale; none where only sums of instances are known."""
    top = _HEADROOM * max((*_rates(way), *(target.frames_per_s for target in way.targets)), default=0.0)
    if not way.has_instances or top <= 0.0:
        return ()
    doing = f"{way.doing}: " if way.doing else ""
    chart = _chart(study, way, top)
    return tuple(
        DotFigure(
            instances=count,
            drawing=Markup(  # noqa: S704 - from numbers, and an escaped label
                svg(
                    {**chart, "datasets": {**chart.get("datasets", {}), **_points(way, count)}},
                    next(numbered),
                    str(escape(f"{doing}rate of every instance of every run, {count} at once")),
                )
            ),
            met=_met_text(study, way, count),
        )
        for count in way.counts
        if any(ran.instances for name in way.configurations for ran in _run_dots(way, name, count))
    )


def _points(way: OneWay, count: int) -> dict[str, list[dict[str, Any]]]:
    """Returns the points: ``filled`` instances that met their target, ``hollow`` ones that did not, and ``targets``."""
    runs = way.runs
    found: dict[str, list[dict[str, Any]]] = {"filled": [], "hollow": [], "targets": []}
    for number, name in enumerate(way.configurations):
        begin, tried = number * stride_of(len(way.runs)), way.at.get((name, count))
        if tried is None:
            continue
        target = tried.target
        if target is not None:
            found["targets"].append({"x": begin + 0.4, "x2": begin + len(runs) + 0.6, "y": target.frames_per_s})
        for ran in tried.runs:
            place = begin + 1 + runs.index(ran.run)
            for which, one in enumerate(ran.instances, start=1):
                rate = None if one is None else trusted_number(one, RATE)
                if rate is not None:
                    kind = "filled" if target is None or target.is_met(rate) else "hollow"
                    found[kind].append(
                        {"x": place, "y": round(rate, 3), "name": name, "who": f"{ran.run}, instance {which}"}
                    )
    return found


def _chart(study: Study, way: OneWay, top: float) -> dict[str, Any]:
    """Returns the chart without points, the same for all numbers of instances: a column per run, by configuration."""
    names, runs, stride = way.configurations, way.runs, stride_of(len(way.runs))
    columns = len(names) * stride
    ticks = [begin + place for begin in range(0, columns, stride) for place in ticks_of_runs(len(runs))]
    labels = ", ".join(f"'{run}'" for run in ("", *runs, ""))
    x_axis = alt.Axis(values=ticks, labelExpr=f"[{labels}][datum.value % {stride}]", grid=False, labelOverlap=False)
    x = alt.X("x:Q", title="run", scale=alt.Scale(domain=[0, columns - 1], nice=False), axis=x_axis)
    y = alt.Y("y:Q", title="frames/s", scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(tickCount=5))
    colours = alt.Scale(domain=list(names), range=[SERIES[place % len(SERIES)] for place in range(len(names))])
    colour = alt.Color("name:N", scale=colours, legend=None)
    step = FORM.width / columns
    size = min(5.0, max(1.8, 0.62 * step)) ** 2
    said = [alt.Tooltip("who:N", title="run"), alt.Tooltip("y:Q", title="rate [frames/s]")]
    layers: list[Any] = [
        alt.Chart(alt.NamedData("targets"))
        .mark_rule(color=INK, strokeDash=[4, 3], aria=False)
        .encode(x=x, x2="x2:Q", y=y),
        alt.Chart(alt.NamedData("filled"))
        .mark_circle(size=size, opacity=0.55)
        .encode(x=x, y=y, color=colour, tooltip=said),
        alt.Chart(alt.NamedData("hollow"))
        .mark_point(size=size, filled=False, opacity=0.9, strokeWidth=0.9)
        .encode(x=x, y=y, color=colour, tooltip=said),
    ]
    layers += draw_parts(names, len(runs), x, colour, named=study.compares)
    return finish_chart(alt.layer(*layers), FORM)


def _rates(way: OneWay) -> Iterator[float]:
    for ran in way.ran:
        for one in ran.instances:
            rate = None if one is None else trusted_number(one, RATE)
            if rate is not None:
                yield rate


def _run_dots(way: OneWay, name: str, count: int) -> tuple[Any, ...]:
    found = way.at.get((name, count))
    return () if found is None else found.runs


def _met_text(study: Study, way: OneWay, count: int) -> str:
    said = []
    for name in way.configurations:
        found = way.at.get((name, count))
        if found is not None and found.target is not None:
            whose = f"{study.quoted_name(name)} " if study.quoted_name(name) else ""
            said.append(f"{whose}{found.over.runs_met} of {found.over.runs}")
    return f"runs that met the target: {', '.join(said)}" if said else ""
