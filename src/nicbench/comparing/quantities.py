"""The main values of a result as quantities: name, unit, and which way is better, all by its method's own word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from nicbench.methods.base import Method, main_values
from nicbench.model.rate import Bounded
from nicbench.model.result import Result, Value
from nicbench.model.spread import Spread
from nicbench.model.table import Column, Form
from nicbench.registry import find_one
from nicbench.stats.quantity import Quantity
from nicbench.stats.sample import known

_PER_UNIT: Mapping[Form, float] = MappingProxyType(
    {
        "mpps": 1e6,
        "gigabits": 1e9,
        "megabits": 1e6,
        "megabytes": 1e6,
        "gigahertz": 1e9,
        "microseconds": 1e3,
        "milliseconds": 1e6,
    }
)
"""What a value is divided by to be in the unit of its column (model/table.py, ``Form``)."""


@dataclass(frozen=True, slots=True)
class MainValue:
    """One of the values that a method's result is about. ``name`` is its key among the values of a result.

    A value over ``factor`` is in the unit of ``quantity``.
    """

    name: str
    quantity: Quantity
    factor: float

    def of(self, result: Result) -> Value:
        """The value as it stands; None of one that its source prints and that cannot be so."""
        errata = result.imported.errata if result.imported else ()
        if any(erratum.value == self.name and not erratum.stands for erratum in errata):
            return None
        return result.values.get(self.name)

    def in_unit(self, unit: str, factor: float) -> MainValue:
        """The same in another unit."""
        return replace(self, quantity=replace(self.quantity, unit=unit), factor=factor)

    def number_of(self, result: Result) -> float | None:
        """In the unit of the quantity. 0 of a DUT that passes nothing; None of what is unknown or no number."""
        number = number_of(self.of(result))
        return None if number is None else number / self.factor


def number_of(value: Value) -> float | None:
    """Of a rate its value, of several runs their median; 0 of a DUT that passes nothing; else None where unknown."""
    if isinstance(value, Bounded):
        value = 0.0 if value.passes_nothing else value.value
    elif isinstance(value, Spread):
        value = value.median
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return next(iter(known((float(value),))), None)


def main_values_of(result: Result) -> tuple[MainValue, ...]:
    """Those that the result has, in the order in which its method names them."""
    return tuple(
        MainValue(name, quantity_of(result, name), _factor(_column(result, name)))
        for name in dict.fromkeys(main_values(result))
        if name in result.values and not isinstance(result.values[name], str)
    )


def quantity_of(result: Result, name: str) -> Quantity:
    """Of a value of no table of its method: its bare name, and nothing is said of which way is better."""
    column = _column(result, name)
    if column is None:
        return Quantity(name.replace("_", " "), "")
    return Quantity(
        name=_in_a_sentence(column.head),
        unit=_filled(column.unit, result.parameters),
        higher_is_better=None if column.better is None else column.better == "higher",
        comparative=column.comparative,
    )


def _column(result: Result, name: str) -> Column | None:
    method = find_one("nicbench.methods", Method, result.method)
    return None if method is None else method.column_of(result, name)


def _factor(column: Column | None) -> float:
    return 1.0 if column is None else _PER_UNIT.get(column.form, 1.0)


def _filled(unit: str | None, parameters: Mapping[str, Any]) -> str:
    """With the parameters that it names: "% of {load_of}"."""
    text = unit or ""
    for name, value in parameters.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text.replace("us", "µs") if text == "us" else text


def _in_a_sentence(head: str) -> str:
    """A heading within a sentence: small, unless its first word is written in capitals."""
    return head if head[1:2].isupper() else f"{head[:1].lower()}{head[1:]}"
