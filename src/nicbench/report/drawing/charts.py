"""Intervals that a chart cuts, because drawn whole they would squeeze everything else against an axis.

An arrow marks the end of what is drawn, and the real end stands beside it; the table behind the chart has the whole
interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import altair as alt

from nicbench.core.result import Bounded, Result, number_of
from nicbench.core.table import Goal
from nicbench.core.units import format_bits_per_s
from nicbench.report.cells import factor_of, writer
from nicbench.report.drawing.svg import GRID, INK, MUTED, SERIES, inline, number, units_of
from nicbench.report.glyphs import width, wrap
from nicbench.report.section import Section

CUT_CAPTION: Final = (
    "An interval with an arrow goes on to the number beside it: drawn whole it would squeeze the others."
)
_ARROW_UP: Final = "M0,0.6L0,-1.2M-0.6,-0.4L0,-1.2L0.6,-0.4"
_ARROW_RIGHT: Final = "M-0.6,0L1.2,0M0.4,-0.6L1.2,0L0.4,0.6"
_TALL: Final = 1.5
"""An interval that reaches this multiple of a chart's highest value would squeeze the rest of the chart."""
_CUT: Final = 1.25
"""The multiple of the highest value at which such intervals are cut."""


def cut_intervals(points: Sequence[dict[str, Any]], value: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the points with drawable intervals, and those whose interval is cut, with its real end as ``words``.

    Every point has ``lower`` and ``upper`` beside its ``value``; the real interval of one that is cut is its ``range``.
    """
    highest = max((point[value] for point in points), default=0.0)
    if not any(point["upper"] > _TALL * highest for point in points):
        return list(points), []
    end = max([_CUT * highest, *(point["upper"] for point in points if point["upper"] <= _TALL * highest)])
    drawn = [
        {**point, "upper": end, "range": f"{number(point['lower'])} to {number(point['upper'])}"}
        if point["upper"] > end
        else point
        for point in points
    ]
    cut = [{**point, "end": end, "words": f"to {number(point['upper'])}"} for point in points if point["upper"] > end]
    return drawn, cut


def cut_marks(
    cut: Sequence[dict[str, Any]],
    last: str,
    place: Mapping[str, Any],
    font: int,
    shift: float = 0.0,
    line: int = 0,
) -> list[Any]:
    """Returns an arrow at the end of every interval that is cut, and beside it its real end: on the right, but on the
    left of the ``last`` size, where the chart ends.

    ``place`` has the encodings of the horizontal place and the colour. Ends of several series stand on lines of their
    own: ``line`` counts downwards from 0.
    """
    ends = alt.Chart(inline(list(cut))).encode(y="end:Q", **place)
    arrow = ends.mark_point(
        size=90, filled=False, opacity=1, strokeWidth=1.6, shape=_ARROW_UP, xOffset=shift, clip=False, aria=False
    )
    marks = [arrow]
    for is_last in (False, True):
        points = [point for point in cut if (point["size"] == last) == is_last]
        if points:
            text = alt.Chart(inline(points)).encode(y="end:Q", text="words:N", **place)
            look: dict[str, Any] = (
                {"align": "right", "dx": shift - 7} if is_last else {"align": "left", "dx": shift + 7}
            )
            look["dy"] = line * font
            marks.append(text.mark_text(**look, baseline="middle", fontSize=font - 2, aria=False))
    return marks


def cut_marks_lying(chart: alt.Chart, font: int) -> list[Any]:
    """Returns the same for intervals that lie along the horizontal axis; the real end stands left of the arrow."""
    ends = chart.encode(x="end:Q")
    arrow = ends.mark_point(
        size=90, filled=False, opacity=1, strokeWidth=1.6, shape=_ARROW_RIGHT, clip=False, aria=False
    )
    text = ends.mark_text(align="right", baseline="middle", dx=-7, fontSize=font - 2, aria=False)
    return [arrow, text.encode(text="words:N")]


LINE_RATE = "line rate"
CEILING = "tester's ceiling"
_NEAR = 2.0  # times the highest rate: a reference further away would squeeze the results against the axis
_HEADROOM = 1.06


@dataclass(frozen=True, slots=True)
class Points:
    """The rows of the chart, with rates in ``unit``. ``below`` are the rates of which only an upper bound is known,
    ``cut`` those whose interval goes on above the axis.
    """

    rates: tuple[dict[str, Any], ...]
    below: tuple[dict[str, Any], ...]
    cut: tuple[dict[str, Any], ...]
    bounds: tuple[dict[str, Any], ...]
    top: float
    unit: str

    @property
    def references(self) -> tuple[str, ...]:
        """The names of the references that are drawn."""
        return tuple(dict.fromkeys(bound["goal"] for bound in self.bounds))

    @property
    def goals_with_a_line(self) -> tuple[str, ...]:
        """The names of the goals with at least two points, for a single point makes no line."""
        return _with_a_line(self.rates)


def points_of(section: Section, *, line_rate: bool = False) -> Points | None:
    """Returns the searched rates of a section; the line rate is always among them with ``line_rate``, else only where
    it is near.
    """
    searched = section.table.rates
    if searched is None:
        return None
    columns = {column.value: column for column in section.table.columns if column.aspect == "rate"}
    factor = max((factor_of(column.form) for column in columns.values()), default=1.0)
    unit = next((column.unit for column in columns.values() if factor_of(column.form) == factor), None)
    rates: list[dict[str, Any]] = []
    below: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    for row in section.rows:
        size = row.cells[0]
        for goal in searched.goals:
            value = row.result.values.get(goal.value)
            rate = value if isinstance(value, Bounded) else Bounded(value=number_of(value))
            point = {"size": size, "goal": goal.name, "note": note_of([row.result], goal)}
            if rate.is_only_below and rate.upper is not None:
                words = f"below {writer(columns[goal.value], [rate]).up(rate.upper)}"
                below.append({**point, "rate": rate.upper * factor, "words": words})
            elif rate.value is not None:
                lower = rate.lower if rate.lower is not None else rate.value
                upper = rate.upper if rate.upper is not None else rate.value
                ends = {"lower": lower * factor, "upper": upper * factor}
                rates.append({**point, "rate": rate.value * factor, **ends})
        for name, value_name in ((LINE_RATE, searched.line_rate), (CEILING, searched.ceiling)):
            bound = number_of(row.result.values.get(value_name))
            if bound is not None:
                bounds.append({"size": size, "goal": name, "rate": bound * factor})
    if not rates and not below:
        return None
    rates, cut = cut_intervals(rates, "rate")
    highest = max(*(point["upper"] for point in rates), *(point["rate"] for point in below), 0.0)
    near = [bound for bound in bounds if bound["rate"] <= _NEAR * highest or (line_rate and bound["goal"] == LINE_RATE)]
    top = max(highest, *(bound["rate"] for bound in near), 0.0) * _HEADROOM
    drawn = _with_a_line(near)
    with_a_line = tuple(bound for bound in bounds if bound["goal"] in drawn)
    return Points(tuple(rates), tuple(below), tuple(cut), with_a_line, top, unit or "")


def note_of(results: Iterable[Result], goal: Goal) -> str:
    """The verdict on a rate, and what limits it where that is known; of several runs every one that occurs."""
    behind = tuple(results)
    verdicts = dict.fromkeys(result.verdict.value for result in behind)
    rates = (result.values.get(goal.value) for result in behind)
    limits = dict.fromkeys(rate.limited_by.words for rate in rates if isinstance(rate, Bounded) and rate.limited_by)
    limited = [f"limited by the {' or the '.join(limits)}"] if limits else []
    return ", ".join((*verdicts, *limited))


def _with_a_line(points: tuple[dict[str, Any], ...] | list[dict[str, Any]]) -> tuple[str, ...]:
    """Returns the names that have at least two points."""
    names = [point["goal"] for point in points]
    return tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)


_FONT = "Helvetica, Arial, sans-serif"
_APART = 10  # pixels between the goals of one frame size


@dataclass(frozen=True, slots=True)
class Format:
    """The width and height of the plot and the size of its letters, in pixels."""

    width: int
    height: int
    font: int
    columns: int


WIDE = Format(width=880, height=330, font=13, columns=8)
NARROW = Format(width=292, height=270, font=12, columns=3)


def legend_of(names: Sequence[str], form: Format, **look: Any) -> alt.Legend:
    """Returns the legend of names that others chose: in as many columns as the longest leaves room for, and a name that
    is wider than the chart on several lines, so that none is cut. ``look`` has further properties of the legend.
    """
    lines = {name: wrap(name, form.width - _SYMBOL, form.font, most=4) for name in names}
    if any(len(parts) > 1 for parts in lines.values()):
        look["labelExpr"] = f"({json.dumps(lines)})[datum.label]"
    columns = max(1, form.columns * 10 // max(map(len, names)))
    return alt.Legend(orient="top", title=None, columns=columns, labelLimit=0, **look)


def bar_colours(field: str, names: Sequence[str], legend: alt.Legend | None) -> dict[str, Any]:
    """Returns a colour for each name; where there are more names than colours, the colours repeat with
    less strength.
    """
    colours = alt.Scale(domain=names, range=[SERIES[number % len(SERIES)] for number in range(len(names))])
    found: dict[str, Any] = {"color": alt.Color(f"{field}:N", sort=names, scale=colours, legend=legend)}
    if len(names) > len(SERIES):
        rounds = [1.0 / (1 + number // len(SERIES)) for number in range(len(names))]
        strengths = alt.Scale(type="ordinal", domain=names, range=rounds)
        found["opacity"] = alt.Opacity(f"{field}:N", sort=names, scale=strengths, legend=legend)
    return found


def rates_by_size_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """Returns a chart of the searched rates over frame size with their intervals, and what bounded them where it is
    near. For real links the line rate is always drawn: RFC 2544 section 26.1 asks for it.
    """
    points = points_of(section, line_rate=section.line_rate_is_real)
    if points is None or section.table.rates is None:
        return None
    sizes = [row.cells[0] for row in section.rows]
    names = [goal.name for goal in section.table.rates.goals]
    x = alt.X("size:N", sort=sizes, title="frame size [bytes, with FCS]", axis=alt.Axis(labelAngle=0, grid=False))
    x = x.scale(domain=sizes)
    y = alt.Y("rate:Q", title=f"frame rate [{points.unit}]", scale=alt.Scale(domain=[0, points.top], nice=False))
    others = [*points.references, *([_BELOW] if points.below else [])]
    domain = names + others
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))] + [MUTED] * len(others)
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    shapes += [_ARROW_ALONE if name == _BELOW else "stroke" for name in others]
    legend = alt.Legend(orient="top", title=None, symbolStrokeWidth=2, symbolOpacity=1, columns=form.columns)
    colour = alt.Color("goal:N", scale=alt.Scale(domain=domain, range=colours), legend=legend)
    shape = alt.Shape("goal:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend)
    dashes = [_BOUND_DASHES.get(name, [1, 0]) for name in domain]
    dash = alt.StrokeDash("goal:N", scale=alt.Scale(domain=domain, range=dashes), legend=legend)
    layers: list[Any] = []
    if points.bounds:
        near = alt.Chart(inline(list(points.bounds))).encode(x=x, y=y, color=colour, strokeDash=dash)
        layers.append(near.mark_line(strokeWidth=1.4, clip=True))
    for place, name in enumerate(names):
        # Side by side, so that equal rates do not hide one another.
        shift = (place - (len(names) - 1) / 2) * _APART
        if own := [point for point in points.rates if point["goal"] == name]:
            known = alt.Chart(inline(own)).encode(x=x, color=colour)
            if name in points.goals_with_a_line:
                line = known.mark_line(strokeWidth=1.4, opacity=0.55, xOffset=shift)
                layers.append(line.encode(y=y, strokeDash=dash))
            # The bar of an interval is wide, so that it is visible behind its point even where it is short.
            layers += [
                known.mark_rule(strokeWidth=9, opacity=0.35, xOffset=shift).encode(y="lower:Q", y2="upper:Q"),
                known.mark_point(size=62, filled=True, opacity=1, xOffset=shift).encode(y=y, shape=shape),
            ]
        below = [point for point in points.below if point["goal"] == name]
        if below:
            hollow = alt.Chart(inline(below)).encode(x=x, y=y, color=colour)
            mark = SHAPES[place % len(SHAPES)]
            layers += [
                hollow.mark_point(size=62, filled=False, opacity=1, strokeWidth=1.6, shape=mark, xOffset=shift),
                hollow.mark_point(size=120, filled=False, opacity=1, strokeWidth=1.6, shape=_ARROW, xOffset=shift),
            ]
        cut = [point for point in points.cut if point["goal"] == name]
        if cut:
            layers += cut_marks(cut, sizes[-1], {"x": x, "color": colour}, form.font, shift, place)
    return finish_chart(alt.layer(*layers), form)


def rates_by_size_caption(section: Section) -> str:
    """Returns the caption of the chart of searched rates, which names only what is drawn."""
    plan = section.known.plan
    points = points_of(section, line_rate=section.line_rate_is_real)
    if points is None:
        return ""
    sentences = [f"Highest frame rate by frame size, {section.scope}."]
    if any(point["lower"] < point["upper"] for point in points.rates) or not section.is_imported:
        sentences.append("The broad bar behind a point is its interval.")
    if points.cut:
        sentences.append(CUT_CAPTION)
    if points.below:
        sentences.append("A hollow point with an arrow: no load tried passed, down to this one; the rate is below it.")
    names = []
    if LINE_RATE in points.references:
        nominal = "a nominal " if plan and plan.link_is_nominal else ""
        link = f" of {nominal}{format_bits_per_s(plan.link_bits_per_s)}" if plan and plan.link_bits_per_s else ""
        names.append(f"the line rate{link}")
    if CEILING in points.references:
        names.append("the most the tester itself can send (its ceiling)")
    if names:
        sentences.append(f"Dashed: {' and '.join(names)}.")
    return " ".join(sentences)


def tail_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """Returns a chart of the share of frames slower than a latency, both axes logarithmic, with one line for each frame
    size.
    """
    tails = section.timing.tails if section.timing else ()
    points: list[dict[str, Any]] = [
        {"size": size, "latency": latency_ns / 1e3, "share": 100.0 * share, "order": order}
        for size, tail in tails
        for order, (latency_ns, share) in enumerate(tail)
        if latency_ns > 0
    ]
    if not points:
        return None
    left = 10 ** math.floor(math.log10(min(point["latency"] for point in points)))
    right = 10 ** math.ceil(math.log10(max(point["latency"] for point in points)) + 1e-9)
    decades = math.ceil(-math.log10(min(point["share"] for point in points) / 100.0))
    sizes = [size for size, _ in tails]
    colours = [SERIES[number % len(SERIES)] for number in range(len(sizes))]
    shares = [10.0 ** (2 - decade) for decade in range(decades + 1)]
    latencies = [
        10.0**decade for decade in range(round(math.log10(left)), round(math.log10(max(right, left * 10))) + 1)
    ]
    legend = alt.Legend(orient="top", title=None, columns=form.columns, symbolStrokeWidth=2.5, symbolSize=420)
    chart = (
        alt.Chart(inline(points))
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
                scale=alt.Scale(type="log", domain=[shares[-1], 100], nice=False),
                axis=alt.Axis(values=shares, labelExpr="format(datum.value, '.7~f') + ' %'"),
            ),
            order="order:Q",
            tooltip=[
                alt.Tooltip("latency:Q", title="latency [µs]"),
                alt.Tooltip("share:Q", title="slower than that [% of the frames]"),
            ],
            color=alt.Color("size:N", scale=alt.Scale(domain=sizes, range=colours), legend=legend),
            strokeDash=alt.StrokeDash(
                "size:N", scale=alt.Scale(domain=sizes, range=[DASHES[n % len(DASHES)] for n in range(len(sizes))])
            ),
        )
    )
    return finish_chart(chart, form)


_BOUND_DASHES = MappingProxyType({LINE_RATE: [6, 3], CEILING: [2, 3]})
_BELOW = "below"
SHAPES = ("circle", "triangle-up", "square", "diamond")
_ARROW_ALONE = "M0,-1L0,1M-0.6,0.2L0,1L0.6,0.2"
_ARROW = "M0,0.5L0,2.4M-0.6,1.6L0,2.4L0.6,1.6"
DASHES = ([1, 0], [7, 2], [2, 2], [8, 2, 2, 2], [12, 3], [4, 4], [1, 3])


PLAIN_NUMBERS = "replace(format(datum.value, ',~f'), regexp(',', 'g'), '\u202f')"
"""The expression for labels of a logarithmic axis: 0.01, 1, 10 000."""


def finish_chart(chart: Any, form: Format) -> dict[str, Any]:
    """Returns the chart as a specification, with the size and the letters that every chart of the page has."""
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
    described: dict[str, Any] = styled.to_dict(validate=False)
    for _, unit in units_of(described):
        for channel in unit.get("encoding", {}).values():
            if isinstance(channel, dict) and isinstance(channel.get("legend"), dict):
                names = (channel.get("scale") or {}).get("domain") or ()
                channel["legend"] |= _spread_legend([str(name) for name in names], channel["legend"], form)
    return described


_SYMBOL = 22
"""The pixels of an entry of a legend without its name."""
_BETWEEN = 12
_WIDER = 0.3
"""The share of its width by which a name may be wider in the reader's font than it was measured."""


def _spread_legend(names: Sequence[str], legend: Mapping[str, Any], form: Format) -> dict[str, Any]:
    """Returns the columns and their distance with which the names fit beside each other in any font.

    The drawing measures names in a font of its own; in the reader's browser they may be much wider.
    """
    widths = [width(name, form.font) for name in names]
    if not widths:
        return {}
    most = min(len(names), int(legend.get("columns", form.columns)))
    distance = math.ceil(_WIDER * max(widths)) + _BETWEEN

    def takes(columns: int) -> float:
        return sum(_SYMBOL + max(widths[place::columns]) for place in range(columns)) + _BETWEEN * (columns - 1)

    columns = next((each for each in range(most, 1, -1) if takes(each) <= form.width), 1)
    return {"columns": columns, "columnPadding": distance}
