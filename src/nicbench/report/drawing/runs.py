"""Charts with a column or a dot for each run: statistics over runs, and the instances of a study of editors."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
from markupsafe import Markup, escape

from nicbench.report.drawing.charts import PLAIN_NUMBERS, SHAPES, Format, finish_chart, legend_of
from nicbench.report.drawing.svg import GRID, INK, SERIES, inline, svg
from nicbench.report.editors import OneWay, Study, plain_rate, rate_decimals, rate_text, share_text
from nicbench.report.statistics import OverRuns, TestStatistics
from nicbench.stats.frames import RATE, FilmRun, TriedPoint, trusted_number

FORM: Final = Format(width=292, height=150, font=11, columns=4)
"""Width and height fit a narrow phone screen; on a wide page several charts stand in a row."""


def ticks_of_runs(runs: int) -> list[int]:
    """Returns the numbers of the runs with a tick: the first and then every fifth or so; all if there are few."""
    if runs <= 6:
        return list(range(1, runs + 1))
    step = 5 if runs <= 25 else 10 * -(-runs // 60)
    return [1, *range(step, runs + 1, step)]


def stride_of(runs: int) -> int:
    """Returns the distance in columns from one configuration to the next, with an empty column on each side."""
    return runs + 2


def draw_parts(names: Sequence[str], runs: int, x: alt.X, colour: alt.Color, *, named: bool) -> list[Any]:
    """Returns the lines between configurations and, where they are ``named``, their names above."""
    stride = stride_of(runs)
    layers: list[Any] = []
    if len(names) > 1:
        between = [{"x": number * stride - 0.5} for number in range(1, len(names))]
        layers.append(alt.Chart(inline(between)).mark_rule(color=GRID, aria=False).encode(x=x))
    if named:
        heads = [{"x": place * stride + (runs + 1) / 2, "name": name} for place, name in enumerate(names)]
        text = alt.Chart(inline(heads)).mark_text(
            align="center",
            baseline="bottom",
            fontSize=FORM.font,
            fontWeight="bold",
            limit=round(FORM.width / len(names)),
            aria=False,
        )
        layers.append(text.encode(x=x, y=alt.value(-3), text="name:N", color=colour))
    return layers


_FEWEST_RUNS: Final = 3
_MOST_FIGURES: Final = 12
_OF_MANY: Final = 6
_STATISTICS_HEADROOM: Final = 0.12


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
        drawing = Markup(svg(_statistics_chart(rows, compares=test.compares), next(numbered), label))  # noqa: S704 - from numbers
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


def _statistics_chart(rows: Sequence[OverRuns], *, compares: bool) -> dict[str, Any]:
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
    reach = _STATISTICS_HEADROOM * (most - least) or 0.05 * abs(most) or 1.0
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


_DOTS_HEADROOM: Final = 1.08


@dataclass(frozen=True, slots=True)
class DotFigure:
    """A chart for one number of instances; ``met`` says in how many runs each configuration met the target."""

    instances: int
    drawing: Markup
    met: str


def dot_figures(study: Study, way: OneWay, numbered: Iterator[int]) -> tuple[DotFigure, ...]:
    """Makes the charts of all numbers of instances on one scale; none where only sums of instances are known."""
    top = _DOTS_HEADROOM * max((*_rates(way), *(target.frames_per_s for target in way.targets)), default=0.0)
    if not way.has_instances or top <= 0.0:
        return ()
    doing = f"{way.doing}: " if way.doing else ""
    chart = _instances_chart(study, way, top)
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


def _instances_chart(study: Study, way: OneWay, top: float) -> dict[str, Any]:
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


_APART: Final = 9
"""Horizontal distance in pixels between configurations at one number of instances."""
_HEADROOM: Final = 1.06
_DASH: Final = [5, 3]
_BROAD: Final = 500
"""Least width in pixels at which a chart has room for a second axis."""
_ALIKE: Final = 0.005
"""Largest relative difference between frame sizes that are taken as equal; rates are measured over whole frames."""


def overview_chart(way: OneWay, form: Format, *, compares: bool) -> dict[str, Any] | None:
    """Returns the chart, None where no sum is known; the configuration is named only if ``compares``."""
    names = [_name(name, compares) for name in way.configurations]
    points: list[dict[str, Any]] = [
        {
            "name": _name(name, compares),
            "instances": count,
            "median": over.median_frames_per_s,
            "least": over.minimum_frames_per_s,
            "most": over.maximum_frames_per_s,
        }
        for name in way.configurations
        for count, over in way.figures_over_runs(name).items()
        if over.runs_known
    ]
    targets: list[dict[str, Any]] = [
        {"name": _target_name(target.frames_per_s), "instances": count, "sum": target.for_instances(count)}
        for target in way.targets
        for count in way.counts
    ]
    tops = [point["most"] for point in points] + [target["sum"] for target in targets]
    if not points or not any(tops):
        return None
    counts = list(way.counts)
    x_axis = alt.Axis(values=counts, grid=False, format="d", labelOverlap=True)
    x_scale = alt.Scale(domain=[min(0.5, counts[0] - 0.5), counts[-1] + 0.5], nice=False)
    x = alt.X("instances:Q", title="instances at once", axis=x_axis, scale=x_scale)
    top = _HEADROOM * max(top for top in tops if top)
    y_scale = alt.Scale(domain=[0, top], nice=False)
    y_axis = alt.Axis(tickCount=6, labelExpr=PLAIN_NUMBERS)
    y_title = "sum of all instances [frames/s]"
    lines = list(dict.fromkeys(target["name"] for target in targets))
    domain = [*names, *lines]
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))] + [INK] * len(lines)
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))] + ["stroke"] * len(lines)
    legend = legend_of(domain, form, symbolSize=90, symbolOpacity=1, symbolStrokeWidth=2, symbolDash=[1, 0])
    colour = alt.Color("name:N", scale=alt.Scale(domain=domain, range=colours), legend=legend)
    shape = alt.Shape("name:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend)
    layers: list[Any] = []
    for line in lines:
        of_line = [target for target in targets if target["name"] == line]
        base = alt.Chart(inline(of_line)).encode(x=x, color=colour)
        y = alt.Y("sum:Q", title=y_title, scale=y_scale, axis=y_axis)
        layers.append(base.mark_line(strokeWidth=1.5, strokeDash=_DASH).encode(y=y))
        if len(counts) == 1:  # a single point makes no line
            layers.append(base.mark_point(shape="stroke", size=900, strokeWidth=1.5, opacity=1).encode(y=y))
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * _APART
        known = [point for point in points if point["name"] == name]
        base = alt.Chart(inline(known)).encode(x=x, color=colour)
        median = alt.Y("median:Q", title=y_title, scale=y_scale, axis=y_axis)
        layers += [
            base.mark_rule(strokeWidth=6, opacity=0.4, xOffset=shift).encode(
                y=alt.Y("least:Q", title=y_title, scale=y_scale, axis=y_axis), y2="most:Q"
            ),
            base.mark_point(size=52, filled=True, opacity=1, xOffset=shift).encode(y=median, shape=shape),
        ]
    of_a_frame = _frame_bytes(way)
    if of_a_frame is None or form.width < _BROAD:
        return finish_chart(alt.layer(*layers), form)
    # No data uses the right axis: it is the left axis in another unit.
    bytes_axis = alt.Axis(orient="right", grid=False, title="MB/s (10⁶ bytes)", labelExpr=PLAIN_NUMBERS, tickCount=6)
    bytes_scale = alt.Scale(domain=[0, top * of_a_frame / 1e6], nice=False)
    beside = alt.Chart(inline([{"instances": counts[0], "bytes": 0}])).mark_point(opacity=0, aria=False)
    beside = beside.encode(x=x, y=alt.Y("bytes:Q", scale=bytes_scale, axis=bytes_axis))
    return finish_chart(alt.layer(alt.layer(*layers), beside).resolve_scale(y="independent"), form)


def overview_caption(way: OneWay) -> str:
    """Returns a caption that explains only what the chart shows."""
    runs = {over.runs for name in way.configurations for over in way.figures_over_runs(name).values()}
    doing = f"{way.doing}: the" if way.doing else "The"
    if max(runs, default=1) == 1:
        drawn = "A point is the one run that was made."
    else:
        drawn = "A point is the median run; the bar behind it reaches from the least run to the greatest."
    line = " Dashed: the target of all instances together." if way.targets else ""
    return f"{doing} frames/s of all instances together, against how many ran at once. {drawn}{line}"


def _name(configuration: str, compares: bool) -> str:
    return configuration if compares else "sum"


def _frame_bytes(way: OneWay) -> float | None:
    """Returns the bytes of a frame where all frames have one size, so that an axis in MB/s can be drawn; else None."""
    found = [
        ran.bytes_per_s / ran.figures.sum_frames_per_s
        for ran in way.ran
        if ran.bytes_per_s is not None and ran.figures.sum_frames_per_s
    ]
    return found[0] if found and max(found) - min(found) <= _ALIKE * max(found) else None


def _target_name(frames_per_s: float) -> str:
    return f"target, {plain_rate(frames_per_s)} each"


@dataclass(frozen=True, slots=True)
class SharingRow:
    """Rates in frames/s of instances that shared one port of a bond in groups of ``together``, over all runs."""

    configuration: str
    together: int
    instances: int
    least: str
    median: str
    greatest: str
    met: str


def sharing_rows(way: OneWay) -> tuple[SharingRow, ...]:
    """Returns rows from the runs in which the port of every instance is known; none without a bond."""
    rows = []
    for name in way.configurations:
        by_together: dict[int, list[tuple[float, bool | None]]] = {}
        for of, count in way.columns:
            if of == name:
                for together, rate, met in _count_shared(way.at[of, count]):
                    by_together.setdefault(together, []).append((rate, met))
        decimals = rate_decimals(rate for each in by_together.values() for rate, _ in each)
        for together, each in sorted(by_together.items()):
            rates = [rate for rate, _ in each]
            judged = [one for _, one in each if one is not None]
            rows.append(
                SharingRow(
                    configuration=name,
                    together=together,
                    instances=len(each),
                    least=rate_text(min(rates), decimals),
                    median=rate_text(statistics.median(rates), decimals),
                    greatest=rate_text(max(rates), decimals),
                    met=share_text(sum(judged) / len(judged) if judged else None),
                )
            )
    return tuple(rows)


def _count_shared(tried: TriedPoint) -> list[tuple[int, float, bool | None]]:
    """Returns for each instance how many shared its port (itself included), its rate, and if it met the target."""
    found = []
    for ran in tried.runs:
        ports = _ports(ran)
        on_port = Counter(ports)
        for port, one in zip(ports, ran.instances, strict=False):
            rate = None if one is None else trusted_number(one, RATE)
            if rate is not None:
                found.append((on_port[port], rate, tried.target.is_met(rate) if tried.target else None))
    return found


def _ports(ran: FilmRun) -> list[tuple[str, str]]:
    """Returns bond and port of every instance; empty where a port is only predicted or an instance has several."""
    known = [one.values for one in ran.instances if one is not None]
    ports = [(values.get("bond_end"), values.get("bond_port")) for values in known]
    sure = [(str(end), port) for end, port in ports if isinstance(port, str) and len(port.split()) == 1]
    return sure if len(sure) == len(ran.instances) else []
