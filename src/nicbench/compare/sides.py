"""Two or more sides, and for each point the values that all runs of each have of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nicbench.compare.points import MainValue, Point, hide_common_parameters, main_values_of, point_of
from nicbench.core.registry import find
from nicbench.core.result import Result, Value
from nicbench.methods.base import Method


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
        for result in (methods[method].by_runs(tuple(members)) if method in methods else members)
    ]
