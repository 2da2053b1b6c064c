"""How many editors one server feeds: rates of instances against a target, by run and over runs (docs/studies.md). Pure.

A frame is one of a film here, a file of its own. An *instance* stands for one editor; a *run* is one repetition with so
many instances at once. All rates are frames per second. An instance or run that nobody could measure is unknown
(``None``): it never meets a target, and no sum is made of what is left.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

TARGET_FRAMES_PER_S: Final = 24.0
"""Of an instance: the rate of film (docs/studies.md)."""
TOLERANCE_RATIO: Final = 0.01
_OF_THE_ARITHMETIC: Final = 1e-12
"""Relatively: 23.76 is 99 % of 24, however the product comes out in binary."""


@dataclass(frozen=True, slots=True)
class Target:
    """What an instance should reach; it is met at (1 - ``tolerance_ratio``) of it, 0 <= tolerance < 1."""

    frames_per_s: float = TARGET_FRAMES_PER_S
    tolerance_ratio: float = TOLERANCE_RATIO

    def __post_init__(self) -> None:
        if not (self.frames_per_s > 0.0 and math.isfinite(self.frames_per_s)):
            raise ValueError(f"a target is above 0 frames/s, not {self.frames_per_s}")
        if not 0.0 <= self.tolerance_ratio < 1.0:
            raise ValueError(f"a tolerance is from 0 to below 1, not {self.tolerance_ratio}")

    def of(self, instances: int) -> float:
        """The row "Target" of the published tables: so many times that of one instance."""
        return self.frames_per_s * instances

    def is_met(self, frames_per_s: float | None, instances: int = 1) -> bool:
        """By the sum over so many instances; unknown meets nothing."""
        least = (1.0 - self.tolerance_ratio) * self.of(instances)
        return frames_per_s is not None and frames_per_s >= least * (1.0 - _OF_THE_ARITHMETIC)


@dataclass(frozen=True, slots=True)
class Instance:
    """What one instance did in one run.

    ``due_frames`` is how many the schedule had for it, ``dropped_frames`` how many of those missed their time; both are
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


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run: the rows Sum, Average and Std. Deviation (of the population) of the published tables, and beyond.

    ``is_met`` is by the sum, as published. A limiter that overshoots lets instances make up for one another:
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
        """Whether no editor saw less than the target."""
        return None if self.instances_met is None else self.instances_met == self.instances


@dataclass(frozen=True, slots=True)
class OverRuns:
    """All runs with so many instances: Average, Median and Target of the published summary, and who met the target.

    Average, median, minimum and maximum are of the sums of the ``runs_known`` runs. ``met_in_median_run`` takes a run
    that is not known as the lowest of all. ``instances_counted`` are those of all runs together. What is said of single
    instances is None where a run has only their sum.
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
        """0..1 of all runs, by the sum."""
        return self.runs_met / self.runs

    @property
    def instances_met_ratio(self) -> float | None:
        """0..1 of the instances of all runs."""
        return None if self.instances_met is None else self.instances_met / self.instances_counted

    @property
    def dropped_ratio(self) -> float | None:
        """0..1 of the frames that were due; None where nobody counted, or none was due."""
        if self.dropped_frames is None or not self.due_frames:
            return None
        return self.dropped_frames / self.due_frames


@dataclass(frozen=True, slots=True)
class Held:
    """The largest of the numbers of instances tried that held, and what qualifies it.

    ``instances`` is 0 where not even one did, and None where the fewest that were tried did not and fewer might.
    ``gaps`` are smaller numbers that did not hold although this one did: chance decides there (a bond's hashing).
    """

    instances: int | None
    most_tried: int
    gaps: tuple[int, ...] = ()

    @property
    def is_at_least(self) -> bool:
        """Whether the most that were tried held, so that more might."""
        return self.instances == self.most_tried


@dataclass(frozen=True, slots=True)
class Sustained:
    """Streams sustained: by the sum in every run and in the median run, as the study counts; and by every instance.

    ``by_every_instance`` is the strictest: each instance of each run met the target itself; None where that is not
    known of every number of instances tried.
    """

    in_every_run: Held
    in_median_run: Held
    by_every_instance: Held | None


def fairness(rates: Sequence[float]) -> float | None:
    """Jain's index: (sum of x)^2 / (n * sum of x^2), 1 where all are equal and 1/n where one has all.

    Jain, Chiu, Hawe: "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984. None where nobody has
    anything, or there is nobody.
    """
    most = max(rates, default=0.0)
    if most <= 0.0:
        return None
    shares = [rate / most for rate in rates]  # so that squares neither overflow nor vanish
    return math.fsum(shares) ** 2 / (len(shares) * math.fsum(share * share for share in shares))


def of_run(instances: Sequence[Instance], target: Target) -> RunFigures:
    """ValueError where there is no instance."""
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
        dropped_frames=_counted(one.dropped_frames for one in instances),
        due_frames=_counted(one.due_frames for one in instances),
    )


def of_sum(instances: int, sum_frames_per_s: float | None, target: Target) -> RunFigures:
    """A run of which only the sum over its instances is known, as in the published summaries."""
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


def over_runs(runs: Sequence[RunFigures], target: Target) -> OverRuns:
    """Runs with the same number of instances; ValueError where there is none, or the numbers differ."""
    numbers = sorted({run.instances for run in runs})
    if len(numbers) != 1:
        found = ", ".join(map(str, numbers)) or "no run"
        raise ValueError(f"runs to be summed up have the same number of instances; found: {found}")
    (instances,) = numbers
    sums = [run.sum_frames_per_s for run in runs if run.sum_frames_per_s is not None]
    pessimist = statistics.median(-math.inf if run.sum_frames_per_s is None else run.sum_frames_per_s for run in runs)
    return OverRuns(
        instances=instances,
        runs=len(runs),
        runs_known=len(sums),
        average_frames_per_s=math.fsum(sums) / len(sums) if sums else None,
        median_frames_per_s=statistics.median(sums) if sums else None,
        minimum_frames_per_s=min(sums, default=None),
        maximum_frames_per_s=max(sums, default=None),
        target_frames_per_s=target.of(instances),
        runs_met=sum(run.is_met for run in runs),
        runs_met_by_every_instance=_counted(run.every_instance_met for run in runs),
        met_in_median_run=target.is_met(pessimist, instances),
        instances_counted=instances * len(runs),
        instances_met=_counted(run.instances_met for run in runs),
        dropped_frames=_counted(run.dropped_frames for run in runs),
        due_frames=_counted(run.due_frames for run in runs),
    )


def sustained(tried: Iterable[OverRuns]) -> Sustained | None:
    """Of one direction and configuration, one for each number of instances; None where nothing was tried."""
    ordered = sorted(tried, key=lambda one: one.instances)
    if not ordered:
        return None
    if len({one.instances for one in ordered}) < len(ordered):
        raise ValueError("there is one summary for each number of instances; some number has several")
    strictest = [(one.instances, one.runs_met_by_every_instance == one.runs) for one in ordered]
    is_known = all(one.runs_met_by_every_instance is not None for one in ordered)
    return Sustained(
        in_every_run=_held([(one.instances, one.runs_met == one.runs) for one in ordered]),
        in_median_run=_held([(one.instances, one.met_in_median_run) for one in ordered]),
        by_every_instance=_held(strictest) if is_known else None,
    )


def _held(tried: Sequence[tuple[int, bool]]) -> Held:
    """``tried`` rises by the number of instances."""
    fewest, most = tried[0][0], tried[-1][0]
    largest = max((instances for instances, held in tried if held), default=None)
    if largest is None:
        return Held(0 if fewest == 1 else None, most)
    return Held(largest, most, tuple(instances for instances, held in tried if instances < largest and not held))


def _counted(counts: Iterable[int | None]) -> int | None:
    """Their sum; unknown where one is."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _refuse_impossible(frames_per_s: float | None) -> None:
    if frames_per_s is not None and not (frames_per_s >= 0.0 and math.isfinite(frames_per_s)):
        raise ValueError(f"a rate is 0 frames/s or more, not {frames_per_s}; an unknown one is None")
