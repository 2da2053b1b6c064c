"""Groups results of film frames into runs, measured and imported ones alike, each with its target.

A result is of an instance or of a whole run (``part``). Its run is ``Result.run`` where nicbench measured, and the
parameter ``run`` where the result was imported. Warm-up runs are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nicbench.core.result import Result
from nicbench.stats.frames import (
    FiguresOverRuns,
    Instance,
    RunFigures,
    Target,
    figures_of_run,
    figures_of_sum,
    summarise_run_figures,
)

RATE: Final = "frames_per_s"
SUM: Final = "sum_frames_per_s"
BYTES: Final = "bytes_per_s"
TARGET: Final = "target_frames_per_s"
TOLERANCE: Final = "tolerance_percent"
INSTANCES: Final = "instances"
RUNS: Final = "runs"
SUMMARY: Final = "summary"
"""Parts: results of single instances, of all instances of a run together, and a source's summary of all its runs."""

Point = tuple[str, str | None, int]
"""Configuration, direction, and number of instances."""

_POSITION_PARAMETERS: Final = frozenset({"instances", "run", "instance"})


@dataclass(frozen=True, slots=True)
class FilmRun:
    """One run at a point. ``instances`` has the result of each instance in order, None where one is missing.

    It is empty where only their sum is known; ``whole`` is None where there are only instances.
    """

    run: int
    figures: RunFigures
    whole: Result | None
    instances: tuple[Result | None, ...]

    @property
    def bytes_per_s(self) -> float | None:
        """The rate of all instances together; None where that of one is not known."""
        if self.whole is not None and (known := trusted_number(self.whole, BYTES)) is not None:
            return known
        each = [None if one is None else trusted_number(one, BYTES) for one in self.instances]
        known_of_each = [value for value in each if value is not None]
        return math.fsum(known_of_each) if each and len(known_of_each) == len(each) else None


@dataclass(frozen=True, slots=True)
class TriedPoint:
    """All runs at a point, in their order. Without a ``target`` nothing was limited, and nothing counts as met.

    ``is_assumed`` says that the results name no target and the default is used.
    """

    instances: int
    target: Target | None
    runs: tuple[FilmRun, ...]
    is_assumed: bool = False

    @property
    def over(self) -> FiguresOverRuns:
        """The summary over the runs; its figures about targets mean nothing where there is no target."""
        return summarise_run_figures([ran.figures for ran in self.runs], self.target or Target())


def group_by_point(results: Iterable[Result], default: Target | None = None) -> dict[Point, TriedPoint]:
    """Groups results by point into runs, from results of instances where there are such, else from sums.

    The target is that of the results at the point, including those of a summary; where they contradict one another it
    is the strictest, and for imported ones without a target it is ``default``. An instance that has no result is
    unknown, as is a missing rate. Where no run is numbered there is one run. A value that is listed as an erratum
    counts as unknown. A result about no instance, or whose position is an erratum, is left out.
    """
    instances: dict[Point, dict[int, dict[int, Result]]] = {}
    wholes: dict[Point, dict[int, Result]] = {}
    targets: dict[Point, list[Target]] = {}
    for result in results:
        parameters = result.parameters
        if result.warm_up or parameters["instances"] < 1 or _errata(result) & _POSITION_PARAMETERS:
            continue
        point = (result.configuration, parameters.get("direction"), parameters["instances"])
        if (target := _target_of(result)) is not None:
            targets.setdefault(point, []).append(target)
        if parameters["part"] == INSTANCES:
            of_point = instances.setdefault(point, {})
            of_point.setdefault(result.run_number or 1, {})[parameters["instance"]] = result
        elif parameters["part"] == RUNS and _is_of_the_sum(result):
            wholes.setdefault(point, {})[result.run_number or 1] = result
    return {
        point: _group_runs(
            point[2], instances.get(point, {}), wholes.get(point, {}), _strictest(targets.get(point, [])), default
        )
        for point in dict.fromkeys((*instances, *wholes))
    }


def runs_of(results: Iterable[Result], default: Target) -> dict[Point, tuple[RunFigures, ...]]:
    """Returns the figures of ``group_by_point`` alone."""
    return {
        point: tuple(ran.figures for ran in found.runs) for point, found in group_by_point(results, default).items()
    }


def _group_runs(
    number: int,
    instances: Mapping[int, Mapping[int, Result]],
    wholes: Mapping[int, Result],
    stated: Target | None,
    default: Target | None,
) -> TriedPoint:
    every = [*wholes.values(), *(one for of_run_ in instances.values() for one in of_run_.values())]
    target = stated or (default if any(result.imported for result in every) else None)
    runs = []
    for run in sorted({*instances, *wholes}):
        known, whole = instances.get(run, {}), wholes.get(run)
        each = tuple(known.get(place) for place in range(1, number + 1)) if known else ()
        figures = (
            figures_of_run([_instance(one) for one in each], target or Target())
            if each
            else figures_of_sum(number, None if whole is None else trusted_number(whole, SUM), target or Target())
        )
        runs.append(FilmRun(run, figures, whole, each))
    return TriedPoint(number, target, tuple(runs), is_assumed=stated is None and target is not None)


def _strictest(targets: Iterable[Target]) -> Target | None:
    return max(targets, key=lambda target: target.frames_per_s * (1.0 - target.tolerance_ratio), default=None)


def _is_of_the_sum(result: Result) -> bool:
    """Returns whether the result gives the sum of a run, as some rows of sources only print its deviation."""
    if SUM not in result.values:
        return False
    has_sum = result.imported is None or result.values[SUM] is not None
    return has_sum or all(value is None for value in result.values.values())


def _instance(result: Result | None) -> Instance:
    if result is None:
        return Instance(None)
    return Instance(trusted_number(result, RATE), _count(result, "dropped_frames"), _count(result, "due_frames"))


def _target_of(result: Result) -> Target | None:
    """Returns the target of one instance: that of a run is divided by the number of instances."""
    total = trusted_number(result, TARGET)
    of_one = (
        total if total is None or result.parameters["part"] == INSTANCES else total / result.parameters["instances"]
    )
    if of_one is None or not (of_one > 0.0 and math.isfinite(of_one)):
        return None
    of_one = float(f"{of_one:.14g}")  # removes rounding errors, so that 3 * 24.1 / 3 is 24.1
    tolerance = trusted_number(result, TOLERANCE)
    return Target(of_one) if tolerance is None or not 0.0 <= tolerance < 100.0 else Target(of_one, tolerance / 100.0)


def _errata(result: Result) -> frozenset[str]:
    """Returns the names of values that the source prints and that cannot be right."""
    errata = result.imported.errata if result.imported else ()
    return frozenset(erratum.value for erratum in errata if not erratum.stands)


def trusted_number(result: Result, name: str) -> float | None:
    """Returns a value that is a number and no erratum."""
    value = None if name in _errata(result) else result.values.get(name)
    return float(value) if isinstance(value, int | float) else None


def _count(result: Result, name: str) -> int | None:
    value = trusted_number(result, name)
    return None if value is None else round(value)
