"""Comparisons of two configurations in a study of editors, at one number of instances that is chosen in advance."""

from __future__ import annotations

from nicbench.compare.compared import PointComparison
from nicbench.report.editors.study import OneWay, Study
from nicbench.report.statistics.view import StatisticsView
from nicbench.stats.frames import RUNS


def compared_sentences(study: Study, statistics: StatisticsView) -> tuple[str, ...]:
    """Returns one sentence for each direction and pair of configurations, worded like all other comparisons."""
    found = []
    for way in study.ways:
        for one in _at(study, way, statistics, count_of(way)):
            found.append(f"{one.sentence[:1].upper()}{one.sentence[1:]}.")
    return tuple(found)


def count_of(way: OneWay) -> int:
    """Returns the number of instances at which configurations are compared.

    It is the fewest tried that no configuration sustained in every run, or the most tried if there is no such number.
    With fewer instances the target limits every configuration alike, so none can be faster.
    """
    held = [
        found.in_every_run.instances or 0 for name in way.configurations if (found := way.sustained_instances(name))
    ]
    return next((count for count in way.counts if held and count > max(held)), way.counts[-1])


def _at(study: Study, way: OneWay, statistics: StatisticsView, instances: int) -> tuple[PointComparison, ...]:
    every = statistics.comparisons.all if statistics.comparisons else ()
    return tuple(
        one
        for one in every
        if one.point.test == study.test
        and (said := one.point.parameters).get("part") == RUNS
        and said.get("instances") == instances
        and said.get("direction") == way.direction
    )
