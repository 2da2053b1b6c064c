"""What may be said of two configurations of a study of editors: at one number of instances, chosen before looking."""

from __future__ import annotations

from nicbench.compare.compared import PointComparison
from nicbench.report.editors.study import OneWay, Study
from nicbench.report.statistics.view import StatisticsView
from nicbench.stats.frames_runs import RUNS


def compared_sentences(study: Study, statistics: StatisticsView) -> tuple[str, ...]:
    """For each direction and each two configurations one sentence, in the words of all comparisons."""
    found = []
    for way in study.ways:
        for one in _at(study, way, statistics, count_of(way)):
            found.append(f"{one.sentence[:1].upper()}{one.sentence[1:]}.")
    return tuple(found)


def count_of(way: OneWay) -> int:
    """The fewest instances tried that nobody sustained in every run; where all were sustained, the most.

    Up to there the target limits everybody alike, so that only from there on one can be faster.
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
