"""The chart of a section: a percentage against a percentage, both from 0 to 100 (RFC 2544 section 26.3).

Only loads that overload a port go further: the axis of the loads ends at the next hundred.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from nicbench.core.result import Result
from nicbench.core.table import Column
from nicbench.report.cells import number_of, text_of, with_unit
from nicbench.report.drawing.charts import DASHES, SHAPES, Format, finished
from nicbench.report.drawing.inline import inline
from nicbench.report.drawing.plots import parted
from nicbench.report.drawing.svg import SERIES
from nicbench.report.section import Section

_HUNDRED = alt.Scale(domain=[0, 100], nice=False)
_TENS = alt.Axis(values=list(range(0, 101, 10)), labelFlush=False)


def curves(section: Section) -> tuple[tuple[Section, str], ...]:
    """The section whole, with no name; where its curve has more lines than there are colours, each value of what is
    first among ``lines`` by itself.
    """
    curve = section.table.curve
    if curve is None:
        return ()
    names = set(_lines([row.result for row in section.rows], curve.lines)) if section.rows else set()
    parts = parted(section, curve.lines[0]) if len(names) > len(SERIES) else ()
    return parts if 1 < len(parts) < len(names) else ((section, ""),)


def curve_chart(section: Section, form: Format) -> dict[str, Any] | None:
    """One line for each combination of the curve's ``lines``; None where the table has no curve or nothing is known."""
    curve = section.table.curve
    if curve is None:
        return None
    known = [row.result for row in section.rows if number_of(row.result, curve.y.value) is not None]
    if not known:
        return None
    points: list[dict[str, Any]] = [
        {"x": number_of(result, curve.x.value), "y": number_of(result, curve.y.value), "line": line}
        for result, line in zip(known, _lines(known, curve.lines), strict=True)
    ]
    names = list(dict.fromkeys(point["line"] for point in points))
    longest = max(map(len, names))
    legend = alt.Legend(
        orient="top",
        title=None,
        columns=max(1, form.columns * 10 // longest),
        symbolSize=70,
        symbolDash=[1, 0],
        labelLimit=0,
    )
    colours = [SERIES[number % len(SERIES)] for number in range(len(names))]
    shapes = [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    dashes = [DASHES[number % len(DASHES)] for number in range(len(names))]
    hundreds = max(1, *(math.ceil(point["x"] / 100.0) for point in points if point["x"] is not None))
    loads = alt.Scale(domain=[0, 100 * hundreds], nice=False)
    steps = alt.Axis(values=list(range(0, 100 * hundreds + 1, 10 * hundreds)), labelFlush=False)
    base = alt.Chart(inline(points)).encode(
        x=alt.X("x:Q", title=_titled(curve.x.head, curve.x.unit), scale=loads, axis=steps),
        y=alt.Y("y:Q", title=_titled(curve.y.head, curve.y.unit), scale=_HUNDRED, axis=_TENS),
        color=alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    )
    line = base.mark_line(strokeWidth=1.6).encode(
        strokeDash=alt.StrokeDash("line:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    )
    dots = base.mark_point(size=52, filled=True, opacity=1).encode(
        shape=alt.Shape("line:N", scale=alt.Scale(domain=names, range=shapes), legend=legend)
    )
    return finished(alt.layer(line, dots), form)


def _lines(results: Sequence[Result], columns: Sequence[Column]) -> list[str]:
    """What tells each result's line from the others: what all have in common is not said."""
    texts = [[with_unit(column, text_of(column, result)) for column in columns] for result in results]
    telling = [number for number, level in enumerate(zip(*texts, strict=True)) if len(set(level)) > 1] or [0]
    return [", ".join(words[number] for number in telling) for words in texts]


def _titled(head: str, unit: str | None) -> str:
    """As in a table's heading: "Load [% of line rate]"."""
    return f"{head} [{unit}]" if unit else head
