"""The table with a row for each frame size that ends a run: columns of several tests, as their methods choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nicbench.cli.fitting import Shown, escaped
from nicbench.core.result import Result, ResultVerdict
from nicbench.core.table import Column
from nicbench.report.cells import number_of, texts, value_of
from nicbench.report.section import Section
from nicbench.report.tables import configuration_of

_RANKS: Final = {True: 0, False: 2}


@dataclass(frozen=True, slots=True)
class _Point:
    """A row: the frame size of a configuration, and the result of each kind of table there, by its order."""

    size: str
    configuration: str
    of: dict[int, Result]


def overview_columns(sections: Sequence[Section], verdict_words: Callable[[ResultVerdict], str]) -> list[Shown]:
    """The columns of all sections joined by frame size; of several loads the highest; main ones have room first."""
    kinds = _by_method(sections)
    points = _points(kinds)
    several = len({point.configuration for point in points}) > 1
    shown = [Shown(escaped("frame", "[bytes]"), escaped(*(point.size for point in points)), rank=0)]
    if several:
        names = escaped(*(point.configuration for point in points))
        shown.insert(0, Shown(escaped("", "configuration"), names, rank=0, right=False))
    for number, members in enumerate(kinds):
        results = [point.of.get(number) for point in points]
        for column in members[0].table.overview:
            known = [result for result in results if result is not None]
            if not (column.is_minor and all(value_of(result, column.value) is None for result in known)):
                shown.append(_column(column, results))
    verdicts = tuple(verdict_words(_worst(point.of.values())) for point in points)
    return [*shown, Shown(escaped("", "verdict"), verdicts, rank=0, right=False)]


def _by_method(sections: Iterable[Section]) -> list[list[Section]]:
    """Those of one method, which are of several tests or loads, share their columns; searched rates come first."""
    found: dict[str, list[Section]] = {}
    for section in sorted(sections, key=lambda section: section.table.rates is None):
        found.setdefault(section.rows[0].result.method, []).append(section)
    return list(found.values())


def _points(kinds: Sequence[Sequence[Section]]) -> list[_Point]:
    points: dict[tuple[str, str], _Point] = {}
    for number, members in enumerate(kinds):
        results = [row.result for section in members for row in section.rows]
        for result in sorted(results, key=lambda result: -(number_of(result, "load_percent") or 0.0)):
            size, name = str(result.parameters.get("size", "-")), configuration_of(result)
            points.setdefault((size, name), _Point(size, name, {})).of.setdefault(number, result)
    order = {size: place for place, (size, _) in enumerate(points)}
    return sorted(points.values(), key=lambda point: order[point.size])


def _column(column: Column, results: Sequence[Result | None]) -> Shown:
    known = [result for result in results if result is not None]
    cells = iter(texts(column, known))
    unit = f"[{column.unit}]" if column.unit else ""
    name = column.name or column.head
    words = (name if name[1:2].isupper() else f"{name[:1].lower()}{name[1:]}").split(" ")
    head = (" ".join(words[: len(words) // 2]), " ".join((*words[len(words) // 2 :], unit)).strip())
    rank = 4 if column.is_minor else _RANKS[column.is_main]
    return Shown(
        escaped(*head),
        escaped(*("-" if result is None else next(cells) for result in results)),
        rank,
        right=column.form != "text",
    )


def _worst(results: Iterable[Result]) -> ResultVerdict:
    order = list(ResultVerdict)
    return max((result.verdict for result in results), key=order.index)
