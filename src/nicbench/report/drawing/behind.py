"""The table behind a chart: its numbers under the heads of its axes, folded away until somebody asks.

Series stand side by side where they share their keys, else below one another. Long tables are thinned, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup, escape

from nicbench.report.drawing.reading import Head, Said, evenly, read, series_of
from nicbench.report.numbers import UNKNOWN, whole

_MOST_ROWS: Final = 140
_LEAST_OF_A_SERIES: Final = 12
_ABREAST: Final = 8
"""More series side by side are no table that anybody reads."""
_SHARED: Final = 0.6
"""So many of the cells are filled at least, where series stand side by side."""


def numbers_behind(specification: Mapping[str, Any], label: str, source: str, name: str = "") -> Markup:
    """The tables of a chart; ``source`` is the file of the run folder that has what is left out here."""
    groups: dict[tuple[Head, Head | None], list[Said]] = {}
    sets = read(specification)
    order = ("", *series_of(sets))
    for one in sets:
        groups.setdefault((one.key, one.value), []).extend(one.rows)
    tables = [
        Markup('<div class="scroll result"><table><caption class="caption">{}</caption>{}</table></div>').format(
            _caption(label if number == 0 else f"{label}, further", rows, shown, source), table
        )
        for number, ((key, value), rows) in enumerate(groups.items())
        for table, shown in (_table(key, value, sorted(rows, key=lambda said: order.index(said.series))),)
    ]
    if not tables:
        return Markup("")
    summary = f"The numbers of this chart{f': {name}' if name else ''}"
    return Markup('<details class="numbers"><summary>{}</summary>{}</details>').format(summary, Markup("").join(tables))


def _table(key: Head, value: Head | None, rows: Sequence[Said]) -> tuple[Markup, int]:
    """The inside of a table, and how many of the rows are in it."""
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
) -> tuple[Markup, int]:
    kept = evenly(list(by_key), _MOST_ROWS)
    over = Markup('<tr class="over"><td></td><th scope="colgroup" colspan="{}">{}</th></tr>')
    heads = Markup("<tr>{}</tr>").format(_cells("col", (_titled(key), *series)))
    body = [
        Markup("<tr>{}{}</tr>").format(_cells("row", (one,)), _values([by_key[one].get(name) for name in series]))
        for one in kept
    ]
    table = Markup("<thead>{}{}</thead><tbody>{}</tbody>").format(
        over.format(len(series), _titled(value)), heads, Markup("").join(body)
    )
    return table, sum(len(by_key[one]) for one in kept)


def _one_below_another(
    key: Head, value: Head | None, series: Sequence[str], rows: Sequence[Said]
) -> tuple[Markup, int]:
    each = max(_LEAST_OF_A_SERIES, _MOST_ROWS // len(series))
    kept = [said for name in series for said in evenly([row for row in rows if row.series == name], each)]
    named = any(series)
    heads = Markup("").join(
        Markup('<th scope="col">{}</th>').format(text)
        for text in (*(["Series"] if named else []), _titled(key), *([_titled(value)] if value else []))
    )
    body = [
        Markup("<tr>{}{}</tr>").format(
            _cells("row", (said.series,)) + Markup("<td>{}</td>").format(said.key)
            if named
            else _cells("row", (said.key,)),
            _values([said]) if value else "",
        )
        for said in kept
    ]
    return Markup("<thead><tr>{}</tr></thead><tbody>{}</tbody>").format(heads, Markup("").join(body)), len(kept)


def _caption(label: str, rows: Sequence[Said], shown: int, source: str) -> str:
    if shown == len(rows):
        return label
    return f"{label}: {whole(shown)} of {whole(len(rows))} points, evenly chosen. The run folder has all, in {source}."


def _titled(head: Head) -> Markup:
    return Markup("{}<br>[{}]").format(head.name, head.explained) if head.unit else escape(head.name)


def _cells(scope: str, texts: Sequence[str]) -> Markup:
    return Markup("").join(Markup('<th scope="{}">{}</th>').format(scope, text) for text in texts)


def _values(found: Sequence[Said | None]) -> Markup:
    return Markup("").join(Markup("<td>{}</td>").format(UNKNOWN if said is None else _value(said)) for said in found)


def _value(said: Said) -> Markup:
    if not said.span:
        return escape(said.value)
    return Markup('{}<br><span class="caption">{}</span>').format(said.value, said.span)
