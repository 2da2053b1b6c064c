"""What a chart says, read from its specification: key, value and range of every row of its data, in words.

Heads are the titles of the axes, so that a chart need not tell the same twice. Where a channel ``tooltip`` is given,
its first entry is the key and its second the value. A row may say its value itself, as ``words`` ("below 0.41"), and
its range, as ``range``. Layers of text and of backgrounds, and marks with ``aria`` off, say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from nicbench.report.numbers import THIN_SPACE

_DIGITS: Final = 5
Kind = TypeVar("Kind")
_SILENT: Final = frozenset({"text", "rect", "image", "geoshape"})


@dataclass(frozen=True, slots=True)
class Head:
    """The title of a column: "frame rate [Mpps]" is a name and a unit; what follows a comma in the unit explains it."""

    name: str
    unit: str
    explained: str

    @classmethod
    def of(cls, title: str) -> Head:
        """From the title of an axis."""
        name, bracket, unit = title.rstrip("]").partition(" [")
        return cls(name, unit.partition(",")[0], unit) if bracket else cls(title, "", "")

    @property
    def pattern(self) -> str:
        """A line of words, in which "#" stands for the value: "frame rate: # Mpps"."""
        return f"{self.name}: #{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True, slots=True)
class Said:
    """A row in words: of which series, at which key, which value, and from where to where it is known to lie."""

    series: str
    key: str
    value: str
    span: str


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set of a chart and the layers that show it."""

    name: str
    key: Head
    value: Head | None
    is_stacked: bool
    rows: tuple[Said, ...]
    units: tuple[dict[str, Any], ...]


def read(specification: Mapping[str, Any]) -> tuple[DataSet, ...]:
    """The data sets that say something, in the order of the layers. Units are the chart's own dictionaries."""
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = specification.get("datasets", {})
    shown: dict[str, list[dict[str, Any]]] = {}
    for name, unit in units_of(specification):
        if says(unit):
            shown.setdefault(name, []).append(unit)
    found = (_read(name, units, tables.get(name, ())) for name, units in shown.items())
    return tuple(one for one in found if one is not None)


def units_of(chart: Mapping[str, Any], inherited: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every single layer with the name of its data."""
    name = (chart.get("data") or {}).get("name", inherited)
    if "layer" not in chart:
        yield name, dict(chart) if not isinstance(chart, dict) else chart
        return
    for layer in chart["layer"]:
        yield from units_of(layer, name)


def says(unit: Mapping[str, Any]) -> bool:
    """Whether the marks of a layer stand for values."""
    return mark_of(unit) not in _SILENT and (unit.get("mark") or {}).get("aria") is not False


def mark_of(unit: Mapping[str, Any]) -> str:
    """The kind of its marks."""
    return str((unit.get("mark") or {}).get("type", ""))


def places(unit: Mapping[str, Any]) -> tuple[str, str]:
    """The channels of key and value: a bar may stand or lie."""
    encoding = unit["encoding"]
    lies = (encoding.get("y") or {}).get("type") == "nominal" and (encoding.get("x") or {}).get("type") != "nominal"
    return ("y", "x") if lies else ("x", "y")


def number(value: float) -> str:
    """Five significant digits, fewer where the number has no more, whole numbers in full."""
    if value == 0:
        return "0"
    decimals = max(0, min(9, _DIGITS - 1 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    ends = decimals and math.isclose(value, round(value, decimals), rel_tol=1e-9)
    return (text.rstrip("0").rstrip(".") if ends else text).replace(",", THIN_SPACE)


def series_of(sets: Sequence[DataSet]) -> tuple[str, ...]:
    """The names of the series, as the legend has them."""
    occur = dict.fromkeys(said.series for one in sets for said in one.rows if said.series)
    scales = [unit["encoding"].get("color", {}).get("scale") or {} for one in sets for unit in one.units]
    legend = dict.fromkeys(str(name) for scale in scales for name in scale.get("domain", ()))
    return tuple(dict.fromkeys((*(name for name in legend if name in occur), *occur)))


def evenly(rows: Sequence[Kind], most: int) -> list[Kind]:
    """At most so many, evenly chosen, the first and the last among them."""
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
        Said(
            series=str(row.get(series, "")) if series else "",
            key=_text(row.get(key["field"])),
            value=str(row.get("words") or (_text(row.get(value["field"])) if value else "")),
            span=_span(row, bounds),
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
    """From where to where; empty where that is not known, or a point."""
    if "range" in row:
        return str(row["range"])
    if bounds is None or None in (lower := row.get(bounds[0]), upper := row.get(bounds[1])) or lower == upper:
        return ""
    return f"{_text(lower)} to {_text(upper)}"
