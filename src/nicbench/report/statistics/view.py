"""All statistics of a page, from its results alone: computed once, printed by ``statistics.html.j2``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nicbench.compare.claims import Basis
from nicbench.compare.compared import Compared, Comparisons, compared
from nicbench.compare.points import Point, seed_of
from nicbench.compare.sides import Side, in_suitable_units, matched
from nicbench.core.plan import Plan
from nicbench.core.result import Summary
from nicbench.report.statistics import drifting
from nicbench.report.statistics.drifting import Drifting
from nicbench.report.statistics.over_runs import OverRuns, TestStatistics, over_runs
from nicbench.stats.bootstrap import Asked


@dataclass(frozen=True, slots=True)
class StatisticsView:
    """``comparisons`` is None of a single configuration. ``seed`` is that of every interval."""

    seed: int
    resamples: int
    tests: tuple[TestStatistics, ...]
    comparisons: Comparisons | None
    drift: Drifting | None
    drift_within: Drifting | None

    @property
    def differences(self) -> tuple[Compared, ...]:
        """Comparisons of which there is something to say beyond that there are too few runs."""
        found = self.comparisons.all if self.comparisons else ()
        return found if any(one.claim.basis is not Basis.TOO_FEW for one in found) else ()

    @property
    def compared_values(self) -> int:
        """How many main values were compared."""
        return len({one.value.name for one in self.differences})

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to print."""
        return not (self.tests or self.differences or self.drift_within)

    def of(self, point: Point, value: str) -> tuple[Compared, ...]:
        """What was compared at a point in one main value."""
        found = self.comparisons.all if self.comparisons else ()
        return tuple(one for one in found if one.point == point and one.value.name == value)


def statistics_view(summary: Summary, tests: Mapping[str, str], plan: Plan | None, run_id: str) -> StatisticsView:
    """``tests`` maps a result's id to the name of its test."""
    counted = summary.counted
    names = summary.configurations or tuple(dict.fromkeys(result.configuration for result in counted))
    sides = [Side(name, tuple(one for one in counted if one.configuration == name)) for name in names]
    points = in_suitable_units(matched(sides, tests))
    asked = Asked(seed=seed_of(run_id))
    in_rounds = bool(plan and plan.turns) and not summary.imported
    return StatisticsView(
        seed=asked.seed,
        resamples=asked.resamples,
        tests=over_runs(points, names, asked),
        comparisons=compared(sides, seed=asked.seed, in_rounds=in_rounds, points=points) if len(sides) > 1 else None,
        drift=drifting.over_runs(points, names),
        drift_within=drifting.within_runs(counted),
    )


__all__ = ["OverRuns", "StatisticsView", "statistics_view"]
