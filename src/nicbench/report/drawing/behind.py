"""What a chart says, read from its specification, and the table behind it, folded until the reader opens it.

The key, value and range of every row of the data are put in words. Headings are the titles of the axes, so that a chart
need not repeat them. Where a channel ``tooltip`` is given, its first entry is the key and its second the value. A row
may give its value in words itself, as ``words`` ("below 0.41"), its range, as ``range``, and its verdict and what
limits it, as ``note``. Layers of text and of backgrounds, and marks with ``aria`` off, say nothing. In the table,
series stand side by side where they share their keys, else below one another. Long tables are thinned, and say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from nicbench.report.document.blocks import Cell, FoldedBlocks, Table
from nicbench.report.document.inlines import BREAK, inlines, small
from nicbench.report.document.tables import NOTHING, cell, head, table
from nicbench.report.document.tables import name as name_cell
from nicbench.report.numbers import THIN_SPACE, UNKNOWN, whole

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
        """Returns the heading for the title of an axis."""
        name, bracket, unit = title.rstrip("]").partition(" [")
        return cls(name, unit.partition(",")[0], unit) if bracket else cls(title, "", "")

    @property
    def pattern(self) -> str:
        """A line of words in which "#" stands for the value: "frame rate: # Mpps"."""
        return f"{self.name}: #{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True, slots=True)
class SpokenRow:
    """A row in words: its series, its key, its value, the range in which the value is known to lie, and a note."""

    series: str
    key: str
    value: str
    span: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class DataSet:
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
    shown: dict[str, list[dict[str, Any]]] = {}
    for name, unit in units_of(specification):
        if says(unit):
            shown.setdefault(name, []).append(unit)
    found = (_read(name, units, tables.get(name, ())) for name, units in shown.items())
    return tuple(one for one in found if one is not None)


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


_MOST_ROWS: Final = 140
_LEAST_OF_A_SERIES: Final = 12
_ABREAST: Final = 8
"""The most series that stand side by side; nobody reads a table with more."""
_SHARED: Final = 0.6
"""The least share of filled cells at which series stand side by side."""


def numbers_behind(specification: Mapping[str, Any], label: str, source: str, name: str = "") -> FoldedBlocks | None:
    """Returns the tables behind a chart; ``source`` is the file of the run folder that has what is left out of them."""
    groups: dict[tuple[Head, Head | None], list[SpokenRow]] = {}
    sets = read(specification)
    order = ("", *series_of(sets))
    for one in sets:
        groups.setdefault((one.key, one.value), []).extend(one.rows)
    tables = []
    for number, ((key, value), rows) in enumerate(groups.items()):
        found, shown = _table(key, value, sorted(rows, key=lambda said: order.index(said.series)))
        called = label if number == 0 else f"{label}, further"
        tables.append(replace(found, caption=inlines(_caption(called, rows, shown, source))))
    if not tables:
        return None
    summary = f"The numbers of this chart{f': {name}' if name else ''}"
    return FoldedBlocks(inlines(summary), tuple(tables), "numbers")


def _table(key: Head, value: Head | None, rows: Sequence[SpokenRow]) -> tuple[Table, int]:
    """Returns a table, and how many of the rows it holds."""
    series = list(dict.fromkeys(said.series for said in rows))
    by_key: dict[str, dict[str, SpokenRow]] = {}
    for said in rows:
        by_key.setdefault(said.key, {})[said.series] = said
    filled = sum(map(len, by_key.values()))
    if value and 2 <= len(series) <= _ABREAST and filled == len(rows) >= _SHARED * len(by_key) * len(series):
        return _abreast(key, value, series, by_key)
    return _one_below_another(key, value, series, rows)


def _abreast(
    key: Head, value: Head, series: Sequence[str], by_key: Mapping[str, Mapping[str, SpokenRow]]
) -> tuple[Table, int]:
    kept = evenly(list(by_key), _MOST_ROWS)
    over = (NOTHING, head(value.name, value.explained, columns=len(series)))
    heads = (_titled(key), *map(_series_head, series))
    body = ((name_cell(one), *(_value(by_key[one].get(name)) for name in series)) for one in kept)
    return table((over, heads), body, "result"), sum(len(by_key[one]) for one in kept)


def _one_below_another(
    key: Head, value: Head | None, series: Sequence[str], rows: Sequence[SpokenRow]
) -> tuple[Table, int]:
    each = max(_LEAST_OF_A_SERIES, _MOST_ROWS // len(series))
    kept = [said for name in series for said in evenly([row for row in rows if row.series == name], each)]
    named = any(series)
    heads = (*((head("Series"),) if named else ()), _titled(key), *((_titled(value),) if value else ()))
    body = (
        (
            *((name_cell(said.series), cell(said.key)) if named else (name_cell(said.key),)),
            *((_value(said),) if value else ()),
        )
        for said in kept
    )
    return table((heads,), body, "result"), len(kept)


def _caption(label: str, rows: Sequence[SpokenRow], shown: int, source: str) -> str:
    if shown == len(rows):
        return label
    return f"{label}: {whole(shown)} of {whole(len(rows))} points, evenly chosen. The run folder has all, in {source}."


def _titled(title: Head) -> Cell:
    return head(title.name, title.explained if title.unit else None)


def _series_head(series: str) -> Cell:
    return Cell(inlines(series), is_head=True)


def _value(said: SpokenRow | None) -> Cell:
    if said is None:
        return cell(UNKNOWN)
    more = [part for word in (said.span, said.note) if word for part in (BREAK, small(word))]
    return cell(said.value, *more)
