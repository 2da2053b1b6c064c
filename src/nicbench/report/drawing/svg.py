"""Turns the specification of a chart into inline SVG that takes its colours from the page, and says what its marks
stand for.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import vl_convert
from markupsafe import escape

from nicbench.core.lists import grouped, without_none
from nicbench.report.numbers import THIN_SPACE

_POINTS: Final = {True: 240, False: 120}
"""The most points that are laid upon all lines of a chart, wide (True) and narrow (False). More points are thinned out,
down to ``_LEAST_POINTS`` of each line.
"""
_LEAST_POINTS: Final = 20
_BROAD: Final = 500
_SAYS, _OF = "says", "of"
_PART: Final = "|"


class SpokenMarks(NamedTuple):
    """What the marks of one chart say; ``heads`` and ``rows`` have an entry for each data set, in parts separated by
    "|".

    The first part of a row is the index of its series in ``series``; the other parts are inserted into the parts of the
    head.
    """

    series: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    across: tuple[bool, ...]
    """Whether all points of a column, which an area fills, say the same."""

    def insert_words(self, drawing: str) -> str:
        """Returns the drawing with the words in place of the names of rows, and the patterns at the groups of marks."""
        drawing = _GROUP.sub(lambda found: f"{found[1]}{self._head(int(found[2]))}>", drawing)
        drawing = _UNSEEN.sub(lambda found: f'{found[1]} data-points="{self._points(found[2])}"/>', drawing)
        drawing = _ROW.sub(lambda found: f'data-says="{self._row(found)}"', drawing)
        return _LINE.sub(r'data-of="\1"', drawing)

    def _head(self, number: int) -> str:
        across = ' data-across=""' if self.across[number] else ""
        return f' data-heads="{escape(self.heads[number])}"{across}'

    def _row(self, found: re.Match[str]) -> str:
        return str(escape(self.rows[int(found[1])][int(found[2])]))

    def _points(self, marks: str) -> str:
        """Returns a line for each point, beginning with its position; that takes a tenth of the size of marks."""
        return "\n".join(
            f"{place[1]}|{self._row(row)}"
            for row, place in zip(_ROW.finditer(marks), _PLACE.finditer(marks), strict=True)
        )


_ROW = re.compile(r'aria-label="says:(\d+)\.(\d+)"')
_LINE = re.compile(r'aria-label="of:(\d+)"')
_PLACE = re.compile(r"translate\(([^)]*)\)")
_GROUP = re.compile(r'(<g class="mark-[a-z]+ role-mark[^>]*)>(?=<[a-z]+ aria-label="says:(\d+)\.)')
_UNSEEN = re.compile(r'(<g class="mark-symbol role-mark[^>]*)>((?:<path aria-label="says:[^>]* opacity="0"/>)+)</g>')


def telling(specification: Mapping[str, Any]) -> tuple[dict[str, Any], SpokenMarks]:
    """Returns the chart with marks that name their rows, and what these rows say."""
    chart = copy.deepcopy({key: value for key, value in specification.items() if key != "datasets"})
    chart["datasets"] = dict(specification.get("datasets", {}))
    for _, unit in units_of(chart):
        if not says(unit):
            unit["mark"]["aria"] = False
    sets = read(chart)
    series = series_of(sets)
    most = max(_LEAST_POINTS, _POINTS[chart.get("width", 0) > _BROAD] // max(1, len(series)))
    told = [_tell(one, chart["datasets"], series, number, most) for number, one in enumerate(sets)]
    for _, unit in units_of(chart):
        unit["encoding"].pop("tooltip", None)
    heads, rows, across = zip(*told, strict=True) if told else ((), (), ())
    return chart, SpokenMarks(tuple(_plain(name) for name in series), heads, rows, across)


def _tell(
    one: DataSet, tables: dict[str, Any], series: Sequence[str], number: int, most: int
) -> tuple[str, tuple[str, ...], bool]:
    """Names the rows of a data set in its marks; returns the pattern, the words of each row, and whether
    it is stacked.
    """
    plain = list(tables[one.name])
    tables[one.name] = [
        {**row, _SAYS: f"{_SAYS}:{number}.{place}", _OF: f"{_OF}:{series.index(said.series)}" if said.series else ""}
        for place, (row, said) in enumerate(zip(plain, one.rows, strict=True))
    ]
    marks = [unit for unit in one.units if mark_of(unit) not in ("line", "area", "rule") or unit["mark"].get("point")]
    rules = [unit for unit in one.units if mark_of(unit) == "rule"] if one.value is None else []
    carrier = next(iter((*reversed(marks), *rules)), None)
    for unit in one.units:
        unit["encoding"]["description"] = {"field": _SAYS if unit is carrier else _OF, "type": "nominal"}
    head = _PART.join(("", one.key.pattern, *_value_patterns(one)))
    if carrier is not None:
        return head, tuple(_words(one, place, series) for place in range(len(plain))), False
    base = next((unit for unit in one.units if "y2" not in unit["encoding"]), one.units[-1])
    if not one.is_stacked:
        _lay_points(base, tables, f"{one.name} points", _thin_out(tables[one.name], one, most))
        return head, tuple(_words(one, place, series) for place in range(len(plain))), False
    names = list(dict.fromkeys(said.series for said in one.rows))
    unit_of = f" {one.value.unit}" if one.value and one.value.unit else ""
    of_key, of_value = (base["encoding"][channel]["field"] for channel in places(base))
    tops: dict[str, dict[str, Any]] = {}  # the point at the top of the stack at each key
    said_at: dict[str, dict[str, str]] = {}
    for row, said in zip(plain, one.rows, strict=True):
        top = tops.setdefault(said.key, {of_key: row[of_key], of_value: 0.0, _SAYS: f"{_SAYS}:{number}.{len(tops)}"})
        top[of_value] += row[of_value]
        said_at.setdefault(said.key, {})[said.series] = said.value
    points = list(tops.values())
    _lay_points(base, tables, f"{one.name} points", evenly(points, most * len(names)))
    head = _PART.join(("", one.key.pattern, *(f"{_plain(name)}: #{unit_of}" for name in names)))
    return (
        head,
        tuple(_PART.join(("", key, *(values.get(name, "") for name in names))) for key, values in said_at.items()),
        True,
    )


def _lay_points(unit: dict[str, Any], tables: dict[str, Any], name: str, rows: list[dict[str, Any]]) -> None:
    """Changes a layer in place: invisible points that carry the words are laid upon its own marks."""
    tables[name] = rows
    own = {key: unit.pop(key) for key in ("mark", "encoding", "transform") if key in unit}
    encoding = {channel: copy.deepcopy(own["encoding"][channel]) for channel in ("x", "y")}
    for channel in encoding.values():
        if channel.get("stack"):
            channel["stack"] = None
    encoding["description"] = {"field": _SAYS, "type": "nominal"}
    mark = {"type": "point", "opacity": 0, "size": 1, "clip": bool(own["mark"].get("clip"))}  # else the drawing grows
    points = {"data": {"name": name}, "mark": mark, "encoding": encoding}
    unit["layer"] = [own, points]


def _thin_out(rows: Sequence[dict[str, Any]], one: DataSet, most: int) -> list[dict[str, Any]]:
    kept = []
    for name in dict.fromkeys(said.series for said in one.rows):
        kept += evenly([row for row, said in zip(rows, one.rows, strict=True) if said.series == name], most)
    return kept


def _value_patterns(one: DataSet) -> tuple[str, ...]:
    if one.value is None:
        return ()
    span = f"from #{f' {one.value.unit}' if one.value.unit else ''}"
    if any(said.note for said in one.rows):
        return one.value.pattern, span, "#"
    return (one.value.pattern, span) if any(said.span for said in one.rows) else (one.value.pattern,)


def _words(one: DataSet, place: int, series: Sequence[str]) -> str:
    said = one.rows[place]
    parts = [str(series.index(said.series)) if said.series else "", said.key, said.value, said.span, said.note]
    return _PART.join(_plain(part) for part in parts).rstrip(_PART)


def _plain(text: str) -> str:
    return text.replace(_PART, "/")


# Stand-ins: colours that occur nowhere else, replaced by variables of style.css. The second value serves where a
# drawing is copied out of its page. Series: Okabe and Ito's palette for colour-blind readers, its yellow darkened.
INK = "#010203"
MUTED = "#040506"
GRID = "#070809"
SERIES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06", "#0a0b07")
_VARIABLES = {
    INK: "var(--ink, #1a1f26)",
    MUTED: "var(--muted, #68717d)",
    GRID: "var(--grid, #e3e6ea)",
    **{stand_in: f"var(--series-{number}, #0072b2)" for number, stand_in in enumerate(SERIES, start=1)},
}


_FONT = "Helvetica, Arial, sans-serif"
_NOTHING = re.compile(
    r'<path class="background" aria-hidden="true" d="[^"]*"(?: pointer-events="none")?/>'
    r'|<path class="foreground" aria-hidden="true" d="[^"]*"(?: pointer-events="none")? display="none"/>'
    rf'| opacity="1"| pointer-events="none"| font-family="{_FONT}"'
)
_PLACES = re.compile(r"translate\((-?[0-9.]+),(-?[0-9.]+)\)")


has_drawn = False
"""Whether this process has drawn a chart: it then has threads of V8, without which a fork of it would wait for ever."""


def identifiers() -> Iterator[int]:
    """Returns numbers that keep the ids of several drawings in one page apart."""
    return itertools.count(1)


def svg(specification: dict[str, Any], number: int, label: str) -> str:
    """Returns the drawing as inline SVG; ``number`` makes its ids unique in the page, and ``label`` (escaped) describes
    it.
    """
    global has_drawn  # noqa: PLW0603 - the threads are the process's
    chart, told = telling(specification)
    has_drawn = True
    drawing = vl_convert.vegalite_to_svg(chart, vl_version="6.4")
    for stand_in, variable in _VARIABLES.items():
        drawing = drawing.replace(stand_in, variable).replace(_as_rgb(stand_in), variable)
    drawing = _PLACES.sub(_round_numbers, _rename_ids(drawing, number))
    # Marks carry roles of their own for screen readers; until the page's script runs, the drawing is one image.
    drawing = re.sub(r' (aria-[a-z]+|role)="[^"]*"', "", told.insert_words(_light(drawing)))
    series = f' data-series="{escape("|".join(told.series))}"' if len(told.series) > 1 else ""
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{label}"{series} font-family="{_FONT}" ', 1)


def _light(drawing: str) -> str:
    """Returns the drawing without what shows nothing: backgrounds without colour, and attributes with their default
    value.
    """
    return _NOTHING.sub("", drawing)


def _rename_ids(drawing: str, number: int) -> str:
    """Gives ids that depend on the page alone, because the library counts its ids over the whole process."""
    names = dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawing))
    ours = {name: f"d{number}-{place}" for place, name in enumerate(names, start=1)}
    drawing = re.sub(r'\bid="([^"]+)"', lambda found: f'id="{ours[found[1]]}"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{ours[found[1]]})", drawing)
    return re.sub(r'href="#([^"]+)"', lambda found: f'href="#{ours[found[1]]}"', drawing)


def _round_numbers(found: re.Match[str]) -> str:
    """Rounds a position to hundredths of a pixel, which halves the size of a file with thousands of points."""
    x, y = (f"{float(text):.2f}".rstrip("0").rstrip(".") for text in found.groups())
    return f"translate({x},{y})"


def _as_rgb(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


_DIGITS: Final = 5
Kind = TypeVar("Kind")
_SILENT: Final = frozenset({"text", "rect", "image", "geoshape"})


class Head(NamedTuple):
    """The title of a column: "frame rate [Mpps]" is a name and a unit; what follows a comma in the unit explains it."""

    name: str
    unit: str
    explained: str

    @classmethod
    def of(cls, title: str) -> Head:
        """Returns the heading for the title of an axis."""
        name, bracket, unit = title.rstrip("]").partition(" [")
        return cls(name, unit.partition(",")[0], unit) if bracket else cls(title, "", "")

    @property
    def pattern(self) -> str:
        """A line of words in which "#" stands for the value: "frame rate: # Mpps"."""
        return f"{self.name}: #{f' {self.unit}' if self.unit else ''}"


class SpokenRow(NamedTuple):
    """A row in words: its series, its key, its value, the range in which the value is known to lie, and a note."""

    series: str
    key: str
    value: str
    span: str
    note: str = ""


class DataSet(NamedTuple):
    """One data set of a chart and the layers that show it."""

    name: str
    key: Head
    value: Head | None
    is_stacked: bool
    rows: tuple[SpokenRow, ...]
    units: tuple[dict[str, Any], ...]


def read(specification: Mapping[str, Any]) -> tuple[DataSet, ...]:
    """Returns the data sets that say something, in the order of the layers. ``units`` of a data set are the chart's own
    dictionaries, not copies.
    """
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = specification.get("datasets", {})
    shown = grouped((name, unit) for name, unit in units_of(specification) if says(unit))
    found = (_read(name, units, tables.get(name, ())) for name, units in shown.items())
    return tuple(without_none(found))


def units_of(chart: Mapping[str, Any], inherited: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every single layer with the name of its data set."""
    name = (chart.get("data") or {}).get("name", inherited)
    if "layer" not in chart:
        yield name, dict(chart) if not isinstance(chart, dict) else chart
        return
    for layer in chart["layer"]:
        yield from units_of(layer, name)


def says(unit: Mapping[str, Any]) -> bool:
    """Returns whether the marks of a layer stand for values."""
    return mark_of(unit) not in _SILENT and (unit.get("mark") or {}).get("aria") is not False


def mark_of(unit: Mapping[str, Any]) -> str:
    """Returns the kind of a layer's marks."""
    return str((unit.get("mark") or {}).get("type", ""))


def places(unit: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the channels of key and value: ("x", "y"), or ("y", "x") for horizontal bars."""
    encoding = unit["encoding"]
    lies = (encoding.get("y") or {}).get("type") == "nominal" and (encoding.get("x") or {}).get("type") != "nominal"
    return ("y", "x") if lies else ("x", "y")


def number(value: float) -> str:
    """Writes a number with five significant digits, fewer where it has no more, and whole numbers in full."""
    if value == 0:
        return "0"
    decimals = max(0, min(9, _DIGITS - 1 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    ends = decimals and math.isclose(value, round(value, decimals), rel_tol=1e-9)
    return (text.rstrip("0").rstrip(".") if ends else text).replace(",", THIN_SPACE)


def series_of(sets: Sequence[DataSet]) -> tuple[str, ...]:
    """Returns the names of the series in the order of the legend."""
    occur = dict.fromkeys(said.series for one in sets for said in one.rows if said.series)
    scales = [unit["encoding"].get("color", {}).get("scale") or {} for one in sets for unit in one.units]
    legend = dict.fromkeys(str(name) for scale in scales for name in scale.get("domain", ()))
    return tuple(dict.fromkeys((*(name for name in legend if name in occur), *occur)))


def evenly(rows: Sequence[Kind], most: int) -> list[Kind]:
    """Returns at most ``most`` rows, evenly chosen, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[place * (len(rows) - 1) // (most - 1)] for place in range(most)]


def _read(name: str, units: list[dict[str, Any]], rows: Sequence[Mapping[str, Any]]) -> DataSet | None:
    key = value = bounds = series = None
    stacked = False
    for unit in units:
        encoding = unit["encoding"]
        of_key, of_value = places(unit)
        telling = encoding.get("tooltip")
        telling = [telling] if isinstance(telling, dict) else telling
        ends = encoding.get(f"{of_value}2") or {}
        if ends.get("field"):
            bounds = (encoding[of_value]["field"], ends["field"])
        elif encoding.get(of_value, {}).get("field"):
            value = telling[1] if telling and len(telling) > 1 else encoding[of_value]
            stacked = stacked or bool(encoding[of_value].get("stack"))
        key = key or (telling[0] if telling else encoding.get(of_key))
        series = series or (encoding.get("color") or {}).get("field")
    if not key or not key.get("field") or (value is None and bounds is not None):
        return None
    told = tuple(
        SpokenRow(
            series=str(row.get(series, "")) if series else "",
            key=_text(row.get(key["field"])),
            value=str(row.get("words") or (_text(row.get(value["field"])) if value else "")),
            span=_span(row, bounds),
            note=str(row.get("note") or ""),
        )
        for row in rows
    )
    return DataSet(name, _head(key), _head(value) if value else None, stacked, told, tuple(units)) if told else None


def _head(channel: Mapping[str, Any]) -> Head:
    return Head.of(str(channel.get("title") or channel["field"]))


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return number(value)


def _span(row: Mapping[str, Any], bounds: tuple[str, str] | None) -> str:
    """Returns the range of a row in words; empty where it is unknown or a single point."""
    if "range" in row:
        return str(row["range"])
    if bounds is None or None in (lower := row.get(bounds[0]), upper := row.get(bounds[1])) or lower == upper:
        return ""
    return f"{_text(lower)} to {_text(upper)}"
