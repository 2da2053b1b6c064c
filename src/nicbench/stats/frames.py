"""Rates of film frames against a target, by run and over runs: how many editors one server feeds (docs/studies.md).

A frame is one of a film here, stored in a file of its own. An *instance* stands for one editor; a *run* is one
repetition with a number of instances at once. All rates are frames per second. The rate of an instance or run that
could not be measured is unknown (``None``): it never meets a target, and no sum is made without it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.reading import sum_of_known
from nicbench.core.result import Result

TARGET_FRAMES_PER_S: Final = 24.0
"""The default target of one instance: the frame rate of film (docs/studies.md)."""
TOLERANCE_RATIO: Final = 0.01
_ROUNDING: Final = 1e-12
"""The relative rounding error allowed: 23.76 counts as 99 % of 24, whatever the product is in binary."""


@frozen
class Target:
    """The rate that an instance should reach; met from (1 - ``tolerance_ratio``) of it on, 0 <= tolerance < 1."""

    frames_per_s: float = TARGET_FRAMES_PER_S
    tolerance_ratio: float = TOLERANCE_RATIO

    def __post_init__(self) -> None:
        if not (self.frames_per_s > 0.0 and math.isfinite(self.frames_per_s)):
            raise ValueError(f"a target is above 0 frames/s, not {self.frames_per_s}")
        if not 0.0 <= self.tolerance_ratio < 1.0:
            raise ValueError(f"a tolerance is from 0 to below 1, not {self.tolerance_ratio}")

    def for_instances(self, instances: int) -> float:
        """Returns the target of a number of instances: the row "Target" of the published tables."""
        return self.frames_per_s * instances

    def is_met(self, frames_per_s: float | None, instances: int = 1) -> bool:
        """Returns whether the sum over a number of instances meets the target; an unknown one does not."""
        least = (1.0 - self.tolerance_ratio) * self.for_instances(instances)
        return frames_per_s is not None and frames_per_s >= least * (1.0 - _ROUNDING)


@frozen
class Instance:
    """What one instance did in one run.

    ``due_frames`` is how many frames the schedule had for it, ``dropped_frames`` how many of those were late; both are
    None where it ran without a schedule, or nobody counted.
    """

    frames_per_s: float | None
    dropped_frames: int | None = None
    due_frames: int | None = None

    def __post_init__(self) -> None:
        _refuse_impossible(self.frames_per_s)
        dropped, due = self.dropped_frames or 0, self.due_frames
        if dropped < 0 or (due is not None and not dropped <= due):
            raise ValueError(f"{self.dropped_frames} dropped frames of {due} that were due cannot be")


@frozen
class RunFigures:
    """The figures of one run: the rows Sum, Average and Std. Deviation (of the population) of the published tables.

    ``is_met`` uses the sum, as published. With a limiter that overshoots, instances can make up for one another:
    ``instances_met`` counts those that met the target themselves; None where only their sum is known. ``fairness`` is
    Jain's index.
    """

    instances: int
    sum_frames_per_s: float | None
    average_frames_per_s: float | None
    standard_deviation_frames_per_s: float | None
    minimum_frames_per_s: float | None
    maximum_frames_per_s: float | None
    fairness: float | None
    is_met: bool
    instances_met: int | None
    dropped_frames: int | None
    due_frames: int | None

    @property
    def every_instance_met(self) -> bool | None:
        """Whether every instance met the target itself; None where that is not known."""
        return None if self.instances_met is None else self.instances_met == self.instances


@frozen
class FiguresOverRuns:
    """All runs with one number of instances: Average, Median and Target of the published summary, and targets met.

    Average, median, minimum and maximum are of the sums of the ``runs_known`` runs. ``met_in_median_run`` counts an
    unknown run as the lowest of all. ``instances_counted`` covers the instances of all runs. Figures of single
    instances are ``None`` where a run has only their sum.
    """

    instances: int
    runs: int
    runs_known: int
    average_frames_per_s: float | None
    median_frames_per_s: float | None
    minimum_frames_per_s: float | None
    maximum_frames_per_s: float | None
    target_frames_per_s: float
    runs_met: int
    runs_met_by_every_instance: int | None
    met_in_median_run: bool
    instances_counted: int
    instances_met: int | None
    dropped_frames: int | None
    due_frames: int | None

    @property
    def runs_met_ratio(self) -> float:
        """The share of all runs, 0..1, whose sum met the target."""
        return self.runs_met / self.runs

    @property
    def instances_met_ratio(self) -> float | None:
        """The share of the instances of all runs, 0..1, that met the target."""
        return None if self.instances_met is None else self.instances_met / self.instances_counted

    @property
    def dropped_ratio(self) -> float | None:
        """The share of the frames due, 0..1, that were dropped; None where nobody counted, or none was due."""
        if self.dropped_frames is None or not self.due_frames:
            return None
        return self.dropped_frames / self.due_frames


@frozen
class HeldInstances:
    """The largest number of instances tried that met the target.

    ``instances`` is 0 where not even one did, and None where the fewest that were tried did not and fewer might.
    ``gaps`` are smaller numbers that did not meet it although this one did: chance decides there (a bond's hashing).
    """

    instances: int | None
    most_tried: int
    gaps: tuple[int, ...] = ()

    @property
    def is_at_least(self) -> bool:
        """Whether the largest number tried met the target, so that more instances might."""
        return self.instances == self.most_tried


@frozen
class SustainedInstances:
    """The numbers of instances sustained: by the sum in every run and in the median run (as the study counts), and by
    every instance.

    ``by_every_instance`` is the strictest: each instance of each run met the target itself; None where that is not
    known for every number of instances tried.
    """

    in_every_run: HeldInstances
    in_median_run: HeldInstances
    by_every_instance: HeldInstances | None


def fairness(rates: Sequence[float]) -> float | None:
    """Computes Jain's index: (sum of x)^2 / (n * sum of x^2), 1 where all are equal and 1/n where one has all.

    Jain, Chiu, Hawe: "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984. None where all rates
    are 0, and without values.
    """
    most = max(rates, default=0.0)
    if most <= 0.0:
        return None
    shares = [rate / most for rate in rates]  # so that squares neither overflow nor vanish
    return math.fsum(shares) ** 2 / (len(shares) * math.fsum(share * share for share in shares))


def figures_of_run(instances: Sequence[Instance], target: Target) -> RunFigures:
    """Computes the figures of a run from its instances; ValueError without instances."""
    if not instances:
        raise ValueError("a run has at least one instance")
    rates = [one.frames_per_s for one in instances if one.frames_per_s is not None]
    whole = rates if len(rates) == len(instances) else []
    total = math.fsum(whole) if whole else None
    return RunFigures(
        instances=len(instances),
        sum_frames_per_s=total,
        average_frames_per_s=None if total is None else total / len(whole),
        standard_deviation_frames_per_s=statistics.pstdev(whole) if whole else None,
        minimum_frames_per_s=min(whole, default=None),
        maximum_frames_per_s=max(whole, default=None),
        fairness=fairness(whole),
        is_met=target.is_met(total, len(instances)),
        instances_met=sum(target.is_met(one.frames_per_s) for one in instances),
        dropped_frames=sum_of_known(one.dropped_frames for one in instances),
        due_frames=sum_of_known(one.due_frames for one in instances),
    )


def figures_of_sum(instances: int, sum_frames_per_s: float | None, target: Target) -> RunFigures:
    """Computes the figures of a run of which only the sum is known, as in the published summaries."""
    if instances < 1:
        raise ValueError(f"a run has at least one instance, not {instances}")
    _refuse_impossible(sum_frames_per_s)
    return RunFigures(
        instances=instances,
        sum_frames_per_s=sum_frames_per_s,
        average_frames_per_s=None if sum_frames_per_s is None else sum_frames_per_s / instances,
        standard_deviation_frames_per_s=None,
        minimum_frames_per_s=None,
        maximum_frames_per_s=None,
        fairness=None,
        is_met=target.is_met(sum_frames_per_s, instances),
        instances_met=None,
        dropped_frames=None,
        due_frames=None,
    )


def summarise_run_figures(runs: Sequence[RunFigures], target: Target) -> FiguresOverRuns:
    """Summarises runs with the same number of instances; ValueError without runs, and where the numbers differ."""
    numbers = sorted({run.instances for run in runs})
    if len(numbers) != 1:
        found = ", ".join(map(str, numbers)) or "no run"
        raise ValueError(f"runs to be summed up have the same number of instances; found: {found}")
    (instances,) = numbers
    sums = [run.sum_frames_per_s for run in runs if run.sum_frames_per_s is not None]
    pessimistic_median = statistics.median(
        -math.inf if run.sum_frames_per_s is None else run.sum_frames_per_s for run in runs
    )
    return FiguresOverRuns(
        instances=instances,
        runs=len(runs),
        runs_known=len(sums),
        average_frames_per_s=math.fsum(sums) / len(sums) if sums else None,
        median_frames_per_s=statistics.median(sums) if sums else None,
        minimum_frames_per_s=min(sums, default=None),
        maximum_frames_per_s=max(sums, default=None),
        target_frames_per_s=target.for_instances(instances),
        runs_met=sum(run.is_met for run in runs),
        runs_met_by_every_instance=sum_of_known(run.every_instance_met for run in runs),
        met_in_median_run=target.is_met(pessimistic_median, instances),
        instances_counted=instances * len(runs),
        instances_met=sum_of_known(run.instances_met for run in runs),
        dropped_frames=sum_of_known(run.dropped_frames for run in runs),
        due_frames=sum_of_known(run.due_frames for run in runs),
    )


def find_sustained(tried: Iterable[FiguresOverRuns]) -> SustainedInstances | None:
    """Finds the numbers of instances sustained, from one summary for each; None where nothing was tried.

    All summaries must be of one direction and configuration.
    """
    ordered = sorted(tried, key=lambda one: one.instances)
    if not ordered:
        return None
    if len({one.instances for one in ordered}) < len(ordered):
        raise ValueError("there is one summary for each number of instances; some number has several")
    strictest = [(one.instances, one.runs_met_by_every_instance == one.runs) for one in ordered]
    is_known = all(one.runs_met_by_every_instance is not None for one in ordered)
    return SustainedInstances(
        in_every_run=_find_held([(one.instances, one.runs_met == one.runs) for one in ordered]),
        in_median_run=_find_held([(one.instances, one.met_in_median_run) for one in ordered]),
        by_every_instance=_find_held(strictest) if is_known else None,
    )


def _find_held(tried: Sequence[tuple[int, bool]]) -> HeldInstances:
    """Finds the largest number that held; ``tried`` rises by the number of instances."""
    fewest, most = tried[0][0], tried[-1][0]
    largest = max((instances for instances, held in tried if held), default=None)
    if largest is None:
        return HeldInstances(0 if fewest == 1 else None, most)
    return HeldInstances(
        largest, most, tuple(instances for instances, held in tried if instances < largest and not held)
    )


def _refuse_impossible(frames_per_s: float | None) -> None:
    if frames_per_s is not None and not (frames_per_s >= 0.0 and math.isfinite(frames_per_s)):
        raise ValueError(f"a rate is 0 frames/s or more, not {frames_per_s}; an unknown one is None")


# Groups results of film frames into runs, measured and imported ones alike, each with its target.
#
# A result is of an instance or of a whole run (``part``). Its run is ``Result.run`` where nicbench measured, and the
# parameter ``run`` where the result was imported. Warm-up runs are left out.


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


@frozen
class FilmRun:
    """One run at a point. ``instances`` has the result of each instance in order, None where one is missing.

    It is empty where only their sum is known; ``whole`` is ``None`` where there are only instances.
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
        known_of_each = without_none(each)
        return math.fsum(known_of_each) if each and len(known_of_each) == len(each) else None


@frozen
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
        """The summary over the runs; its figures about targets mean nothing without a target."""
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
