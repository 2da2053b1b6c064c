"""What is taken of frame rates of instances that somebody else measured (methods.md 1): a run's sum, an instance's own.

The published tables are one CSV of sums, one of instances and one of statistics; a row of any of them is a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nicbench.methods.base import Values
from nicbench.model.import_table import ImportColumn, ImportTable
from nicbench.model.result import Result
from nicbench.stats.frames import Instance, RunFigures, Target, of_run, of_sum

RATE: Final = "frames_per_s"
SUM: Final = "sum_frames_per_s"
_STATISTICS: Final = {
    "average_frames_per_s": ("average", "mean"),
    "median_frames_per_s": ("median",),
    "target_frames_per_s": ("target",),
    "standard_deviation_frames_per_s": ("standard deviation", "std deviation", "stdev", "deviation"),
}

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(value=RATE, name="rate", quantity="media_rate", also=("fps", "instance rate")),
        ImportColumn(value=SUM, name="sum", quantity="media_rate", also=("fps sum", "sum of rates")),
        *(
            ImportColumn(value=value, name=names[0], quantity="media_rate", also=names[1:])
            for value, names in _STATISTICS.items()
        ),
        ImportColumn(value="dropped_frames", name="dropped frames", quantity="count"),
        ImportColumn(value="due_frames", name="due frames", quantity="count"),
        ImportColumn(value="direction", name="direction", quantity="text", tells_apart=True),
        ImportColumn(value="instances", name="instances", quantity="count", tells_apart=True, is_required=True),
        ImportColumn(value="run", name="run", quantity="count", tells_apart=True),
        ImportColumn(value="instance", name="instance", quantity="count", tells_apart=True),
    ),
    any_of=(RATE, SUM, *_STATISTICS),
    rising=(("dropped_frames", "due_frames"), ("instance", "instances")),
    caption="Frames of film each second: of an instance, of all instances of a run, or over the runs.",
)

Point = tuple[str, str | None, int]
"""Configuration, direction, and how many instances."""


def frames_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """With the ``part`` that a row is of: an instance, a run, or what runs come to."""
    of_a_run = "run" in parameters or values.get(SUM) is not None
    part = "instances" if "instance" in parameters else "runs" if of_a_run else "summary"
    return {**parameters, "part": part}, values


def runs_of(results: Iterable[Result], target: Target) -> dict[Point, tuple[RunFigures, ...]]:
    """The runs of each point in their order, from results of instances where there are such, else from sums.

    An instance that the results do not have, of those that its run had, is unknown; and so is a rate that is missing.
    Where no run is numbered there is one. A value that is listed as an erratum is as good as unknown; and a result
    that is about no instance, or whose place among the others cannot be so, is left out.
    """
    rates: dict[Point, dict[int, dict[int, Instance]]] = {}
    sums: dict[Point, dict[int, float | None]] = {}
    for result in results:
        said = result.parameters
        if said["instances"] < 1 or _wrong(result) & _PLACES:
            continue
        point = (result.configuration, said.get("direction"), said["instances"])
        if said["part"] == "instances":
            of_run_so_far = rates.setdefault(point, {}).setdefault(said.get("run", 1), {})
            of_run_so_far[said["instance"]] = Instance(
                _number(result, RATE), _count(result, "dropped_frames"), _count(result, "due_frames")
            )
        elif said["part"] == "runs" and SUM in result.values:
            sums.setdefault(point, {})[said.get("run", 1)] = _number(result, SUM)
    found = {}
    for point in dict.fromkeys((*rates, *sums)):
        instances, of_point = point[2], rates.get(point, {})
        figures = {run: of_sum(instances, total, target) for run, total in sums.get(point, {}).items()}
        unknown = Instance(None)
        for run, known in of_point.items():
            figures[run] = of_run([known.get(number, unknown) for number in range(1, instances + 1)], target)
        found[point] = tuple(figures[run] for run in sorted(figures))
    return found


_PLACES: Final = frozenset({"instances", "run", "instance"})


def _wrong(result: Result) -> frozenset[str]:
    """Names of what its source prints and cannot be so."""
    return frozenset(erratum.value for erratum in result.imported.errata) if result.imported else frozenset()


def _number(result: Result, name: str) -> float | None:
    value = None if name in _wrong(result) else result.values.get(name)
    return float(value) if isinstance(value, int | float) else None


def _count(result: Result, name: str) -> int | None:
    value = _number(result, name)
    return None if value is None else round(value)
