"""MLRsearch (RFC 9971, the package ``MLRsearch``): searches for one goal after the other, coarse before fine.

The package chooses the loads of the short trials; the answer is made of all samples by the rule of every search, and
what the package leaves open is closed, confirmed and validated as ``guided`` does. Three properties of the package are
kept from affecting results:

- it adds unsent frames to the loss, so it is only given frames that the tester offered, and where the tester falls
  short the package begins anew with what can be sent as the maximum;

- it limits itself by a clock, so that clock is set beyond any run, and the limits of the search end it;

- it prefers the lowest load, so that with few trials the strictest goal would use them all up. So the most tolerant
  goal goes first; each stricter one is then searched for only where trials leave it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from nicbench.search._recording import Recorder
from nicbench.search._zones import Decision, decide, reachable_frames_per_s, read
from nicbench.search.base import CLOSE, Goal, Limits, Sample, SearchOptions
from nicbench.search.guided import Guided

BEYOND_ANY_RUN_S = 1e12


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
