"""The default search, in which every trial guides and only a full and even one decides; and MLRsearch, closed by it.

The first trial is a short flood, and the rate that came back is the first guess. Loads just below and just above the
guess settle a DUT with a sharp limit. Where a trial contradicts the guess, the rates that later trials forwarded give a
better one, the losses near the knee do (``_knee.py``), or steps double until the answer is enclosed; then halving ends
the search on any DUT. ``_recording.py`` confirms both ends, ``_zones.py`` makes the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from nicbench.search._knee import NEAR_THE_KNEE, guess_knee, of_the_dut
from nicbench.search._recording import DrivenSearch, Recorder, dead_probe, share_sent
from nicbench.search._zones import Decision, Zones, decide, forwarded_rate, reachable_frames_per_s, read
from nicbench.search.base import CLOSE, Goal, Limits, Measure, Outcome, Sample, SearchOptions

FLOOD_S = 0.3
BELOW, ABOVE = 0.25, 0.7
"""The distance of the next loads from the guess, in precisions: a pass and a failure there are less than one apart."""
WIDE = 4.0
"""Above this ratio of ends the middle is geometric, because precision is relative."""
CREEP = 0.25
"""Where guesses come down little by little, a step is at least this part of the gap."""
NEARBY = 1.05
"""That is, with two failures up to this factor above it."""
STEEPEST = 0.5
"""The highest growth of the rate with the load that a guess follows."""
STEP, RARE_STEP = 2.0, 4.0
"""Steps grow by these factors: the second where they have a long way to go."""
FEW_FRAMES = 10
"""A loss of fewer frames may come at any load."""
FARTHER = 8.0
"""The next load above all rates that came back is as many times farther above them with each load that passes there."""
NEARLY = 4.0
"""A gap of fewer precisions is halved."""
TELLING = 0.05
"""So far below two losses that are alike a third load tells most; half the load, where those two are farther apart."""
ALIKE = 0.6
"""Losses that fall by less than to this part from one load to the next may come at any load."""


class Guided(DrivenSearch):
    """A flood first, then loads close to the rate that came back."""

    kind = "guided"
    how = "every trial guides, and only a full and even one decides: the default search."

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base does; the flood is at most as long as a trial."""
        self.flood_s = min(FLOOD_S, limits.trial_duration_s)
        return super().run(measure, goals, limits)

    def choose(
        self, zones: Zones, gap: tuple[float | None, float | None], samples: Sequence[Sample], limits: Limits
    ) -> float:
        lower, upper = gap
        if upper is None:
            return _above(zones, lower, samples, limits)
        if lower is None:
            return _below(zones, upper, samples, limits)
        return _inside(zones, lower, upper, samples, limits)


def _guess(zones: Zones, samples: Sequence[Sample], limits: Limits) -> float | None:
    """Returns the load that a DUT would just carry by the two trials nearest to the knee that were too much for it: the
    rate that came back may fall with an overload, or grow with the load.
    """
    told = sorted(
        (sample.sent_frames_per_s, rate)
        for sample in samples
        if sample.may_fail and (rate := forwarded_rate(sample, zones.goal, limits)) is not None
    )
    if not told:
        return None
    load, rate = told[0]
    for other, more in told[1:]:
        if other > load * (1.0 + limits.precision):
            slope = min(STEEPEST, (more - rate) / (other - load))
            return (rate - slope * load) / (1.0 - slope)
    return rate


def _above(zones: Zones, lower: float | None, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load above every trial that decides: the highest, or close to what came back of an open one."""
    guess = _guess(zones, samples, limits)
    if guess is None or guess < (lower or 0.0):
        return limits.maximum_load_frames_per_s
    return guess * (1.0 - BELOW * limits.precision if lower is None else 1.0 + ABOVE * limits.precision)


def _below(zones: Zones, upper: float, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load below every trial that failed."""
    if all(not sample.counts.received for sample in samples):
        return dead_probe(limits)
    precision, guess = limits.precision, _guess(zones, samples, limits)
    slight = [sample for sample in of_the_dut(samples) if 0.0 < sample.counts.loss_ratio <= NEAR_THE_KNEE]
    full = [vote for vote in zones.votes if vote.sample.duration_s >= limits.trial_duration_s]
    passed = [vote.load_frames_per_s for vote in full if vote.decision is Decision.PASS]
    failed = sum(vote.load_frames_per_s <= min(passed, default=math.inf) for vote in full) - len(passed[:1])
    is_rare = len(slight) > 1 and all(one.counts.failed < FEW_FRAMES for one in slight)
    step = precision * (RARE_STEP if is_rare else STEP) ** max(0, failed - 1)
    slight.sort(key=lambda one: one.sent_frames_per_s)
    if len(slight) > 1 and _is_alike(*slight[:2]):  # a loss at any load, or one that grows slowly
        apart = slight[1].sent_frames_per_s - slight[0].sent_frames_per_s
        step = 0.5 if apart > TELLING / 2.0 * upper else TELLING
    knee = guess_knee(of_the_dut(samples), zones.goal, limits)
    if knee is not None and 0.5 * upper < knee < upper:
        return min(knee, upper * (1.0 - precision))
    rates = [vote.sample.forwarded_frames_per_s for vote in full if passed and vote.sample.counts.received]
    stepped = min(upper, *rates, math.inf) * (1.0 - min(0.5, step))
    return stepped if guess is None else min(guess * (1.0 - BELOW * precision), stepped)


def _is_alike(lower: Sample, upper: Sample) -> bool:
    """Returns whether the losses at the lower of two loads are at least as frequent as at the upper."""
    few = min(lower.counts.failed, upper.counts.failed) < 5
    return not few and lower.counts.loss_ratio >= ALIKE * upper.counts.loss_ratio


def _inside(zones: Zones, lower: float, upper: float, samples: Sequence[Sample], limits: Limits) -> float:
    """Returns a load between a pass and a failure."""
    precision = limits.precision
    middle = math.sqrt(lower * upper) if upper > WIDE * lower else (lower + upper) / 2.0
    if upper <= lower * (1.0 + NEARLY * precision):
        return middle
    guess = _guess(zones, samples, limits)
    near = [sample for sample in of_the_dut(samples) if lower < sample.sent_frames_per_s <= upper * (1.0 + CLOSE)]
    knee = guess_knee(near, zones.goal, limits)
    if knee is not None and lower * (1.0 + precision) < knee < upper * (1.0 - precision):
        return min(knee, upper - CREEP * (upper - lower))
    if guess is None:
        return middle
    if sum(one.counts.failed > 0 and lower < one.sent_frames_per_s <= NEARBY * upper for one in samples) > 2:
        guess = min(guess, upper - CREEP * (upper - lower))
    passed = [vote for vote in zones.votes if vote.decision is Decision.PASS and vote.load_frames_per_s <= lower]
    share = share_sent(samples)
    asked = [vote.sample.load_frames_per_s * share for vote in passed]
    least = max(lower * (1.0 + BELOW * precision), *asked)
    for load in (guess * (1.0 + ABOVE * precision), guess * (1.0 - BELOW * precision)):
        if least < load < upper * (1.0 - BELOW * precision):
            return load
    if zones.highest_pass is None or zones.highest_pass.load_frames_per_s > lower * (1.0 + CLOSE):
        return middle
    # Above all that passed, and all that came back: further up with every pass that comes near.
    top = max(rate for one in samples if (rate := forwarded_rate(one, zones.goal, limits)) is not None)
    if top > max(asked):
        near_top = sum(load > top * (1.0 - precision) for load in asked)
        return min(middle, top * (1.0 + ABOVE * precision * STEP**near_top))
    return min(middle, lower + max(precision * lower, FARTHER * (max(asked) - top)))


BEYOND_ANY_RUN_S = 1e12


# MLRsearch (RFC 9971, the package ``MLRsearch``): searches for one goal after the other, coarse before fine.
#
# The package chooses the loads of the short trials; the answer is made of all samples by the rule of every search, and
# what the package leaves open is closed, confirmed and validated as ``guided`` does. Three properties of the package
# are kept from affecting results:
#
# - it adds unsent frames to the loss, so it is only given frames that the tester offered, and where the tester falls
#   short the package begins anew with what can be sent as the maximum;
#
# - it limits itself by a clock, so that clock is set beyond any run, and the limits of the search end it;
#
# - it prefers the lowest load, so that with few trials the strictest goal would use them all up. So the most tolerant
#   goal goes first; each stricter one is then searched for only where trials leave it open.


class MlrOptions(SearchOptions):
    """The options of MLRsearch by their own names."""

    expansion_coefficient: int = Field(default=2, ge=2, le=16)
    """By how much an interval grows when the rate turns out to lie outside."""


class _FellShort(Exception):  # noqa: N818 - a finding, no error
    """The tester sent less than a load that the DUT passed: the package begins anew below it."""


class Mlr(Guided):
    """One goal after the other, by the published MLRsearch package."""

    kind = "mlr"
    how = "MLRsearch (RFC 9971, the package MLRsearch): searches for one goal after the other, coarse before fine."
    Options = MlrOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        super().__init__(options)
        self._knobs = MlrOptions.model_validate(self.options.model_dump())

    def drive(self, recorder: Recorder, goals: Sequence[Goal]) -> None:
        """Runs the package for one goal after the other, then closes what it left open."""
        for goal in sorted(goals, key=lambda goal: -goal.loss_ratio):
            for _ in range(3):
                try:
                    self._search(recorder, goal)
                    break
                except _FellShort:
                    continue
        super().drive(recorder, goals)

    def _search(self, recorder: Recorder, goal: Goal) -> None:
        """Runs the package on what is open for one goal."""
        limits = recorder.limits
        lowest, highest = limits.minimum_load_frames_per_s, reachable_frames_per_s(recorder.samples, limits)
        zones = read(recorder.samples, goal, limits)
        if zones.none is not None:
            highest = min(highest, zones.none.load_frames_per_s)
        if zones.every is not None:
            lowest = max(lowest, zones.every.load_frames_per_s)
        if highest * (1.0 - limits.precision) <= lowest:
            return  # the range is narrower than one step, and the package needs two loads
        from MLRsearch import (
            Config,
            MultipleLossRatioSearch,
        )  # imported here: loading takes half a second, and checking a bench file does not need it

        config = Config()
        # Its setters check against the other bound's default, 9001 and 1e9.
        config.max_load = 2 * max(config.max_load, highest)
        config.min_load = lowest
        config.max_load = highest
        config.goals = [self._search_goal(goal, limits)]
        config.search_duration_max = BEYOND_ANY_RUN_S
        config.warmup_duration = None
        MultipleLossRatioSearch(config=config).search(measurer=_Measurer(recorder, goal), debug=_ignore)

    def _search_goal(self, goal: Goal, limits: Limits) -> Any:
        from MLRsearch import SearchGoal

        final_s, repeats = limits.trial_duration_s, self.options.trials_per_bound
        return SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=0.5,
            relative_width=limits.precision,
            initial_trial_duration=final_s,
            final_trial_duration=final_s,
            duration_sum=final_s * repeats,
            # Coarser intervals first save time where their trials are shorter. Here all trials are of one length, and
            # the package needs a preceding target only to go from one trial for each bound to several.
            preceding_targets=1 if repeats > 1 else 0,
            expansion_coefficient=self._knobs.expansion_coefficient,
            fail_fast=False,  # a dead DUT is an outcome, not an exception
        )


class _Measurer:
    """The package's interface to the recorder; it calls ``measure`` by these names."""

    def __init__(self, recorder: Recorder, goal: Goal) -> None:
        self._recorder = recorder
        self._goal = goal
        self._served: set[int] = set()

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Makes one trial, or returns one of this load that the package has not seen."""
        recorder = self._recorder
        known = next(
            (number for number, one in enumerate(recorder.samples) if self._is_new(number, one, intended_load)), None
        )
        sample = recorder.measure(intended_load, intended_duration) if known is None else recorder.samples[known]
        self._served.add(len(recorder.samples) - 1 if known is None else known)
        short = sample.sent_share < 1.0 - recorder.limits.precision / 2.0
        if short and decide(sample, self._goal, recorder.limits).decision is not Decision.FAIL:
            raise _FellShort
        return to_package(sample, intended_load, self._goal, recorder.limits)

    def _is_new(self, number: int, sample: Sample, load_frames_per_s: float) -> bool:
        same = abs(sample.load_frames_per_s - load_frames_per_s) <= CLOSE * load_frames_per_s
        return same and number not in self._served and sample.duration_s >= self._recorder.limits.trial_duration_s


def to_package(sample: Sample, load_frames_per_s: float, goal: Goal, limits: Limits) -> Any:
    """Converts a sample for the package: frames that the tester never sent are neither intended nor lost, those that
    came back after a growing queue are.
    """
    from MLRsearch import MeasurementResult

    counts = sample.counts
    forwarded = counts.offered - counts.failed
    if decide(sample, goal, limits).decision is Decision.FAIL:
        forwarded = min(forwarded, int(counts.offered / (1.0 + sample.queued_share)))
    return MeasurementResult(
        intended_duration=sample.duration_s,
        intended_load=load_frames_per_s,
        intended_count=counts.offered,
        offered_count=counts.offered,
        forwarding_count=forwarded,
    )


def _ignore(_text: str) -> None:
    """Discards the package's debug log: every trial is in the journal."""
