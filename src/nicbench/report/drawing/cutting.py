"""Intervals that a chart cuts, because drawn whole they would squeeze everything else against an axis.

An arrow marks the end of what is drawn, and the real end stands beside it; the table behind the chart has the whole
interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from nicbench.report.drawing.behind import number
from nicbench.report.drawing.svg import inline

CUT_CAPTION: Final = (
    "An interval with an arrow goes on to the number beside it: drawn whole it would squeeze the others."
)
_ARROW_UP: Final = "M0,0.6L0,-1.2M-0.6,-0.4L0,-1.2L0.6,-0.4"
_ARROW_RIGHT: Final = "M-0.6,0L1.2,0M0.4,-0.6L1.2,0L0.4,0.6"
_TALL: Final = 1.5
"""An interval that reaches so many times the highest value of a chart would squeeze the rest of it."""
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
