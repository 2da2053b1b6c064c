"""A value of a result as the text of a cell: for every table alike, on the page and on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from nicbench.model.rate import Bounded
from nicbench.model.result import Result, Value
from nicbench.model.spread import Spread
from nicbench.model.table import Column, Form
from nicbench.report.numbers import (
    UNKNOWN,
    decimals_of,
    gigabits,
    megabits,
    megabytes,
    microseconds,
    milliseconds,
    mpps,
    mpps_decimals,
    of_frames,
    percent,
    significant,
    trimmed,
    whole,
)


def value_of(result: Result, name: str) -> Value:
    """The value of this name; else the parameter."""
    if name in result.values:
        return result.values[name]
    value = result.parameters.get(name)
    return value if isinstance(value, str | int | float) else None


def number_of(result: Result, name: str) -> float | None:
    """The value of this name where it is a number."""
    value = value_of(result, name)
    value = _plain(value)
    return None if value is None or isinstance(value, str) else float(value)


def _plain(value: Value) -> float | int | str | None:
    if isinstance(value, Spread):
        return value.median
    return value.value if isinstance(value, Bounded) else value


def texts(column: Column, results: Sequence[Result]) -> list[str]:
    """A column's cells, with as many decimals in all of them as one of them needs."""
    values = [value_of(result, column.value) for result in results]
    least = [value.at_least if isinstance(value, Bounded | Spread) else False for value in values]
    plain = list(map(_plain, values))
    write = _writer(column.form, [float(value) for value in plain if isinstance(value, int | float)])
    written = [UNKNOWN if value is None else value if isinstance(value, str) else write(value) for value in plain]
    bounds = [f"≥ {text}" if at_least else text for text, at_least in zip(written, least, strict=True)]
    shown = [f"{text}{_range(value, write)}" for text, value in zip(bounds, values, strict=True)]
    return [printed(result, column) or text for text, result in zip(shown, results, strict=True)]


def _range(value: Value, write: Callable[[float], str]) -> str:
    """Of several runs: from the least to the greatest, where they differ, and how many where some have no value."""
    if not isinstance(value, Spread):
        return ""
    least, most = write(value.minimum), write(value.maximum)
    told = [f"{least} to {most}"] if least != most else []
    told += [f"{value.n} of {value.runs} runs"] if value.n < value.runs else []
    return f" ({', '.join(told)})" if told else ""


def printed(result: Result, column: Column) -> str | None:
    """The digits of whoever printed an imported value, where they are in the unit of the column."""
    found = result.imported.printed.get(column.value) if result.imported else None
    if found is None or column.form in ("text", "whole") or column.value not in result.values:
        return None
    unit = column.unit or ("%" if column.head.startswith("%") else None)
    return found.text if found.unit == unit or (found.unit == "frames" and unit is None) else None


def text_of(column: Column, result: Result) -> str:
    """One cell by itself."""
    return texts(column, [result])[0]


def with_unit(column: Column, text: str) -> str:
    """In a heading or a legend: "64 bytes", "100 % of line rate"; a mix of sizes is its name."""
    if column.unit == "bytes" and not text.isdigit():
        return text
    return f"{text} {column.unit}" if column.unit else text


def _writer(form: Form, numbers: Sequence[float]) -> Callable[[float], str]:
    """How a column of these numbers is written."""
    if form == "mpps":
        decimals = mpps_decimals(numbers)
        return lambda number: mpps(number, decimals)
    if form == "of_frames":
        decimals = decimals_of(numbers)
        return lambda number: of_frames(number, decimals)
    return _FORMS[form]


_FORMS: Mapping[Form, Callable[[float], str]] = MappingProxyType(
    {
        "gigabits": gigabits,
        "megabits": megabits,
        "megabytes": megabytes,
        "percent": percent,
        "trimmed": trimmed,
        "gigahertz": lambda value: significant(value / 1e9),
        "microseconds": microseconds,
        "milliseconds": milliseconds,
        "number": significant,
        "whole": whole,
        "text": str,
    }
)
