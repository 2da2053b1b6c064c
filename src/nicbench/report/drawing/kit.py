"""The chart kit: channels, marks and legends in plain Vega-Lite, with the letters and colours that all charts share."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from nicbench.core.frozen import frozen
from nicbench.core.table import Column
from nicbench.report.drawing.svg import GRID, INK, MUTED, SERIES, units_of
from nicbench.report.glyphs import width, wrap

Spec: TypeAlias = dict[str, Any]
"""A chart of Vega-Lite, or a part of one."""
Rows: TypeAlias = Sequence[Mapping[str, Any]]

SHAPES: Final = ("circle", "triangle-up", "square", "diamond")
DASHES: Final = ([1, 0], [7, 2], [2, 2], [8, 2, 2, 2], [12, 3], [4, 4], [1, 3])
PLAIN_NUMBERS: Final = "replace(format(datum.value, ',~f'), regexp(',', 'g'), '\u202f')"
"""The expression for labels of a logarithmic axis: 0.01, 1, 10 000."""
_TYPES: Final = {"Q": "quantitative", "N": "nominal"}
_FONT: Final = "Helvetica, Arial, sans-serif"
_SYMBOL: Final = 22
"""The pixels of an entry of a legend without its name."""
_BETWEEN: Final = 12
_WIDER: Final = 0.3
"""The share of its width by which a name may be wider in the reader's font than it was measured."""


@frozen
class Format:
    """The width and height of the plot and the size of its letters, in pixels."""

    width: int
    height: int
    font: int
    columns: int

    @property
    def is_wide(self) -> bool:
        """Whether it is that of a page rather than of a phone."""
        return self.width > 500


WIDE: Final = Format(width=880, height=330, font=13, columns=8)
NARROW: Final = Format(width=292, height=270, font=12, columns=3)


def channel(field: str, **properties: Any) -> Spec:
    """Returns how a field is shown: ``channel("rate:Q", title="frame rate [Mpps]")``; the far end of a span has no
    type.
    """
    name, _, kind = field.partition(":")
    return {"field": name, "type": _TYPES[kind], **properties} if kind else {"field": name, **properties}


def told_apart(field: str, names: Sequence[str], values: Sequence[Any], **properties: Any) -> Spec:
    """Returns the channel that gives each name a value: a colour, a shape or a dash; where there are more names than
    values, these repeat.
    """
    chosen = [values[place % len(values)] for place in range(len(names))]
    return channel(f"{field}:N", scale={"domain": list(names), "range": chosen}, **properties)


def from_to(least: float, most: float, **properties: Any) -> Spec:
    """Returns a scale with these ends."""
    return {"domain": [least, most], "nice": False, **properties}


def decades(lowest: int, highest: int) -> list[float]:
    """Returns the powers of ten of a logarithmic axis."""
    return [10.0**decade for decade in range(lowest, highest + 1)]


def title_of(column: Column) -> str:
    """Returns a title as in the heading of a table: "Load [% of line rate]"."""
    return f"{column.head} [{column.unit}]" if column.unit else column.head


def legend(names: Sequence[str], form: Format, **look: Any) -> Spec:
    """Returns a legend in as many columns as fit beside each other in any font: the drawing measures names in a font of
    its own, and in the reader's browser they may be much wider.
    """
    widths = [width(name, form.font) for name in names]
    most = min(len(names), look.get("columns", form.columns))

    def takes(columns: int) -> float:
        return sum(_SYMBOL + max(widths[place::columns]) for place in range(columns)) + _BETWEEN * (columns - 1)

    columns = next((each for each in range(most, 1, -1) if takes(each) <= form.width), 1)
    padding = math.ceil(_WIDER * max(widths)) + _BETWEEN
    return {"orient": "top", "title": None, **look, "columns": columns, "columnPadding": padding}


def legend_of_names(names: Sequence[str], form: Format, **look: Any) -> Spec:
    """Returns the legend of names that others chose: none is cut, and a name that is wider than the chart stands on
    several lines.
    """
    lines = {name: wrap(name, form.width - _SYMBOL, form.font, most=4) for name in names}
    if any(len(parts) > 1 for parts in lines.values()):
        look["labelExpr"] = f"({json.dumps(lines)})[datum.label]"
    return legend(names, form, columns=max(1, form.columns * 10 // max(map(len, names))), labelLimit=0, **look)


def bar_colours(field: str, names: Sequence[str], legend: Spec | None) -> Spec:
    """Returns a colour for each name; where there are more names than colours, these repeat with less strength."""
    found = {"color": told_apart(field, names, SERIES, sort=names, legend=legend)}
    if len(names) > len(SERIES):
        rounds = [1.0 / (1 + number // len(SERIES)) for number in range(len(names))]
        found["opacity"] = told_apart(field, names, rounds, sort=names, legend=legend)
        found["opacity"]["scale"]["type"] = "ordinal"
    return found


def marks(rows: Rows, mark: str, look: Spec | None = None, **encoding: Any) -> Spec:
    """Returns a layer: a mark for each row. A channel is made by ``channel``, or is the name of its field."""
    shown = {name: channel(each) if isinstance(each, str) else each for name, each in encoding.items()}
    return {"data": {"values": list(rows)}, "mark": {"type": mark, **(look or {})}, "encoding": shown}


def finish_chart(form: Format, *layers: Spec, **more: Any) -> Spec:
    """Returns the chart of these layers, with the size and the letters that every chart of the page has."""
    tables: dict[str, Any] = {}
    for _, unit in units_of({"layer": layers}):
        rows = unit["data"]["values"]
        name = next((name for name, known in tables.items() if known == rows), f"data-{len(tables)}")
        tables[name] = rows
        unit["data"] = {"name": name}
    fonts = {"labelFont": _FONT, "labelFontSize": form.font, "labelColor": INK}
    axis = {
        **fonts,
        "titleFont": _FONT,
        "titleFontSize": form.font,
        "titleFontWeight": "normal",
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "titlePadding": 8,
    }
    return {
        **(layers[0] if len(layers) == 1 else {"layer": list(layers)}),
        "datasets": tables,
        "width": form.width,
        "height": form.height,
        "background": "transparent",
        "padding": 4,
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "legend": {**fonts, "columnPadding": 14, "padding": 2, "offset": 10},
        },
        **more,
    }
