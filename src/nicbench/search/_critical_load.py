"""Searches for the critical load, at which a given small share of the frames is lost in the long run (PLRsearch).

It follows draft-vpolak-bmwg-plrsearch-03, as FD.io's CSIT uses it for soak tests. The loss is modelled by a curve of
one of two shapes, and every trial updates what is known of the curve (stats/critical_load.py). The next trial's load
lies near the estimate, where it is most informative; each trial is a little longer than the one before, until the time
is over. The time counted is that of the trials as asked for, not read from a clock, so that a resumed search asks for
the same loads.

Both shapes assume that the DUT's loss only depends on the load, and grows with it. ``find_inconsistent_loss`` finds
trials that contradict this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.lists import without_none
from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy
from nicbench.core.units import format_digits
from nicbench.search._zones import brings_nothing_back, reachable_frames_per_s
from nicbench.search.base import CLOSE, Ended, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.stats.critical_load import MODELS, CriticalLoad, Posterior
from nicbench.stats.intervals import binomial_tail

COVERAGE = 0.99
"""The share of each model's posterior inside its interval: between the quantiles at 0.5 and 99.5 %."""
POINTS = 400
FIRST_LOADS = 4
DISTURBED_SHARE = 0.5
"""The weight of a disturbed trial; an undisturbed one's is 1."""
# Two trials contradict each other where the probability of that by chance is below this.
_BY_CHANCE = 1e-9
# The load of a trial is no better known than to a frame of its duration.
_RESOLUTION_FRAMES_PER_S = 1.0
# Significant digits of a load, so that a resumed search asks for the same load in spite of rounding.
_DIGITS = 9
# Where fewer lost frames than this are expected at the target, there may be none at all.
_FRAMES_WANTED = 3.0


class Course(Frozen):
    """How the time is spent: the first trial's duration, how much longer each next one is, the pause after each."""

    total_s: float = Field(gt=0.0)
    first_trial_s: float = Field(gt=0.0)
    longer_by_s: float = Field(ge=0.0)
    pause_s: float = Field(ge=0.0)

    def trial_s(self, number: int) -> float:
        """Returns the duration of the trial with this number, from 0."""
        return self.first_trial_s + number * self.longer_by_s


class Estimate(Frozen):
    """The estimate after one trial; ``seconds`` is the time of all trials so far, with their pauses."""

    seconds: float
    trials: int
    load_frames_per_s: float
    loss_ratio: float
    models: dict[str, CriticalLoad]

    @property
    def average_frames_per_s(self) -> float:
        """The mean of both models' averages."""
        return sum(model.average_frames_per_s for model in self.models.values()) / len(self.models)

    @property
    def lower_frames_per_s(self) -> float:
        """The lower of both models' bounds: the difference between the models is part of the uncertainty."""
        lowest = min(model.lower_frames_per_s for model in self.models.values())
        return float(max(0.0, np.floor(lowest) - _RESOLUTION_FRAMES_PER_S))

    @property
    def upper_frames_per_s(self) -> float:
        """The higher of both models' bounds."""
        highest = max(model.upper_frames_per_s for model in self.models.values())
        return float(np.ceil(highest) + _RESOLUTION_FRAMES_PER_S)


class CriticalLoadSearch(Search):
    """Searches for one goal with a loss ratio above 0; ``estimates`` shows how the answer narrowed."""

    kind = "critical-load"

    def __init__(self, course: Course, seed: int) -> None:
        super().__init__()
        self.estimates: list[Estimate] = []
        self.notes: tuple[str, ...] = ()
        self._course = course
        self._seed = seed

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Measures until the time is over, or no load brings a frame back; ``notes`` then says what speaks against it.

        A trial counts at the load that was sent. No more is asked for than the tester is known to send.
        """
        (goal,) = goals
        scale, samples = limits.maximum_load_frames_per_s, list[Sample]()
        posteriors = {
            name: Posterior(model, scale, POINTS, np.random.default_rng([self._seed, number]))
            for number, (name, model) in enumerate(MODELS.items())
        }
        self.estimates, spent_s = [], 0.0
        while True:
            duration_s = self._course.trial_s(len(samples))
            spent_s += duration_s + self._course.pause_s
            if samples and spent_s > self._course.total_s * (1.0 + CLOSE):
                break
            most = max(limits.minimum_load_frames_per_s, reachable_frames_per_s(samples, limits))
            if most < limits.maximum_load_frames_per_s:
                limits = limits.replace(maximum_load_frames_per_s=most, maximum_limited_by=LimitedBy.TESTER)
            samples.append(measure(next_load(samples, self.estimates, goal, limits), duration_s))
            self.estimates.append(_update(posteriors, samples[-1], goal, spent_s, len(samples)))
            if _is_dead(samples, limits):
                break
        self.notes = find_notes(samples, goal)
        return {goal.name: outcome_of(samples, self.estimates, goal, limits)}

    def conclude(self, samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Returns the last estimate of a search that was interrupted; none before the first."""
        (goal,) = goals
        if not self.estimates:
            nothing = Bounded(value=None, n=len(samples), reason_null="the run was interrupted before an estimate")
            return {goal.name: Outcome(goal=goal.name, rate=nothing, is_settled=False, ended=Ended.STOPPED)}
        outcome = outcome_of(samples, self.estimates, goal, limits)
        return {goal.name: outcome.replace(is_settled=False, ended=Ended.STOPPED)}


def next_load(samples: Sequence[Sample], estimates: Sequence[Estimate], goal: Goal, limits: Limits) -> float:
    """Returns the middle of the possible loads, then the maximum, then twice what came through, then the estimate.

    After trials without loss the load moves towards the lowest load above the estimate that lost frames, and the closer
    the more such trials there were in a row: a trial without loss is less informative than one with a little.
    """
    least, most = limits.minimum_load_frames_per_s, limits.maximum_load_frames_per_s
    lossy = [sample for sample in samples if sample.counts.loss_ratio > goal.loss_ratio]
    if len(samples) < FIRST_LOADS:
        if len(samples) < 2:
            load = (least + most) / 2.0 if not samples else most
        else:
            load = min((one.load_frames_per_s * (1.0 - one.counts.loss_ratio) for one in lossy), default=most)
    else:
        load = estimates[-1].average_frames_per_s
        above = [sample.load_frames_per_s for sample in lossy if sample.load_frames_per_s > load]
        whole = 0
        while whole < len(samples) and not samples[-1 - whole].counts.failed:
            whole += 1
        if whole and above:
            load += (min(above) - load) * (1.0 - 0.5**whole)
    return float(f"{min(most, max(least, load)):.{_DIGITS}g}")


def outcome_of(samples: Sequence[Sample], estimates: Sequence[Estimate], goal: Goal, limits: Limits) -> Outcome:
    """Converts the last estimate to an outcome, limited to what could be offered, or with the reason for none."""
    return Outcome(
        goal=goal.name,
        rate=_rate(samples, estimates[-1], limits),
        is_settled=True,
        ended=Ended.TIME,
        trials=len(samples),
        disturbed=any(not sample.is_valid for sample in samples),
    )


def find_notes(samples: Sequence[Sample], goal: Goal) -> tuple[str, ...]:
    """Describes what speaks against the answer of these trials."""
    disturbed = sum(not sample.is_valid for sample in samples)
    return (
        *((f"{disturbed} of {len(samples)} trials were disturbed and count half",) if disturbed else ()),
        *without_none((find_inconsistent_loss(samples), _few_frames(samples, goal))),
    )


def find_inconsistent_loss(samples: Sequence[Sample]) -> str | None:
    """Describes two trials of which the one at the lower load lost more than chance explains; None if there are
    none.
    """
    worst: tuple[float, Sample, Sample] | None = None
    for one in samples:
        for other in samples:
            if one.load_frames_per_s >= other.load_frames_per_s or one.counts.loss_ratio <= other.counts.loss_ratio:
                continue
            mine, theirs = one.counts.failed, other.counts.failed
            share = one.counts.sent / (one.counts.sent + other.counts.sent)
            # At equal loss ratios the first trial's share of the losses would be binomially distributed.
            chance = binomial_tail(mine - 1, mine + theirs, share) if mine else 1.0
            apart = one.counts.loss_ratio - other.counts.loss_ratio
            if chance < _BY_CHANCE and (worst is None or apart > worst[0]):
                worst = (apart, one, other)
    if worst is None:
        return None
    _, one, other = worst
    return (
        f"a trial of {one.duration_s:g} s at {one.load_frames_per_s:.0f} frames/s lost {_share(one.counts.loss_ratio)} "
        f"of its frames, and one of {other.duration_s:g} s at {other.load_frames_per_s:.0f} frames/s only "
        f"{_share(other.counts.loss_ratio)}: the DUT does not lose frames alike at all times (it has several states, "
        "bursts, or a buffer that long trials fill), which both models assume; the interval may not hold"
    )


def _update(posteriors: Mapping[str, Posterior], sample: Sample, goal: Goal, seconds: float, trials: int) -> Estimate:
    counts = sample.counts
    offered = counts.offered
    # The load that was offered, which may be a little below the load asked for.
    load = sample.sent_frames_per_s
    for posterior in posteriors.values():
        posterior.add(load, offered, counts.failed, 1.0 if sample.is_valid else DISTURBED_SHARE)
    return Estimate(
        seconds=seconds,
        trials=trials,
        load_frames_per_s=sample.load_frames_per_s,
        loss_ratio=counts.loss_ratio,
        models={name: one.critical_load(goal.loss_ratio, COVERAGE) for name, one in posteriors.items()},
    )


def _rate(samples: Sequence[Sample], last: Estimate, limits: Limits) -> Bounded:
    least, most = limits.minimum_load_frames_per_s, limits.maximum_load_frames_per_s
    lower, value, upper = last.lower_frames_per_s, last.average_frames_per_s, last.upper_frames_per_s
    trials = len(samples)
    if brings_nothing_back(samples):
        lowest = min(sample.load_frames_per_s for sample in samples)
        reason = f"{PASSES_NOTHING}: no frame came back at {lowest:.0f} frames/s, the lowest load tried"
        return Bounded(
            value=None, upper=lowest, limited_by=LimitedBy.DUT, n=trials, reason_null=reason, passes_nothing=True
        )
    if value < least:
        reason = f"it is estimated to lie below {least:.0f} frames/s, the lowest load that is tried"
        return Bounded(value=None, upper=max(upper, least), limited_by=LimitedBy.DUT, n=trials, reason_null=reason)
    if upper > most * (1.0 + CLOSE):
        # Only a lower bound is known: the critical load may lie beyond what can be offered.
        reached = lower >= most * (1.0 - CLOSE)
        lower = min(lower, most)
        return Bounded(value=lower, lower=lower, limited_by=limits.maximum_limited_by if reached else None, n=trials)
    return Bounded(value=value, lower=lower, upper=upper, limited_by=LimitedBy.DUT, n=trials)


def _is_dead(samples: Sequence[Sample], limits: Limits) -> bool:
    """Returns whether no frame came back at any load, including the lowest."""
    least = limits.minimum_load_frames_per_s
    tried = any(sample.load_frames_per_s <= least * (1.0 + CLOSE) for sample in samples)
    return tried and all(sample.counts.received == 0 for sample in samples)


def _few_frames(samples: Sequence[Sample], goal: Goal) -> str | None:
    offered = sum(sample.counts.offered for sample in samples)
    if offered * goal.loss_ratio >= _FRAMES_WANTED:
        return None
    return (
        f"{offered} frames were offered in all, too few to see a loss ratio of {_share(goal.loss_ratio)}: the estimate "
        "is what the models make of the losses at higher loads"
    )


def _share(ratio: float) -> str:
    """Three digits of a ratio, without a power of ten."""
    return format_digits(ratio)
