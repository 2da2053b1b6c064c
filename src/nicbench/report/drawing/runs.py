"""Charts with a column or a dot for each run: statistics over runs, and the instances of a study of editors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from markupsafe import escape

from nicbench.core.lists import grouped
from nicbench.core.units import count_of
from nicbench.report.document.blocks import Panel
from nicbench.report.document.finishing import drawing
from nicbench.report.document.making import inlines, strong
from nicbench.report.drawing.kit import (
    PLAIN_NUMBERS,
    SHAPES,
    Format,
    Spec,
    channel,
    finish_chart,
    from_to,
    legend_of_names,
    marks,
    told_apart,
)
from nicbench.report.drawing.svg import GRID, INK, SERIES, svg
from nicbench.report.editors import OneWay, Study, plain_rate, rate_of
from nicbench.report.statistics import OverRuns, TestStatistics
from nicbench.stats.frames import TriedPoint

FORM: Final = Format(width=292, height=150, font=11, columns=4)
"""Width and height fit a narrow phone screen; on a wide page several charts stand in a row."""


def ticks_of_runs(runs: int) -> list[int]:
    """Returns the numbers of the runs with a tick: the first and then every fifth or so; all if there are few."""
    if runs <= 6:
        return list(range(1, runs + 1))
    step = 5 if runs <= 25 else 10 * -(-runs // 60)
    return [1, *range(step, runs + 1, step)]


class _Columns:
    """The plot of these charts: a part for each configuration with a column for each of its runs, and an empty one on
    each side.
    """

    def __init__(self, names: Sequence[str], runs: Sequence[Sequence[int]], *, named: bool) -> None:
        self._names = names
        self._most = max(map(len, runs))
        self.stride = self._most + 2
        self._columns = len(names) * self.stride
        self._named = named
        labels = [""] * self._columns
        for number, of_name in enumerate(runs):
            labels[number * self.stride + 1 : number * self.stride + 1 + len(of_name)] = map(str, of_name)
        ticks = [number * self.stride + place for number, each in enumerate(runs) for place in ticks_of_runs(len(each))]
        said = ", ".join(f"'{label}'" for label in labels)
        axis = {"values": ticks, "labelExpr": f"[{said}][datum.value]", "grid": False, "labelOverlap": False}
        self.x = channel("x:Q", title="run", scale=from_to(0, self._columns - 1), axis=axis)
        self.colour = told_apart("name", names, SERIES, legend=None)

    def span(self, number: int, runs: int) -> Spec:
        """Returns the ends of a mark over all runs of a configuration."""
        return {"x": number * self.stride + 0.4, "x2": number * self.stride + runs + 0.6}

    def dot_size(self, least: float, most: float) -> float:
        """Returns the area of a dot that fits its column."""
        return min(most, max(least, 0.62 * FORM.width / self._columns)) ** 2

    def finish(self, *layers: Spec) -> Spec:
        """Returns the chart, with lines between configurations and, where these are named, their names above."""
        names, stride = self._names, self.stride
        more = []
        if len(names) > 1:
            between = [{"x": number * stride - 0.5} for number in range(1, len(names))]
            more.append(marks(between, "rule", {"color": GRID, "aria": False}, x=self.x))
        if self._named:
            heads = [{"x": place * stride + (self._most + 1) / 2, "name": name} for place, name in enumerate(names)]
            look = {
                "align": "center",
                "baseline": "bottom",
                "fontSize": FORM.font,
                "fontWeight": "bold",
                "limit": round(FORM.width / len(names)),
                "aria": False,
            }
            more.append(marks(heads, "text", look, x=self.x, y={"value": -3}, text="name:N", color=self.colour))
        return finish_chart(FORM, *layers, *more)


_FEWEST_RUNS: Final = 3
_MOST_FIGURES: Final = 12
_OF_MANY: Final = 6
_STATISTICS_HEADROOM: Final = 0.12


def runs_figures(test: TestStatistics, numbered: Iterator[int]) -> tuple[Panel, ...]:
    """Makes a chart for each point and value that has three runs or more.

    If there are too many charts, only those with the most outliers or the greatest variation are made.
    """
    groups = grouped(((row.of.point.given, row.of.value.name), row) for row in test.rows if row.found.n >= _FEWEST_RUNS)
    found = []
    for rows in _select_shown(list(groups.values())):
        head, name = rows[0].point, rows[0].of.value.quantity.name
        heading = f"{head}: {name}" if test.values else head
        label = str(escape(f"{heading}: {name} of every run"))
        shown = svg(_statistics_chart(rows, compares=test.compares), next(numbered), label)
        found.append(Panel(drawing(shown), inlines(strong(heading))))
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


def _statistics_chart(rows: Sequence[OverRuns], *, compares: bool) -> Spec:
    """Makes a chart with a column for each run and a part for each configuration."""
    plot = _Columns(
        [row.configuration for row in rows], [[int(run) for run, _ in row.runs] for row in rows], named=compares
    )
    dots: list[dict[str, Any]] = []
    rings: list[dict[str, Any]] = []
    medians: list[dict[str, Any]] = []
    bands: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        far = {one.run for one in row.found.outliers}
        for place, (run, value) in enumerate(row.runs, start=number * plot.stride + 1):
            if value is not None:
                dots.append({"x": place, "y": value, "name": row.configuration, "run": str(run)})
                rings += dots[-1:] if run in far else []
        ends = {**plot.span(number, len(row.runs)), "name": row.configuration}
        medians.append({**ends, "y": row.found.median})
        interval = row.found.median_interval
        if interval.lower is not None and interval.upper is not None:
            bands.append({**ends, "y": interval.lower, "y2": interval.upper})
    values = [dot["y"] for dot in dots] + [end for band in bands for end in (band["y"], band["y2"])]
    least, most = min(values), max(values)
    reach = _STATISTICS_HEADROOM * (most - least) or 0.05 * abs(most) or 1.0
    low = max(0.0, least - reach) if least >= 0.0 else least - reach
    quantity = rows[0].of.value.quantity
    title = f"{quantity.name} [{quantity.unit}]" if quantity.unit else quantity.name
    y = channel("y:Q", title=title, scale=from_to(low, most + reach), axis={"tickCount": 5})
    said = [channel("run:N", title="run"), channel("y:Q", title=title)]
    size, colour = plot.dot_size(2.2, 6.0), plot.colour
    layers = [
        marks(bands, "rect", {"opacity": 0.22, "aria": False}, x=plot.x, x2="x2", y=y, y2="y2", color=colour),
        marks(medians, "rule", {"strokeWidth": 1.6, "aria": False}, x=plot.x, x2="x2", y=y, color=colour),
        marks(dots, "circle", {"size": size, "opacity": 0.75}, x=plot.x, y=y, color=colour, tooltip=said),
    ]
    if rings:
        ring = {"filled": False, "strokeWidth": 1.2, "color": INK, "opacity": 1, "aria": False}
        layers.append(marks(rings, "point", {"size": 4.5 * size, **ring}, x=plot.x, y=y))
    return plot.finish(*layers)


_DOTS_HEADROOM: Final = 1.08


def dot_figures(study: Study, way: OneWay, numbered: Iterator[int]) -> tuple[Panel, ...]:
    """Makes the charts of all numbers of instances on one scale, each with a caption that says in how many runs each
    configuration met the target; none where only sums of instances are known.
    """
    rates = [rate for ran in way.ran for rate in map(rate_of, ran.instances) if rate is not None]
    top = _DOTS_HEADROOM * max((*rates, *(target.frames_per_s for target in way.targets)), default=0.0)
    if not way.has_instances or top <= 0.0:
        return ()
    doing = f"{way.doing}: " if way.doing else ""
    found = []
    for count in way.counts:
        tried = {name: way.at[name, count] for name in way.configurations if (name, count) in way.at}
        if any(ran.instances for each in tried.values() for ran in each.runs):
            label = str(escape(f"{doing}rate of every instance of every run, {count} at once"))
            shown = svg(_instances_chart(study, way, tried, top), next(numbered), label)
            head = strong(count_of(count, "instance"))
            found.append(Panel(drawing(shown), inlines(head), inlines(_met_text(study, tried))))
    return tuple(found)


def _instances_chart(study: Study, way: OneWay, tried: dict[str, TriedPoint], top: float) -> Spec:
    """Returns the chart of one number of instances: a column for each run, filled dots for instances that met their
    target, and hollow ones for those that did not.
    """
    plot = _Columns(way.configurations, [way.runs] * len(way.configurations), named=study.compares)
    filled: list[dict[str, Any]] = []
    hollow: list[dict[str, Any]] = []
    targets = []
    for number, name in enumerate(way.configurations):
        if name not in tried:
            continue
        target = tried[name].target
        if target is not None:
            targets.append({**plot.span(number, len(way.runs)), "y": target.frames_per_s})
        for ran in tried[name].runs:
            place = number * plot.stride + 1 + way.runs.index(ran.run)
            for which, rate in enumerate(map(rate_of, ran.instances), start=1):
                if rate is not None:
                    dots = filled if target is None or target.is_met(rate) else hollow
                    who = f"{ran.run}, instance {which}"
                    dots.append({"x": place, "y": round(rate, 3), "name": name, "who": who})
    y = channel("y:Q", title="frames/s", scale=from_to(0, top), axis={"tickCount": 5})
    size = plot.dot_size(1.8, 5.0)
    said = [channel("who:N", title="run"), channel("y:Q", title="rate [frames/s]")]
    at = {"x": plot.x, "y": y, "color": plot.colour, "tooltip": said}
    dashed = {"color": INK, "strokeDash": [4, 3], "aria": False}
    ring = {"size": size, "filled": False, "opacity": 0.9, "strokeWidth": 0.9}
    return plot.finish(
        marks(targets, "rule", dashed, x=plot.x, x2="x2", y=y),
        marks(filled, "circle", {"size": size, "opacity": 0.55}, **at),
        marks(hollow, "point", ring, **at),
    )


def _met_text(study: Study, tried: dict[str, TriedPoint]) -> str:
    said = []
    for name, found in tried.items():
        if found.target is not None:
            whose = f"{study.quoted_name(name)} " if study.quoted_name(name) else ""
            said.append(f"{whose}{found.over.runs_met} of {found.over.runs}")
    return f"Runs that met the target: {', '.join(said)}" if said else ""


_APART: Final = 9
"""Horizontal distance in pixels between configurations at one number of instances."""
_HEADROOM: Final = 1.06
_ALIKE: Final = 0.005
"""Largest relative difference between frame sizes that are taken as equal; rates are measured over whole frames."""


def overview_chart(way: OneWay, form: Format, *, compares: bool) -> Spec | None:
    """Returns the chart, None where no sum is known; the configuration is named only if ``compares``."""
    names = [name if compares else "sum" for name in way.configurations]
    points: list[dict[str, Any]] = [
        {
            "name": name,
            "instances": count,
            "median": over.median_frames_per_s,
            "least": over.minimum_frames_per_s,
            "most": over.maximum_frames_per_s,
        }
        for configuration, name in zip(way.configurations, names, strict=True)
        for count, over in way.figures_over_runs(configuration).items()
        if over.runs_known
    ]
    targets: list[dict[str, Any]] = [
        {
            "name": f"target, {plain_rate(target.frames_per_s)} each",
            "instances": count,
            "sum": target.for_instances(count),
        }
        for target in way.targets
        for count in way.counts
    ]
    tops = [point["most"] for point in points] + [target["sum"] for target in targets]
    if not points or not any(tops):
        return None
    counts = list(way.counts)
    axis: Spec = {"values": counts, "grid": False, "format": "d", "labelOverlap": True}
    scale = from_to(min(0.5, counts[0] - 0.5), counts[-1] + 0.5)
    x = channel("instances:Q", title="instances at once", axis=axis, scale=scale)
    top = _HEADROOM * max(top for top in tops if top)
    y = {
        "title": "sum of all instances [frames/s]",
        "scale": from_to(0, top),
        "axis": {"tickCount": 6, "labelExpr": PLAIN_NUMBERS},
    }
    lines = list(dict.fromkeys(target["name"] for target in targets))
    domain = [*names, *lines]
    look = {"symbolSize": 90, "symbolOpacity": 1, "symbolStrokeWidth": 2, "symbolDash": [1, 0]}
    legend = legend_of_names(domain, form, **look)
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))] + [INK] * len(lines)
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))] + ["stroke"] * len(lines)
    colour, shape = (told_apart("name", domain, values, legend=legend) for values in (colours, shapes))
    layers = []
    for line in lines:
        of_line = [target for target in targets if target["name"] == line]
        place = {"x": x, "color": colour, "y": channel("sum:Q", **y)}
        layers.append(marks(of_line, "line", {"strokeWidth": 1.5, "strokeDash": [5, 3]}, **place))
        if len(counts) == 1:  # a single point makes no line
            stroke = {"shape": "stroke", "size": 900, "strokeWidth": 1.5, "opacity": 1}
            layers.append(marks(of_line, "point", stroke, **place))
    for number, name in enumerate(names):
        shift = {"xOffset": (number - (len(names) - 1) / 2) * _APART}
        known = [point for point in points if point["name"] == name]
        place, bar = {"x": x, "color": colour}, {"strokeWidth": 6, "opacity": 0.4, **shift}
        dot = {"size": 52, "filled": True, "opacity": 1, **shift}
        layers += [
            marks(known, "rule", bar, **place, y=channel("least:Q", **y), y2="most"),
            marks(known, "point", dot, **place, y=channel("median:Q", **y), shape=shape),
        ]
    of_a_frame = _frame_bytes(way)
    if of_a_frame is None or not form.is_wide:
        return finish_chart(form, *layers)
    # No data uses the right axis: it is the left axis in another unit.
    axis = {
        "orient": "right",
        "grid": False,
        "title": "MB/s (10⁶ bytes)",
        "labelExpr": PLAIN_NUMBERS,
        "tickCount": 6,
    }
    right = channel("bytes:Q", scale=from_to(0, top * of_a_frame / 1e6), axis=axis)
    beside = marks([{"instances": counts[0], "bytes": 0}], "point", {"opacity": 0, "aria": False}, x=x, y=right)
    return finish_chart(form, {"layer": layers}, beside, resolve={"scale": {"y": "independent"}})


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


def _frame_bytes(way: OneWay) -> float | None:
    """Returns the bytes of a frame where all frames have one size, so that an axis in MB/s can be drawn; else None."""
    found = [
        ran.bytes_per_s / ran.figures.sum_frames_per_s
        for ran in way.ran
        if ran.bytes_per_s is not None and ran.figures.sum_frames_per_s
    ]
    return found[0] if found and max(found) - min(found) <= _ALIKE * max(found) else None
