"""The chart of the sum of all instances against their number, and the rates of instances that share a bond's port.

The rates of single instances are grouped by how many instances were on the same port of the bond, which explains, for
example, a rate that is half as high.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import altair as alt

from nicbench.report.drawing.charts import PLAIN_NUMBERS, SHAPES, Format, finish_chart, legend_of
from nicbench.report.drawing.svg import INK, SERIES, inline
from nicbench.report.editors.study import OneWay
from nicbench.report.editors.words import plain_rate, rate_decimals, rate_text, share_text
from nicbench.stats.frames import RATE, FilmRun, TriedPoint, trusted_number

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
