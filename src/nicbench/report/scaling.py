"""Tables fitted to their results: names in units and titles filled in, and units that suit the magnitudes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any

from nicbench.core.result import Bounded, Result, Spread, Value
from nicbench.core.table import Column, ResultTable
from nicbench.core.units import SCALES, suitable_form
from nicbench.report.numbers import UNKNOWN
from nicbench.report.section import LOAD, load_words


def fill_in(table: ResultTable, parameters: Mapping[str, Any]) -> ResultTable:
    """Returns the table with the names in its units and its title replaced by the parameters that all results share."""
    known = defaultdict(lambda: UNKNOWN, {LOAD: load_words(parameters), **parameters})
    named = ("unit", "title")

    def fill(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {name: fill(value, name) for name, value in part.items()}
        if isinstance(part, tuple):
            return tuple(map(fill, part))
        return part.format_map(known) if key in named and part and "{" in part else part

    return ResultTable.model_validate(fill(table.model_dump()))


def scale_units(table: ResultTable, results: Sequence[Result]) -> ResultTable:
    """Returns the table with units that suit the magnitudes of each value, in charts and sentences as well.

    The greatest decides. Where the least is not a thousandth of it, the unit is chosen as for a hundredth of the
    greatest: 4.88 µs beside 6210 µs is read, 0.00488 ms is not.
    """
    greatest: dict[str, float] = {}
    least: dict[str, float] = {}
    printed: dict[str, str | None] = {}
    for result in results:
        for name, value in result.values.items():
            magnitude = _magnitude(value)
            greatest[name] = max(greatest.get(name, 0.0), magnitude)
            if magnitude:
                least[name] = min(least.get(name, magnitude), magnitude)
        if result.imported:
            printed |= {name: found.unit for name, found in result.imported.printed.items()}
    greatest |= {name: greatest[name] / 100 for name, small in least.items() if small * 1000 < greatest[name]}
    goals = [goal.value for goal in table.rates.goals] if table.rates else []
    greatest |= dict.fromkeys(goals, max((greatest.get(value, 0.0) for value in goals), default=0.0))  # one axis

    for columns in (table.columns, *(one.columns for one in table.further)):
        greatest |= _from_neighbours(columns, {name for name, value in greatest.items() if value}, greatest)

    def form_of(column: Mapping[str, Any], magnitude: float) -> Any:
        """Returns a column's form; for imported results the unit that their source prints, if it has it."""
        form = suitable_form(column["form"], magnitude)
        return form if printed.get(column["value"]) != column["unit"] or form == "megabits" else column["form"]

    def converted(part: Any, together: float | None = None) -> Any:
        if isinstance(part, tuple):
            return tuple(converted(one, together) for one in part)
        if not isinstance(part, dict):
            return part
        if "y" in part and isinstance(part["y"], tuple):  # the lines of one plot share its axis
            together = max((greatest.get(column["value"], 0.0) for column in part["y"]), default=0.0)
        inner = {
            name: converted(value, together if name == "y" and isinstance(value, tuple) else None)
            for name, value in part.items()
        }
        form = form_of(inner, together or greatest.get(inner["value"], 0.0)) if "form" in inner else None
        return inner if form is None or form not in SCALES else {**inner, "form": form, "unit": SCALES[form].unit}

    return ResultTable.model_validate(converted(table.model_dump()))


def _from_neighbours(columns: Sequence[Column], filled: Set[str], greatest: Mapping[str, float]) -> dict[str, float]:
    """Returns magnitudes for columns that no result fills: each has that of the nearest one of its form, the ones
    before it first, so that an empty p99 stands in the unit of the median beside it.
    """
    found: dict[str, float] = {}
    for number, column in enumerate(columns):
        if column.value not in filled and column.form in SCALES:
            others = (*reversed(columns[:number]), *columns[number + 1 :])
            near = next((one for one in others if one.form == column.form and one.value in filled), None)
            found |= {} if near is None else {column.value: greatest[near.value]}
    return found


def _magnitude(value: Value) -> float:
    """Returns the number by which the unit is chosen; for a rate with only an upper bound, that bound."""
    if isinstance(value, Bounded):
        value = value.upper if value.value is None else value.value
    elif isinstance(value, Spread):
        value = value.magnitude
    return abs(value) if isinstance(value, int | float) else 0.0
