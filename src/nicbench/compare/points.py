"""What is compared: points, main values as quantities, and sides with the values that all runs of each have of a point.

A point is a test, method, scope and parameters that results share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, cast

from nicbench.core.forms import SCALES, Form, suitable_form
from nicbench.core.registry import find, find_one
from nicbench.core.result import Bounded, Result, Spread, Value, name_of_test
from nicbench.core.table import Column
from nicbench.methods.base import Method, main_values
from nicbench.stats.numerals import Quantity
from nicbench.stats.sample import known_numbers

_NOT_OF_A_POINT: Final = frozenset({"run"})
"""Of imported results, which number their runs there."""

_ALWAYS_TOLD: Final = frozenset(
    {"part", "frame_bytes", "mix", "load_percent", "load_of", "direction", "instances", "instance"}
)


@dataclass(frozen=True, slots=True)
class Point:
    """Of any configuration and run. ``given`` are the parameters as JSON with sorted keys, for it is a key."""

    test: str
    method: str
    scope: str
    given: str
    untold: tuple[str, ...] = field(default=(), compare=False)
    """Parameters that are the same at all points of the test, and so are not told."""

    @property
    def parameters(self) -> dict[str, Any]:
        """As results have them, but for the run."""
        return cast(dict[str, Any], json.loads(self.given))

    @property
    def circumstances(self) -> str:
        """To begin a sentence: "with 64-byte frames"; "" where there is nothing to tell."""
        return _circumstances(self.method, self.given, self.untold)

    @property
    def words(self) -> str:
        """In a table: "throughput: with 64-byte frames"."""
        return f"{self.test}: {self.circumstances}" if self.circumstances else self.test


def point_of(result: Result, tests: Mapping[str, str] | None = None) -> Point:
    """``tests`` maps the id of a result that is too old to say its test to the test's name."""
    given = {name: value for name, value in result.parameters.items() if name not in _NOT_OF_A_POINT}
    text = json.dumps(given, sort_keys=True, default=str)
    return Point(name_of_test(result, tests or {}), result.method, result.scope, text)


def hide_common_parameters(points: Iterable[Point]) -> dict[Point, Point]:
    """Each point as one that tells, beside frames, load and instances, only what differs among those of its test."""
    by_test: dict[tuple[str, str], list[Point]] = {}
    for point in dict.fromkeys(points):
        by_test.setdefault((point.test, point.method), []).append(point)
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
    known = find_one("nicbench.methods", Method, method)
    told = {name: value for name, value in json.loads(given).items() if name not in untold}
    return "" if known is None else known.describe_circumstances(told)


@dataclass(frozen=True, slots=True)
class MainValue:
    """One of the values that a method's result is about. ``name`` is its key among the values of a result.

    A value over ``factor`` is in the unit of ``quantity``; ``form`` is how its column is written.
    """

    name: str
    quantity: Quantity
    form: Form = "number"

    @property
    def factor(self) -> float:
        """What a value is divided by to be in that unit."""
        return 1.0 / SCALES[self.form].factor if self.form in SCALES else 1.0

    def value_in(self, result: Result) -> Value:
        """The value as it stands; None of one that its source prints and that cannot be so."""
        errata = result.imported.errata if result.imported else ()
        if any(erratum.value == self.name and not erratum.stands for erratum in errata):
            return None
        return result.values.get(self.name)

    def scale_to(self, greatest: float) -> MainValue:
        """In the unit that suits values of which the greatest, in the base unit, is this."""
        form = suitable_form(self.form, greatest)
        if form == self.form or form not in SCALES:
            return self
        return replace(self, quantity=replace(self.quantity, unit=SCALES[form].unit), form=form)

    def number_of(self, result: Result) -> float | None:
        """In the unit of the quantity. 0 of a DUT that passes nothing; None of what is unknown or no number."""
        number = number_of(self.value_in(result))
        return None if number is None else number / self.factor


def number_of(value: Value) -> float | None:
    """Of a rate its value, of several runs their median; 0 of a DUT that passes nothing; else None where unknown."""
    if isinstance(value, Bounded):
        value = 0.0 if value.passes_nothing else value.value
    elif isinstance(value, Spread):
        value = value.median
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return next(iter(known_numbers((float(value),))), None)


def main_values_of(result: Result) -> tuple[MainValue, ...]:
    """Those that the result has, in the order in which its method names them."""
    return tuple(
        MainValue(name, quantity_of(result, name), _form(_column(result, name)))
        for name in dict.fromkeys(main_values(result))
        if name in result.values and not isinstance(result.values[name], str)
    )


def quantity_of(result: Result, name: str) -> Quantity:
    """Of a value of no table of its method: its bare name, and nothing is said of which way is better."""
    column = _column(result, name)
    if column is None:
        return Quantity(name.replace("_", " "), "")
    return Quantity(
        name=_uncapitalise(column.head),
        unit=_insert_parameters(column.unit, result.parameters),
        higher_is_better=None if column.better is None else column.better == "higher",
        comparative=column.comparative,
    )


def _column(result: Result, name: str) -> Column | None:
    method = find_one("nicbench.methods", Method, result.method)
    return None if method is None else method.column_of(result, name)


def _form(column: Column | None) -> Form:
    return "number" if column is None else column.form


def _insert_parameters(unit: str | None, parameters: Mapping[str, Any]) -> str:
    """With the parameters that it names: "% of {load_of}"."""
    text = unit or ""
    for name, value in parameters.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _uncapitalise(head: str) -> str:
    """A heading within a sentence: small, unless its first word is written in capitals."""
    return head if head[1:2].isupper() else f"{head[:1].lower()}{head[1:]}"


def seed_of(*run_ids: str) -> int:
    """0 to 2^32 - 1; the order of the runs does not matter. It is printed wherever an interval is."""
    text = "\n".join(sorted(run_ids))
    return int.from_bytes(hashlib.sha256(f"nicbench statistics\n{text}".encode()).digest()[:4], "big")


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: a configuration, or a run; by name, with the results of all its runs that count."""

    name: str
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """One result of a run. ``place`` counts from 0 in the order of the side's results."""

    run: int | None
    place: int
    result: Result


@dataclass(frozen=True, slots=True)
class PointValues:
    """A main value of one point; ``of`` has each side's runs, in their order, and none where it did not measure it."""

    point: Point
    value: MainValue
    of: Mapping[str, tuple[RunResult, ...]] = field(default_factory=dict)

    def numbers(self, side: str) -> list[float | None]:
        """In the unit of the quantity, one for each run."""
        return [self.value.number_of(ran.result) for ran in self.of.get(side, ())]

    def values(self, side: str) -> list[Value]:
        """As results have them."""
        return [self.value.value_in(ran.result) for ran in self.of.get(side, ())]


def match_sides(sides: Sequence[Side], tests: Mapping[str, str] | None = None) -> tuple[PointValues, ...]:
    """Every main value of every point that any side has, in the order in which they come up.

    Runs that warm up are no part of it. What a method makes of single results, as a sum over instances, is made first.
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
    """As the tables of results have them: each value in the unit that suits the greatest of its name."""
    greatest: dict[str, float] = {}
    for of in points:
        known = [abs(number) * of.value.factor for side in of.of for number in of.numbers(side) if number is not None]
        greatest[of.value.name] = max(greatest.get(of.value.name, 0.0), *known, 0.0)
    return tuple(replace(of, value=of.value.scale_to(greatest[of.value.name])) for of in points)


def _order_of(ran: RunResult) -> tuple[int, int]:
    return ran.run or 0, ran.place


def _counted_results(results: Iterable[Result]) -> list[Result]:
    """Those that count, with what their methods make of them."""
    methods = find("nicbench.methods", Method)
    by_method: dict[str, list[Result]] = {}
    for result in results:
        if not result.warm_up:
            by_method.setdefault(result.method, []).append(result)
    return [
        result
        for method, members in by_method.items()
        for result in (methods[method].add_run_results(tuple(members)) if method in methods else members)
    ]
