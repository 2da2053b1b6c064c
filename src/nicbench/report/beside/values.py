"""The main values of all entries, a table for each value: a row for each entry, a column for each point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.core.frame_size import label_of
from nicbench.core.registry import find
from nicbench.core.result import PASSES_NOTHING, Bounded, Result, Spread, Summary, Value, name_of_test
from nicbench.core.table import Column
from nicbench.methods.base import Method, main_values, tables_of
from nicbench.report.cells import number_in, texts, value_of
from nicbench.report.editors.study import editors_parts
from nicbench.report.numbers import UNKNOWN
from nicbench.report.scaling import scale_units

_VIEWS: Final = frozenset({"size", "run", "part"})
"""Parameters that do not distinguish the points of one table."""


@dataclass(frozen=True, slots=True)
class ValueCell:
    """One entry's value at one point. ``heat`` says where it lies between the lowest (0) and the highest (1) value of
    its column; None where there is nothing to compare it with.
    """

    text: str
    number: float | None
    heat: float | None
    result: Result | None
    value: Value = None


@dataclass(frozen=True, slots=True)
class ValueTable:
    """One value of one test; ``points`` are the headings of its columns, ``rows`` maps the name of an entry to its
    cells.
    """

    test: str
    method: str
    value: str
    head: str
    unit: str | None
    scope: str
    corner: str
    points: tuple[str, ...]
    is_searched: bool
    """Whether the value is a rate that a search found: such rates have a table of their own, with their intervals."""
    parameters: tuple[Mapping[str, Any], ...]
    rows: Mapping[str, tuple[ValueCell, ...]]

    @property
    def heading(self) -> str:
        """The name of the value with its unit: "NDR [Mpps]"."""
        return f"{self.head} [{self.unit}]" if self.unit else self.head


def value_tables(summary: Summary) -> tuple[ValueTable, ...]:
    """Returns a table for every main value that at least two entries have; instances of film frames have
    other tables.
    """
    own = editors_parts()
    grouped: dict[tuple[str, str, str], list[Result]] = {}
    for result in summary.beside_each_other:
        part = result.parameters.get("part")
        if (result.method, part) not in own and part != "summary":
            grouped.setdefault((name_of_test(result, {}), result.method, str(part)), []).append(result)
    names = summary.configurations
    tables = [
        table
        for (test, method, _), results in grouped.items()
        for column in _columns(method, results)
        if (table := _table(test, method, column, results, names)) is not None
    ]
    return tuple(tables)


def _columns(method: str, results: Sequence[Result]) -> list[Column]:
    """Returns a column, with heading and unit, for each value that the method calls a main value or prints in bold."""
    kind = find("nicbench.methods", Method).get(method)
    part = results[0].parameters.get("part")
    table = next((one for one in (tables_of(kind) if kind else ()) if one.part == part), None)
    if kind is None or table is None:
        return [Column(value=name, head=name) for name in dict.fromkeys(_main_names(results))]
    fitted = kind.table_for(table, results, {})
    known = {column.value: column for column in reversed(fitted.columns)}
    stated = [fitted.statement.also] if fitted.statement else []
    wanted = dict.fromkeys((*_main_names(results), *stated))
    columns = [known.get(name) or Column(value=name, head=name) for name in wanted]
    suited = scale_units(fitted.replace(columns=tuple(columns), further=()), results)
    return [column.replace(head=column.name or column.head) for column in suited.columns]


def _main_names(results: Iterable[Result]) -> Iterator[str]:
    return (name for result in results for name in main_values(result))


def _table(
    test: str, method: str, column: Column, results: Sequence[Result], names: Sequence[str]
) -> ValueTable | None:
    having = [result for result in results if value_of(result, column.value) is not None]
    numbers = [result for result in having if number_in(result, column.value) is not None or _is_bound(result, column)]
    if len({result.configuration for result in numbers}) < 2:
        return None
    labels = _labels(numbers)
    at: dict[tuple[str, str], Result] = {}
    for result, label in zip(numbers, labels, strict=True):
        at.setdefault((result.configuration, label), result)
    counts: dict[str, int] = {}
    for _, label in at:
        counts[label] = counts.get(label, 0) + 1
    points = _in_order([label for label in dict.fromkeys(labels) if counts[label] > 1], at)
    if not points:
        return None
    shown = dict(zip(map(id, numbers), texts(column, numbers), strict=True))
    cells = {
        (name, label): ValueCell(
            _text(result, column, shown[id(result)]),
            number_in(result, column.value),
            None,
            result,
            value_of(result, column.value),
        )
        for (name, label), result in at.items()
    }
    none = ValueCell(UNKNOWN, None, None, None)
    rows = {name: [cells.get((name, label), none) for label in points] for name in names}
    first = next(at[name, points[0]] for name in names if (name, points[0]) in at)
    return ValueTable(
        test=test,
        method=method,
        value=column.value,
        head=column.head,
        unit=_unit(column, first),
        scope=first.scope,
        corner="Frame [bytes]" if all(point.isdigit() for point in points) else "",
        points=tuple(points),
        is_searched=column.aspect == "rate",
        parameters=tuple(next(at[name, label] for name in names if (name, label) in at).parameters for label in points),
        rows=_with_heat(rows),
    )


def _is_bound(result: Result, column: Column) -> bool:
    """Returns whether a rate has a known upper bound."""
    value = result.values.get(column.value)
    return isinstance(value, Bounded) and value.upper is not None


def _text(result: Result, column: Column, text: str) -> str:
    value = result.values.get(column.value)
    if isinstance(value, Bounded) and value.passes_nothing:
        return PASSES_NOTHING
    if isinstance(value, Bounded) and value.value is None and value.upper is not None:
        bound = result.replace(values={column.value: value.upper}, imported=None)
        return f"< {texts(column, [bound])[0]}"
    return text.partition(" (")[0] if isinstance(value, Spread) else text


def _unit(column: Column, result: Result) -> str | None:
    """Returns the unit of a column, with the names in it replaced by the parameters of the result."""
    if column.unit is None or "{" not in column.unit:
        return column.unit
    return column.unit.format_map({**_Unknown(), **result.parameters})


class _Unknown(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return UNKNOWN


def _labels(results: Sequence[Result]) -> list[str]:
    """Returns what tells the points of these results apart, in words: the frame size, and every parameter that is not
    the same in all.
    """
    names = dict.fromkeys(name for result in results for name in result.parameters if name not in _VIEWS)
    sized = any(label_of(result.parameters) is not None for result in results)
    telling = [
        name
        for name in names
        if name not in ("frame_bytes", "mix") and len({str(result.parameters.get(name)) for result in results}) > 1
    ]
    found = []
    for result in results:
        size = label_of(result.parameters)
        only = sized and not telling
        first = [] if size is None else [size if only or not size.isdigit() else f"{size} B"]
        rest = [
            _words_of(name, result.parameters.get(name)) for name in telling if result.parameters.get(name) is not None
        ]
        found.append(", ".join([*first, *rest]) or name_of_test(result, {}))
    return found


def _words_of(name: str, value: Any) -> str:
    if name.endswith("_percent"):
        return f"{value:g} %" if isinstance(value, int | float) else f"{value} %"
    if name.endswith("_bytes"):
        return f"{value} B"
    return f"{value}" if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"


def _in_order(labels: Sequence[str], at: Mapping[tuple[str, str], Result]) -> list[str]:
    """Returns the labels by frame size; those of one size in the order in which they were measured."""
    sizes: dict[str, float] = {}
    for (_, label), result in at.items():
        sizes.setdefault(label, number_in(result, "frame_bytes") or 0.0)
    return sorted(labels, key=lambda label: sizes[label])


def _with_heat(rows: Mapping[str, Sequence[ValueCell]]) -> dict[str, tuple[ValueCell, ...]]:
    columns = list(zip(*rows.values(), strict=True))
    ranges = [_range(cell.number for cell in column) for column in columns]
    return {
        name: tuple(
            ValueCell(cell.text, cell.number, _heat(cell.number, ends), cell.result, cell.value)
            for cell, ends in zip(cells, ranges, strict=True)
        )
        for name, cells in rows.items()
    }


def _range(numbers: Iterable[float | None]) -> tuple[float, float] | None:
    known = [number for number in numbers if number is not None]
    return (min(known), max(known)) if len(known) > 1 and min(known) < max(known) else None


def _heat(number: float | None, ends: tuple[float, float] | None) -> float | None:
    return None if number is None or ends is None else (number - ends[0]) / (ends[1] - ends[0])
