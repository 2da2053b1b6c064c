"""The charts, each defined once and drawn twice: wide for a screen and paper, narrow for a phone.

Colours are written as stand-ins that ``svg.py`` turns into the page's style variables, so one drawing serves light,
dark and paper. Shapes and dashes differ as well as colours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import altair as alt

from nicbench.report.model import LatencyTable, ThroughputTable
from nicbench.report.svg import GRID, INK, MUTED, SERIES

_FONT = "Helvetica, Arial, sans-serif"
_APART = 10  # pixels between the goals of one frame size
_LINE_RATE_FROM = 2.0  # of the highest rate: a reference further away would press the results into the floor


@dataclass(frozen=True, slots=True)
class Format:
    """Width and height of the plot and the size of its letters, in pixels."""

    width: int
    height: int
    font: int
    columns: int


WIDE = Format(width=880, height=330, font=13, columns=8)
NARROW = Format(width=292, height=270, font=12, columns=3)


def throughput_chart(table: ThroughputTable, form: Format) -> dict[str, Any] | None:
    """NDR and PDR against frame size with their intervals, and what bounded them where it is near."""
    goals = {goal.key: goal.name for goal in table.goals}
    rates: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    for row in table.rows:
        size = str(row.frame_bytes)
        for key, rate in row.rates.items():
            if rate.value is not None:
                point = {"size": size, "goal": goals.get(key, key), "rate": rate.value / 1e6}
                lower = rate.lower if rate.lower is not None else rate.value
                upper = rate.upper if rate.upper is not None else rate.value
                rates.append({**point, "lower": lower / 1e6, "upper": upper / 1e6})
        for name, bound in (("line rate", row.line_rate_frames_per_s), ("tester's ceiling", row.ceiling_frames_per_s)):
            if bound is not None:
                bounds.append({"size": size, "goal": name, "rate": bound / 1e6})
    if not rates:
        return None
    highest = max(max(point["upper"], point["rate"]) for point in rates)
    bounds = [bound for bound in bounds if _is_near(bound["goal"], bounds, highest)]
    top = max([highest, *(bound["rate"] for bound in bounds if bound["rate"] <= _LINE_RATE_FROM * highest)]) * 1.06
    sizes = [str(row.frame_bytes) for row in table.rows]
    names = [goal.name for goal in table.goals]
    x = alt.X("size:N", sort=sizes, title="frame size [bytes, with FCS]", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y("rate:Q", title="frame rate [Mpps]", scale=alt.Scale(domain=[0, top], nice=False))
    domain = names + list(dict.fromkeys(bound["goal"] for bound in bounds))
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))] + [MUTED] * (len(domain) - len(names))
    legend = alt.Legend(orient="top", title=None, symbolStrokeWidth=2, symbolOpacity=1, columns=form.columns)
    colour = alt.Color("goal:N", scale=alt.Scale(domain=domain, range=colours), legend=legend)
    shape = alt.Shape("goal:N", scale=alt.Scale(domain=domain, range=_shapes(len(names), len(domain))), legend=legend)
    dashes = [_BOUND_DASHES.get(name, [1, 0]) for name in domain]
    dash = alt.StrokeDash("goal:N", scale=alt.Scale(domain=domain, range=dashes), legend=legend)
    layers: list[Any] = []
    for number, name in enumerate(names):
        # Side by side, so that equal rates do not hide one another.
        shift = (number - (len(names) - 1) / 2) * _APART
        base = alt.Chart(alt.InlineData(values=[point for point in rates if point["goal"] == name]))
        base = base.encode(x=x, color=colour)
        # An interval's bar is wide: it shall be seen behind its point even where it is as short as it should be.
        layers += [
            base.mark_line(strokeWidth=1.4, opacity=0.55, xOffset=shift).encode(y=y, strokeDash=dash),
            base.mark_rule(strokeWidth=9, opacity=0.35, xOffset=shift).encode(y="lower:Q", y2="upper:Q"),
            base.mark_point(size=62, filled=True, opacity=1, xOffset=shift).encode(y=y, shape=shape),
        ]
    if bounds:
        near = alt.Chart(alt.InlineData(values=bounds)).encode(x=x, y=y, color=colour, strokeDash=dash)
        layers.insert(0, near.mark_line(strokeWidth=1.4, clip=True))
    return _finished(alt.layer(*layers), form)


def tail_chart(table: LatencyTable, form: Format) -> dict[str, Any] | None:
    """The share of frames slower than a latency, both axes logarithmic, one line for each frame size."""
    points: list[dict[str, Any]] = [
        {"size": f"{row.frame_bytes} B", "latency": latency_ns / 1e3, "share": share, "order": order}
        for row in table.rows
        for order, (latency_ns, share) in enumerate(row.tail)
        if latency_ns > 0
    ]
    if not points:
        return None
    left = 10 ** math.floor(math.log10(min(point["latency"] for point in points)))
    right = 10 ** math.ceil(math.log10(max(point["latency"] for point in points)) + 1e-9)
    decades = math.ceil(-math.log10(min(point["share"] for point in points)))
    sizes = [f"{row.frame_bytes} B" for row in table.rows if row.tail]
    colours = [SERIES[number % len(SERIES)] for number in range(len(sizes))]
    shares = [10.0**-decade for decade in range(decades + 1)]
    latencies = [
        10.0**decade for decade in range(round(math.log10(left)), round(math.log10(max(right, left * 10))) + 1)
    ]
    legend = alt.Legend(orient="top", title=None, columns=form.columns, symbolStrokeWidth=2.5, symbolSize=420)
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(strokeWidth=1.8, interpolate="step-after")
        .encode(
            x=alt.X(
                "latency:Q",
                title="latency [µs]",
                scale=alt.Scale(type="log", domain=[latencies[0], latencies[-1]], nice=False),
                axis=alt.Axis(
                    values=latencies,
                    labelExpr="replace(format(datum.value, ',~f'), regexp(',', 'g'), '\u202f')",
                    labelFlush=False,
                ),
            ),
            y=alt.Y(
                "share:Q",
                title="share of frames slower than that",
                scale=alt.Scale(type="log", domain=[shares[-1], 1], nice=False),
                axis=alt.Axis(values=shares, labelExpr="format(datum.value * 100, '.7~f') + ' %'"),
            ),
            order="order:Q",
            color=alt.Color("size:N", scale=alt.Scale(domain=sizes, range=colours), legend=legend),
            strokeDash=alt.StrokeDash(
                "size:N", scale=alt.Scale(domain=sizes, range=[_DASHES[n % len(_DASHES)] for n in range(len(sizes))])
            ),
        )
    )
    return _finished(chart, form)


_BOUND_DASHES = MappingProxyType({"line rate": [6, 3], "tester's ceiling": [2, 3]})
_DASHES = ([1, 0], [7, 2], [2, 2], [8, 2, 2, 2], [12, 3], [4, 4], [1, 3])


def _shapes(goals: int, total: int) -> list[str]:
    known = ("circle", "triangle-up", "square", "diamond")
    return [known[number % len(known)] for number in range(goals)] + ["stroke"] * (total - goals)


def _is_near(name: str, bounds: list[dict[str, Any]], highest: float) -> bool:
    """A line that never comes near the results would show nothing."""
    return any(bound["goal"] == name and bound["rate"] <= _LINE_RATE_FROM * highest for bound in bounds)


def _finished(chart: Any, form: Format) -> dict[str, Any]:
    styled = (
        chart.properties(width=form.width, height=form.height, background="transparent", padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            labelFont=_FONT,
            titleFont=_FONT,
            labelFontSize=form.font,
            titleFontSize=form.font,
            titleFontWeight="normal",
            labelColor=INK,
            titleColor=INK,
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
            titlePadding=8,
        )
        .configure_legend(
            labelFont=_FONT, labelFontSize=form.font, labelColor=INK, columnPadding=14, padding=2, offset=10
        )
    )
    described: dict[str, Any] = styled.to_dict()
    return described
