"""Sections that methods bring along themselves (model/table.py): every value as text, its unit in the heading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from nicbench.methods.base import Method
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, ResultVerdict
from nicbench.model.table import Column, Form, ResultTable
from nicbench.registry import find
from nicbench.report.numbers import UNKNOWN, gigabits, mpps, mpps_decimals, percent, significant, whole

_GAP = "\u00a0"
Value = Bounded | float | int | str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One result; ``cells`` in the order of the columns."""

    cells: tuple[str, ...]
    result: Result


@dataclass(frozen=True, slots=True)
class Section:
    """One test of a method that has a table; ``configuration`` and ``scope`` are those of all its rows."""

    test: str
    configuration: str
    scope: str
    table: ResultTable
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str | None:
        """What the first row says, without its subject: "forwards 9.66 Mpps of 64 bytes frames on one core"."""
        if not self.rows:
            return None
        pairs = list(zip(self.table.columns, self.rows[0].cells, strict=True))
        unknown = [f"{{{column.value}}}" for column, cell in pairs if cell == UNKNOWN]
        said = (text for text in self.table.sentences if not any(name in text for name in unknown))
        spoken = {column.value: _spoken(column, cell) for column, cell in pairs}
        return next((text.format(**spoken) for text in said), None)


def sections(results: Iterable[Result], tests: Mapping[str, str]) -> tuple[Section, ...]:
    """One per test and configuration, in the order of the results; ``tests`` maps a result's id to its test."""
    tables = {kind: method.table() for kind, method in find("nicbench.methods", Method).items()}
    grouped: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in results:
        if tables.get(result.method) is not None:
            test = tests.get(result.id, result.id.partition("/")[0])
            grouped.setdefault((result.method, test, result.configuration, result.scope), []).append(result)
    found = []
    for (method, test, configuration, scope), members in grouped.items():
        table = tables[method]
        if table is not None:
            found.append(Section(test, configuration, scope, table, _rows(members, table), _notes(members, table)))
    return tuple(found)


def has_table(method: str) -> bool:
    """Whether results of this method have a section of their own."""
    methods = find("nicbench.methods", Method)
    return method in methods and methods[method].table() is not None


def _rows(results: Sequence[Result], table: ResultTable) -> tuple[Row, ...]:
    columns = [_texts(column, [_value(result, column.value) for result in results]) for column in table.columns]
    return tuple(Row(tuple(texts[number] for texts in columns), result) for number, result in enumerate(results))


def _texts(column: Column, values: Sequence[Value]) -> list[str]:
    """A column's values, with as many decimals in all of them as the smallest rate needs."""
    least = [value.at_least if isinstance(value, Bounded) else False for value in values]
    numbers = [value.value if isinstance(value, Bounded) else value for value in values]
    if column.form == "mpps":
        decimals = mpps_decimals([number for number in numbers if not isinstance(number, str)])
        texts = [UNKNOWN if number is None else mpps(float(number), decimals) for number in numbers]
    else:
        texts = [_text(column.form, number) for number in numbers]
    return [f"≥ {text}" if at_least else text for text, at_least in zip(texts, least, strict=True)]


def _text(form: Form, value: float | int | str | None) -> str:
    if value is None:
        return UNKNOWN
    return str(value) if isinstance(value, str) or form == "text" else _FORMS[form](float(value))


def _value(result: Result, name: str) -> Value:
    if name in result.values:
        return result.values[name]
    value = result.parameters.get(name)
    return value if isinstance(value, str | int | float) else None


def _notes(results: Sequence[Result], table: ResultTable) -> tuple[str, ...]:
    said = ((about, result.values.get(name)) for name, about in table.notes for result in results)
    return tuple(dict.fromkeys(f"{about}: {text}" for about, text in said if text is not None))


def _spoken(column: Column, cell: str) -> str:
    if column.unit == "bytes":
        return f"{cell}-byte" if cell.isdigit() else cell
    return f"{cell}{_GAP}{column.unit}".replace("≥ ", "at least ") if column.unit else cell


def spoilt(section: Section) -> tuple[str, ...]:
    """A sentence for each row that rests on a disturbed trial."""
    head = section.table.columns[0]
    return tuple(
        f"{row.cells[0]} {head.unit or head.head}: {'; '.join(row.result.disturbances) or row.result.verdict.value}"
        for row in section.rows
        if row.result.verdict is not ResultVerdict.VALID
    )


_FORMS: Mapping[Form, Callable[[float], str]] = MappingProxyType(
    {
        "gigabits": gigabits,
        "percent": percent,
        "gigahertz": lambda value: significant(value / 1e9),
        "number": significant,
        "whole": whole,
    }
)
