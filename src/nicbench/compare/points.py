"""What is compared: points, main values with their quantities, and sides with their values at each point from all runs.

A point is the test, method, scope and parameters that results have in common.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Final, cast

from nicbench.core.frozen import frozen
from nicbench.core.lists import grouped
from nicbench.core.registry import find
from nicbench.core.result import Result, ResultVerdict, Value, counted_number, name_of_test
from nicbench.core.table import Column
from nicbench.core.units import SCALES, Form, Quantity, suitable_form, uncapitalise
from nicbench.methods.base import Method, main_values
from nicbench.stats.sample import known_numbers

_NOT_OF_A_POINT: Final = frozenset({"run"})
"""Parameters that do not identify a point: imported results have the number of their run among the parameters."""

_ALWAYS_TOLD: Final = frozenset(
    {"part", "frame_bytes", "mix", "load_percent", "load_of", "direction", "instances", "instance"}
)


@frozen
class Point:
    """A point of measurement in any configuration and run; ``given``: its parameters as JSON with sorted keys."""

    test: str
    method: str
    scope: str
    given: str
    untold: tuple[str, ...] = field(default=(), compare=False)
    """Names of parameters that are the same at all points of the test and are therefore not printed."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as results have them, without the run number."""
        return cast(dict[str, Any], json.loads(self.given))

    @property
    def circumstances(self) -> str:
        """The parameters as the beginning of a sentence: "with 64-byte frames"; "" where there is nothing to say."""
        return _circumstances(self.method, self.given, self.untold)

    @property
    def words(self) -> str:
        """The test and its circumstances as text for a table: "throughput: with 64-byte frames"."""
        return f"{self.test}: {self.circumstances}" if self.circumstances else self.test


def words_of(test: str, method: str, parameters: Mapping[str, Any]) -> str:
    """Returns a test and its circumstances as a point of these parameters tells them."""
    return Point(test, method, "", _json_of(parameters)).words


def _json_of(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True, default=str)


def point_of(result: Result, tests: Mapping[str, str] | None = None) -> Point:
    """Returns the point of a result; ``tests`` maps ids of old results, which do not name their test, to test names."""
    given = {name: value for name, value in result.parameters.items() if name not in _NOT_OF_A_POINT}
    return Point(name_of_test(result, tests or {}), result.method, result.scope, _json_of(given))


def hide_common_parameters(points: Iterable[Point]) -> dict[Point, Point]:
    """Maps each point to one that prints only the parameters that tell it apart from others of its test.

    Frame sizes, loads, directions and instances are always printed.
    """
    by_test = grouped(((point.test, point.method), point) for point in dict.fromkeys(points))
    found: dict[Point, Point] = {}
    for members in by_test.values():
        given = [member.parameters for member in members]
        alike = [
            name
            for name in dict.fromkeys(name for one in given for name in one)
            if name not in _ALWAYS_TOLD and len({json.dumps(one.get(name)) for one in given}) == 1
        ]
        found |= {member: replace(member, untold=tuple(alike)) for member in members}
    return found


@lru_cache(maxsize=4096)
def _circumstances(method: str, given: str, untold: tuple[str, ...]) -> str:
    known = find("nicbench.methods", Method).get(method)
    told = {name: value for name, value in json.loads(given).items() if name not in untold}
    return (known or Method).describe_circumstances(told)


@frozen
class MainValue:
    """One of the main values of a method's result; ``name`` is its key among the values of a result.

    A value divided by ``factor`` is in the unit of ``quantity``; ``form`` is the number format of its column.
    """

    name: str
    quantity: Quantity
    form: Form = "number"

    @property
    def factor(self) -> float:
        """The number by which a value is divided to be in the unit of ``quantity``."""
        return 1.0 / SCALES[self.form].factor if self.form in SCALES else 1.0

    @property
    def base_unit(self) -> str:
        """The unit of the value as results have it."""
        return SCALES[self.form].base_unit if self.form in SCALES else self.quantity.unit

    def value_in(self, result: Result) -> Value:
        """Returns the value as the result has it; None for a printed value that its errata declare wrong."""
        errata = result.imported.errata if result.imported else ()
        if any(erratum.value == self.name and not erratum.stands for erratum in errata):
            return None
        return result.values.get(self.name)

    def scale_to(self, greatest: float) -> MainValue:
        """Returns the same main value in the unit that suits ``greatest``, the greatest value in the base unit."""
        form = suitable_form(self.form, greatest)
        if form == self.form or form not in SCALES:
            return self
        return replace(self, quantity=replace(self.quantity, unit=SCALES[form].unit), form=form)

    def number_of(self, result: Result) -> float | None:
        """Returns the number in the unit of ``quantity``: 0 if the DUT passes nothing, None without a number."""
        number = comparable_number(self.value_in(result))
        return None if number is None else number / self.factor


def comparable_number(value: Value) -> float | None:
    """Returns the number of a value: of a rate its value, of several runs their median.

    It is 0 for a DUT that passes nothing, and None where the value is unknown or not a number.
    """
    number = None if isinstance(value, bool) else counted_number(value)
    return next(iter(known_numbers((number,))), None)


def main_values_of(result: Result) -> tuple[MainValue, ...]:
    """Returns the main values that the result has, in the order in which its method names them."""
    return tuple(
        main_value_of(result, name)
        for name in dict.fromkeys(main_values(result))
        if name in result.values and not isinstance(result.values[name], str)
    )


def main_value_of(result: Result, name: str) -> MainValue:
    """Returns one of the main values of a result, which may lack it."""
    return MainValue(name, quantity_of(result, name), _form(_column(result, name)))


def quantity_of(result: Result, name: str) -> Quantity:
    """Returns the quantity of a value; one that is in no table has its bare name and no better direction."""
    column = _column(result, name)
    if column is None:
        return Quantity(name.replace("_", " "), "")
    return Quantity(
        name=uncapitalise(column.head),
        unit=_insert_parameters(column.unit, result.parameters),
        higher_is_better=None if column.better is None else column.better == "higher",
        adjective=column.adjective,
    )


def _column(result: Result, name: str) -> Column | None:
    method = find("nicbench.methods", Method).get(result.method)
    return None if method is None else method.column_of(result, name)


def _form(column: Column | None) -> Form:
    return "number" if column is None else column.form


def _insert_parameters(unit: str | None, parameters: Mapping[str, Any]) -> str:
    """Replaces names of parameters in a unit by their values, for example in "% of {load_of}"."""
    text = unit or ""
    for name, value in parameters.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def seed_of(*run_ids: str) -> int:
    """Returns a seed from 0 to 2^32 - 1 that does not depend on the order of the runs; printed with every interval."""
    text = "\n".join(sorted(run_ids))
    return int.from_bytes(hashlib.sha256(f"nicbench statistics\n{text}".encode()).digest()[:4], "big")


@frozen
class Side:
    """One side of a comparison, a configuration or a run: its name and the results of all its runs that count."""

    name: str
    results: tuple[Result, ...]


@frozen
class RunResult:
    """One result of a run; ``place`` counts from 0 in the order of the side's results."""

    run: int | None
    place: int
    result: Result


@frozen
class PointValues:
    """A main value at one point; ``of`` maps each side that measured it to its results, in the order of the runs."""

    point: Point
    value: MainValue
    of: Mapping[str, tuple[RunResult, ...]] = field(default_factory=dict)

    def numbers(self, side: str) -> list[float | None]:
        """Returns the numbers of a side in the unit of the quantity, one for each run."""
        return [self.value.number_of(ran.result) for ran in self.of.get(side, ())]

    def is_disturbed(self, side: str) -> bool:
        """Whether a result of a side is disturbed, so that nothing can be claimed from its numbers."""
        return any(ran.result.verdict is ResultVerdict.DISTURBED for ran in self.of.get(side, ()))

    def values(self, side: str) -> list[Value]:
        """Returns the values of a side as its results have them."""
        return [self.value.value_in(ran.result) for ran in self.of.get(side, ())]


def match_sides(sides: Sequence[Side], tests: Mapping[str, str] | None = None) -> tuple[PointValues, ...]:
    """Returns every main value of every point that any side has, in the order of first occurrence.

    Warm-up runs are left out. Results that a method derives from single results, such as a sum over instances, are
    added first.
    """
    found: dict[tuple[Point, str], tuple[MainValue, dict[str, list[RunResult]]]] = {}
    for side in sides:
        for place, result in enumerate(_counted_results(side.results)):
            point = point_of(result, tests)
            for value in main_values_of(result):
                _, of = found.setdefault((point, value.name), (value, {}))
                of.setdefault(side.name, []).append(RunResult(result.run_number, place, result))
    told = hide_common_parameters(point for point, _ in found)
    return tuple(
        PointValues(told[point], value, {name: tuple(sorted(runs, key=_order_of)) for name, runs in of.items()})
        for (point, _), (value, of) in found.items()
    )


def scale_units(points: Sequence[PointValues]) -> tuple[PointValues, ...]:
    """Scales values as result tables do: each to the unit that suits the greatest value of the same name."""
    greatest: dict[str, float] = {}
    for of in points:
        known = [abs(number) * of.value.factor for side in of.of for number in of.numbers(side) if number is not None]
        greatest[of.value.name] = max(greatest.get(of.value.name, 0.0), *known, 0.0)
    return tuple(replace(of, value=of.value.scale_to(greatest[of.value.name])) for of in points)


def _order_of(ran: RunResult) -> tuple[int, int]:
    return ran.run or 0, ran.place


def _counted_results(results: Iterable[Result]) -> list[Result]:
    """Returns the results that count (no warm-up), with those that their methods derive from them."""
    methods = find("nicbench.methods", Method)
    by_method = grouped((result.method, result) for result in results if not result.warm_up)
    return [
        result
        for method, members in by_method.items()
        for result in (methods[method].add_run_results(tuple(members)) if method in methods else members)
    ]
