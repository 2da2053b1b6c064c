"""A value of a result as the text of a cell: for every table alike, on the page and on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final

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

_POWERS: Final[tuple[Mapping[str | None, int], ...]] = (
    MappingProxyType({"b/s": 0, "kb/s": 3, "Mb/s": 6, "Gb/s": 9}),
    MappingProxyType({"B/s": 0, "kB/s": 3, "MB/s": 6, "GB/s": 9}),
    MappingProxyType({"fps": 0, "pps": 0, "kfps": 3, "kpps": 3, "Mpps": 6, "Gpps": 9}),
    MappingProxyType({"ns": -9, "us": -6, "µs": -6, "ms": -3, "s": 0}),
)
"""Units of one quantity, by the power of ten that each is."""
SCALES: Final[Mapping[Form, float]] = MappingProxyType(
    {
        "mpps": 1e-6,
        "gigabits": 1e-9,
        "megabits": 1e-6,
        "megabytes": 1e-6,
        "gigahertz": 1e-9,
        "microseconds": 1e-3,
        "milliseconds": 1e-6,
    }
)
"""What a value is multiplied by on an axis, to be in the unit of its column; 1 where a form is not here."""
_MOST_DIGITS: Final = 6
"""Of what people print: more are those of a program that printed all it had."""


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
    """The digits of whoever printed an imported value: no more of them, and no fewer.

    Where the column is in another multiple of their unit the decimal point moves; a program's fifteen digits are cut.
    """
    found = result.imported.printed.get(column.value) if result.imported else None
    if found is None or column.form in ("text", "whole") or column.value not in result.values:
        return None
    unit = column.unit or ("%" if column.head.startswith("%") else None)
    if found.unit == unit or (found.unit == "frames" and unit is None):
        return found.text
    return _moved(found.text, found.unit, unit)


def _moved(text: str, unit: str | None, to: str | None) -> str | None:
    """The same digits in another multiple of the unit; None where it is none, or where there are too many of them."""
    for powers in _POWERS:
        if unit in powers and to in powers:
            try:
                number = Decimal(text)
            except InvalidOperation:
                return None
            if not number.is_finite() or len(number.as_tuple().digits) > _MOST_DIGITS:
                return None
            return f"{number.scaleb(powers[unit] - powers[to]):f}"
    return None


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
