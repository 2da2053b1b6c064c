"""The intervals of the search that estimates: they hold the rate, computed before, as often as they say.

For each class of DUTs the share of intervals that hold the true rate is shown. Where trials differ by chance it must be
that of the stated confidence, as far as so many draws can tell; where a knee is sharp the interval is that of the loads
tried, and holds the rate every time. What limits the rate must be told right as well. Three broken estimators must fail
the very same check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from scipy.stats import binom

from nicbench.core.result import LimitedBy
from nicbench.search.base import NDR, PDR, Goal, Limits, Measure, Outcome, Sample
from nicbench.search.estimate import EstimateSearch

from . import _classes
from ._classes import Subject, subjects

GOALS = (NDR, PDR)
TRIAL_S = 1.0
CONFIDENCE = 0.95
BY_CHANCE = 1e-3
"""A sound estimator fails the check so seldom."""
CERTAIN = ("sharp knee", "linear loss", "rare loss", "tester saturates", "tester falls short")
UNCERTAIN = ("soft knee", "noise", "neighbour", "recorded neighbour", "policer beside a neighbour")
RIGHT = 0.99
"""The share of the outcomes that must tell right whether the DUT limits the rate."""
FEW, MANY, TO_BE_FOUND_OUT = 4, 170, 40


def truth_of(subject: Subject, goal: Goal) -> float:
    """The load at which half of the trials of one second meet the goal, on a dedicated core."""
    reachable = min(subject.maximum_frames_per_s, subject.ceiling_frames_per_s or subject.maximum_frames_per_s)
    if subject.dut.noise:
        # Normally distributed: the median is that without noise.
        subject = replace(subject, dut=replace(subject.dut, noise=0.0))
    return min(reachable, subject.truth(goal))


def holds(outcome: Outcome, truth: float) -> bool:
    rate = outcome.rate
    grain = _classes.PRECISION / 10
    if rate.value is None or rate.lower is None:
        return False
    return rate.lower <= truth * (1.0 + grain) and (rate.upper is None or rate.upper >= truth * (1.0 - grain))


def is_right(outcome: Outcome, subject: Subject, goal: Goal) -> bool:
    """Whether an outcome tells what limits the rate; either is right where both limits are within the precision."""
    line_rate = subject.maximum_frames_per_s
    most = line_rate * subject.sent_share
    reachable = min(most, subject.ceiling_frames_per_s or most)
    truth = (
        subject.dut.capacity_frames_per_s
        if subject.neighbour
        else replace(subject, maximum_frames_per_s=10.0 * most, ceiling_frames_per_s=None, sent_share=1.0).truth(goal)
    )
    if abs(truth / reachable - 1.0) < 2.0 * _classes.PRECISION:
        return True
    other = LimitedBy.TESTER if reachable < line_rate else LimitedBy.LINE_RATE
    return outcome.rate.limited_by is (LimitedBy.DUT if truth < reachable else other)


def held(search: EstimateSearch, members: Sequence[Subject], right: list[bool] | None = None) -> list[bool]:
    """Of each DUT and goal, whether the interval holds the rate; ``right`` gets whether its limit is told right."""
    found = []
    right = [] if right is None else right
    for subject in members:
        outcomes = search.run(subject.machine().measure, GOALS, subject.limits(TRIAL_S, None))
        found += [holds(outcomes[goal.name], truth_of(subject, goal)) for goal in GOALS]
        right.extend(is_right(outcomes[goal.name], subject, goal) for goal in GOALS)
    return found


def assert_intervals_hold_the_rate(found: Sequence[bool]) -> None:
    """Few enough misses for the confidence, were they independent; the two goals of one DUT are not, so half count."""
    misses, count = found.count(False) / 2.0, len(found) / 2.0
    most = binom.isf(BY_CHANCE, int(count), 1.0 - CONFIDENCE)
    assert misses <= most, f"{misses:.0f} of {count:.0f} intervals miss"


@pytest.fixture(autouse=True)
def _trials_of_one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_classes, "FULL_S", TRIAL_S)


@pytest.mark.parametrize("name", [*CERTAIN, *UNCERTAIN])
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=[pytest.mark.acceptance, pytest.mark.slow])])
def test_intervals_hold_the_true_rate_as_often_as_they_say(
    name: str, count: int, session_seed: int, record_property: Callable[[str, object], None]
) -> None:
    right: list[bool] = []
    found = held(EstimateSearch(), subjects(session_seed, count)[name], right)
    shown = f"{found.count(True)} of {len(found)} intervals hold the rate, {right.count(True)} tell its limit"
    record_property("shown", f"{name}: {shown}")
    assert_intervals_hold_the_rate(found)
    assert right.count(False) <= (1.0 - RIGHT) * len(right), shown
    if name == "noise" and count == MANY:
        assert found.count(False) >= binom.ppf(BY_CHANCE, len(found), 1.0 - CONFIDENCE), "intervals are too wide"


class IgnoresTheCore(EstimateSearch):
    """Broken: it takes every trial for one of a dedicated core."""

    kind = "ignores_the_core"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        def blind(load: float, duration_s: float) -> Sample:
            return measure(load, duration_s).model_copy(update={"slow_share": None, "looks": 0})

        return super().run(blind, goals, limits)


class IsTooSure(EstimateSearch):
    """Broken: its variance is too small, so that its intervals are a quarter as wide as they should be."""

    kind = "is_too_sure"

    def conclude(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
        outcome = super().conclude(samples, goal, limits)
        rate = outcome.rate
        if rate.value is None or rate.lower is None or rate.upper is None:
            return outcome
        lower, upper = ((3.0 * rate.value + end) / 4.0 for end in (rate.lower, rate.upper))
        return outcome.model_copy(update={"rate": rate.model_copy(update={"lower": lower, "upper": upper})})


class IgnoresCensoring(EstimateSearch):
    """Broken: it takes the load of a trial that passed for the most that the DUT could carry."""

    kind = "ignores_censoring"

    def conclude(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
        counted = []
        for sample in samples:
            if goal.passed_by(sample):
                lost = int(sample.counts.sent * goal.loss_ratio) + 1
                received = sample.counts.sent - lost
                counts = sample.counts.model_copy(update={"received": received, "lost": lost})
                sample = sample.model_copy(update={"counts": counts})
            counted.append(sample)
        self._fits.clear()
        outcome = super().conclude(counted, goal, limits)
        self._fits.clear()
        return outcome


@pytest.mark.sampled(1)
@pytest.mark.parametrize("broken", [IgnoresTheCore, IsTooSure, IgnoresCensoring])
def test_a_broken_estimator_fails_the_check(broken: type[EstimateSearch], session_seed: int) -> None:
    name = "neighbour" if broken is IgnoresTheCore else "noise"
    found = held(broken(), subjects(session_seed, TO_BE_FOUND_OUT)[name])
    with pytest.raises(AssertionError, match="intervals miss"):
        assert_intervals_hold_the_rate(found)
