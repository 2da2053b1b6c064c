"""The charts of a section with frames of several sizes: its searched rates, and the tails of its latencies.

An interval that drawn whole would squeeze everything else against an axis is cut: an arrow marks the end of what is
drawn, and the real end stands beside it; the table behind the chart has the whole interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from nicbench.core.result import Bounded, Result, number_of
from nicbench.core.table import Goal
from nicbench.core.units import format_bits_per_s
from nicbench.report.cells import factor_of, writer
from nicbench.report.drawing.kit import (
    DASHES,
    PLAIN_NUMBERS,
    SHAPES,
    Format,
    Rows,
    Spec,
    channel,
    decades,
    finish_chart,
    from_to,
    legend,
    marks,
    told_apart,
)
from nicbench.report.drawing.svg import MUTED, SERIES, number
from nicbench.report.section import Section

CUT_CAPTION: Final = (
    "An interval with an arrow goes on to the number beside it: drawn whole it would squeeze the others."
)
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


_ARROW_UP: Final = "M0,0.6L0,-1.2M-0.6,-0.4L0,-1.2L0.6,-0.4"
_ARROW_RIGHT: Final = "M-0.6,0L1.2,0M0.4,-0.6L1.2,0L0.4,0.6"
_HOLLOW: Final = {"filled": False, "opacity": 1, "strokeWidth": 1.6}


def cut_marks(
    cut: Sequence[dict[str, Any]], last: str, place: Mapping[str, Any], font: int, shift: float = 0.0, line: int = 0
) -> list[Spec]:
    """Returns an arrow at the end of every interval that is cut, and beside it its real end: on the right, but on the
    left of the ``last`` size, where the chart ends.

    ``place`` has the encodings of the horizontal place and the colour. Ends of several series stand on lines of their
    own: ``line`` counts downwards from 0.
    """
    if not cut:
        return []
    found = [_arrow(cut, _ARROW_UP, {"xOffset": shift}, y="end:Q", **place)]
    for align, dx in (("left", shift + 7), ("right", shift - 7)):
        if points := [point for point in cut if (point["size"] == last) == (align == "right")]:
            look = {"align": align, "dx": dx, "dy": line * font}
            found.append(_end(points, font, look, y="end:Q", **place))
    return found


def cut_marks_lying(cut: Rows, y: Spec, font: int) -> list[Spec]:
    """Returns the same for intervals that lie along the horizontal axis; the real end stands left of the arrow."""
    if not cut:
        return []
    return [
        _arrow(cut, _ARROW_RIGHT, {}, x="end:Q", y=y),
        _end(cut, font, {"align": "right", "dx": -7}, x="end:Q", y=y),
    ]


def _arrow(cut: Rows, shape: str, look: Spec, **place: Any) -> Spec:
    return marks(cut, "point", {**_HOLLOW, "size": 90, "shape": shape, "clip": False, "aria": False, **look}, **place)


def _end(cut: Rows, font: int, look: Spec, **place: Any) -> Spec:
    return marks(
        cut, "text", {"baseline": "middle", "fontSize": font - 2, "aria": False, **look}, **place, text="words:N"
    )


LINE_RATE = "line rate"
CEILING = "tester's ceiling"
_NEAR = 2.0  # times the highest rate: a reference further away would squeeze the results against the axis
_HEADROOM = 1.06


class Points(NamedTuple):
    """The rows of the chart, with rates in ``unit``. ``below`` are the rates of which only an upper bound is known,
    ``cut`` those whose interval goes on above the axis, ``bounds`` the references that are drawn.
    """

    rates: tuple[dict[str, Any], ...]
    below: tuple[dict[str, Any], ...]
    cut: tuple[dict[str, Any], ...]
    bounds: tuple[dict[str, Any], ...]
    top: float
    unit: str


def points_of(section: Section) -> Points | None:
    """Returns the searched rates of a section. The line rate of a real link is always among them, for RFC 2544 section
    26.1 asks for it, else only where it is near.
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
    real = LINE_RATE if section.line_rate_is_real else None
    near = [bound for bound in bounds if bound["rate"] <= _NEAR * highest or bound["goal"] == real]
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


def _with_a_line(points: Rows) -> list[str]:
    """Returns the names that have at least two points, for a single point makes no line."""
    names = [point["goal"] for point in points]
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


_APART = 10  # pixels between the goals of one frame size
_BOUND_DASHES = MappingProxyType({LINE_RATE: [6, 3], CEILING: [2, 3]})
_BELOW = "below"
_ARROW_ALONE = "M0,-1L0,1M-0.6,0.2L0,1L0.6,0.2"
_ARROW = "M0,0.5L0,2.4M-0.6,1.6L0,2.4L0.6,1.6"


def rates_by_size_chart(section: Section, form: Format) -> Spec | None:
    """Returns a chart of the searched rates over frame size with their intervals, and what bounded them where it is
    near.
    """
    points = points_of(section)
    if points is None or section.table.rates is None:
        return None
    sizes = [row.cells[0] for row in section.rows]
    names = [goal.name for goal in section.table.rates.goals]
    x = channel(
        "size:N",
        sort=sizes,
        title="frame size [bytes, with FCS]",
        axis={"labelAngle": 0, "grid": False},
        scale={"domain": sizes},
    )
    y = channel("rate:Q", title=f"frame rate [{points.unit}]", scale=from_to(0, points.top))
    others = [*dict.fromkeys(bound["goal"] for bound in points.bounds), *([_BELOW] if points.below else [])]
    domain = names + others
    known = legend(domain, form, symbolStrokeWidth=2, symbolOpacity=1)
    of_names = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    of_others = [_ARROW_ALONE if name == _BELOW else "stroke" for name in others]
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    colour = told_apart("goal", domain, colours + [MUTED] * len(others), legend=known)
    shape = told_apart("goal", domain, of_names + of_others, legend=known)
    dash = told_apart("goal", domain, [_BOUND_DASHES.get(name, [1, 0]) for name in domain], legend=known)
    layers = []
    if points.bounds:
        look: Spec = {"strokeWidth": 1.4, "clip": True}
        layers.append(marks(points.bounds, "line", look, x=x, y=y, color=colour, strokeDash=dash))
    with_a_line = _with_a_line(points.rates)
    for place, name in enumerate(names):
        # Side by side, so that equal rates do not hide one another.
        shift = {"xOffset": (place - (len(names) - 1) / 2) * _APART}
        own, below, cut = (
            [each for each in rows if each["goal"] == name] for rows in (points.rates, points.below, points.cut)
        )
        if name in with_a_line:
            look = {"strokeWidth": 1.4, "opacity": 0.55, **shift}
            layers.append(marks(own, "line", look, x=x, y=y, color=colour, strokeDash=dash))
        if own:
            # The bar of an interval is wide, so that it is visible behind its point even where it is short.
            bar = {"strokeWidth": 9, "opacity": 0.35, **shift}
            dot = {"size": 62, "filled": True, "opacity": 1, **shift}
            layers += [
                marks(own, "rule", bar, x=x, y="lower:Q", y2="upper", color=colour),
                marks(own, "point", dot, x=x, y=y, color=colour, shape=shape),
            ]
        for size, mark in ((62, SHAPES[place % len(SHAPES)]), (120, _ARROW)) if below else ():
            look = {**_HOLLOW, "size": size, "shape": mark, **shift}
            layers.append(marks(below, "point", look, x=x, y=y, color=colour))
        layers += cut_marks(cut, sizes[-1], {"x": x, "color": colour}, form.font, shift["xOffset"], place)
    return finish_chart(form, *layers)


def rates_by_size_caption(section: Section) -> str:
    """Returns the caption of the chart of searched rates, which names only what is drawn."""
    plan = section.known.plan
    points = points_of(section)
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
    references = {bound["goal"] for bound in points.bounds}
    if LINE_RATE in references:
        nominal = "a nominal " if plan and plan.link_is_nominal else ""
        link = f" of {nominal}{format_bits_per_s(plan.link_bits_per_s)}" if plan and plan.link_bits_per_s else ""
        names.append(f"the line rate{link}")
    if CEILING in references:
        names.append("the most the tester itself can send (its ceiling)")
    if names:
        sentences.append(f"Dashed: {' and '.join(names)}.")
    return " ".join(sentences)


def tail_chart(section: Section, form: Format) -> Spec | None:
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
    left = math.floor(math.log10(min(point["latency"] for point in points)))
    right = math.ceil(math.log10(max(point["latency"] for point in points)) + 1e-9)
    latencies = decades(left, max(right, left + 1))
    shares = decades(2 - math.ceil(-math.log10(min(point["share"] for point in points) / 100.0)), 2)[::-1]
    sizes = [size for size, _ in tails]
    drawn = marks(
        points,
        "line",
        {"strokeWidth": 1.8, "interpolate": "step-after"},
        x=channel(
            "latency:Q",
            title="latency [µs]",
            scale=from_to(latencies[0], latencies[-1], type="log"),
            axis={"values": latencies, "labelExpr": PLAIN_NUMBERS, "labelFlush": False},
        ),
        y=channel(
            "share:Q",
            title="share of frames slower than that",
            scale=from_to(shares[-1], 100, type="log"),
            axis={"values": shares, "labelExpr": "format(datum.value, '.7~f') + ' %'"},
        ),
        order="order:Q",
        tooltip=[
            channel("latency:Q", title="latency [µs]"),
            channel("share:Q", title="slower than that [% of the frames]"),
        ],
        color=told_apart("size", sizes, SERIES, legend=legend(sizes, form, symbolStrokeWidth=2.5, symbolSize=420)),
        strokeDash=told_apart("size", sizes, DASHES),
    )
    return finish_chart(form, drawn)
