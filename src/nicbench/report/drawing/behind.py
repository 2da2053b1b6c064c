"""The table behind a chart: its numbers under the heads of its axes, folded away until somebody asks.

Series stand side by side where they share their keys, else below one another. Long tables are thinned, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nicbench.report.document.blocks import Cell, Folded, Table
from nicbench.report.document.inlines import BREAK, inlines, small
from nicbench.report.document.tables import NOTHING, cell, head, table
from nicbench.report.document.tables import name as name_cell
from nicbench.report.drawing.reading import Head, Said, evenly, read, series_of
from nicbench.report.numbers import UNKNOWN, whole

_MOST_ROWS: Final = 140
_LEAST_OF_A_SERIES: Final = 12
_ABREAST: Final = 8
"""More series side by side are no table that anybody reads."""
_SHARED: Final = 0.6
"""So many of the cells are filled at least, where series stand side by side."""


def numbers_behind(specification: Mapping[str, Any], label: str, source: str, name: str = "") -> Folded | None:
    """The tables of a chart; ``source`` is the file of the run folder that has what is left out here."""
    groups: dict[tuple[Head, Head | None], list[Said]] = {}
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
    return Folded(inlines(summary), tuple(tables), "numbers")


def _table(key: Head, value: Head | None, rows: Sequence[Said]) -> tuple[Table, int]:
    """A table, and how many of the rows are in it."""
    series = list(dict.fromkeys(said.series for said in rows))
    by_key: dict[str, dict[str, Said]] = {}
    for said in rows:
        by_key.setdefault(said.key, {})[said.series] = said
    filled = sum(map(len, by_key.values()))
    if value and 2 <= len(series) <= _ABREAST and filled == len(rows) >= _SHARED * len(by_key) * len(series):
        return _abreast(key, value, series, by_key)
    return _one_below_another(key, value, series, rows)


def _abreast(
    key: Head, value: Head, series: Sequence[str], by_key: Mapping[str, Mapping[str, Said]]
) -> tuple[Table, int]:
    kept = evenly(list(by_key), _MOST_ROWS)
    over = (NOTHING, head(value.name, value.explained, columns=len(series)))
    heads = (_titled(key), *map(_series_head, series))
    body = ((name_cell(one), *(_value(by_key[one].get(name)) for name in series)) for one in kept)
    return table((over, heads), body, "result"), sum(len(by_key[one]) for one in kept)


def _one_below_another(key: Head, value: Head | None, series: Sequence[str], rows: Sequence[Said]) -> tuple[Table, int]:
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


def _caption(label: str, rows: Sequence[Said], shown: int, source: str) -> str:
    if shown == len(rows):
        return label
    return f"{label}: {whole(shown)} of {whole(len(rows))} points, evenly chosen. The run folder has all, in {source}."


def _titled(title: Head) -> Cell:
    return head(title.name, title.explained if title.unit else None)


def _series_head(series: str) -> Cell:
    return Cell(inlines(series), is_head=True)


def _value(said: Said | None) -> Cell:
    if said is None:
        return cell(UNKNOWN)
    return cell(said.value, BREAK, small(said.span)) if said.span else cell(said.value)
