"""MLRsearch (RFC 9971, the package ``MLRsearch``): searches for one goal after the other, coarse before fine.

The package chooses the loads of the short trials; the outcome is computed from all samples by our own rule. What the
package leaves open is closed by halving, then validated by long trials. Where short trials misled, the next long one
goes where the losses seen so far suggest the knee is (``_curve.py``), which saves many long trials at a soft knee.
Three properties of the package are kept from affecting results:

- it adds unsent frames to the loss, so it is only given frames that the tester offered;

- it limits itself by a clock, so that clock is set beyond any run, and the number of trials limits the search;

- it prefers the lowest load, so that with few trials the strictest goal would use them all up, and the rate that
repeats best would be left wide open. So the most tolerant goal goes first, with a share of the trials; each stricter
one is then searched for only between the loads of which trials for other goals say that they pass and fail it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import Field

from nicbench.core.quantity import Ratio
from nicbench.search._drive import NarrowingSearch, Recorder, ShareSpent
from nicbench.search._interval import Reading, is_narrow, read
from nicbench.search._narrowing import choose_near_knee, halve
from nicbench.search.base import Goal, Limits, Sample, SearchOptions

BEYOND_ANY_RUN_S = 1e12
MODESTY = 0.5
"""How many precisions below an overloaded DUT's forwarding rate the next load lies: mostly amid the final interval."""
MODESTY_OF_VOTES = 1.0
"""The same where several trials vote on a bound: a DUT that varies needs a safe lower bound first."""


class MlrOptions(SearchOptions):
    """The options of MLRsearch by their own names, and the share of the trials for the most tolerant goal."""

    expansion_coefficient: int = Field(default=2, ge=2, le=16)
    """By how much an interval grows when the rate turns out to lie outside."""
    first_share: Ratio = Field(default=0.75, gt=0.0, lt=1.0)
    """Share of the trials that may go to the most tolerant goal before the others."""


class Mlr(NarrowingSearch):
    """One goal after the other, by the published MLRsearch package."""

    kind = "mlr"
    Options = MlrOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        super().__init__(options)
        self._knobs = MlrOptions.model_validate(self.options.model_dump())

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Runs the package for one goal after the other, then narrows what it left open."""
        tolerant, *stricter = sorted(goals, key=lambda goal: -goal.loss_ratio)
        validations = len(goals) if limits.validation_duration_s else 0
        held_back = math.floor((1.0 - self._knobs.first_share) * recorder.trials_left) if stricter else 0
        try:
            recorder.reserve(validations + held_back)
            self._search(recorder, tolerant, limits)
            recorder.reserve(validations)
            for goal in stricter:
                recorder.restart()
                self._search(recorder, goal, limits)
            recorder.reserve(0)
        except ShareSpent:
            # Too few trials for the package's way with the stricter goals: halve from what is known by now.
            recorder.reserve(min(validations, 1))
            with suppress(ShareSpent):
                super().drive(recorder, tuple(stricter), limits)
            recorder.reserve(0)
        super().drive(recorder, goals, limits)

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        return choose_near_knee(reading, samples, limits)

    def _search(self, recorder: Recorder, goal: Goal, limits: Limits) -> None:
        """Runs the package on what is open for one goal."""
        limits = self._narrow_to_open(recorder, goal, limits)
        if limits.maximum_load_frames_per_s * (1.0 - limits.precision) <= limits.minimum_load_frames_per_s:
            return  # the range is narrower than one step, and the package needs two loads
        from MLRsearch import (
            Config,
            MultipleLossRatioSearch,
        )  # imported here: loading takes half a second, and checking a bench file does not need it

        config = Config()
        # Its setters check against the other bound's default, 9001 and 1e9.
        config.max_load = 2 * max(config.max_load, limits.maximum_load_frames_per_s)
        config.min_load = limits.minimum_load_frames_per_s
        config.max_load = limits.maximum_load_frames_per_s
        config.goals = [self._search_goal(goal, limits)]
        config.search_duration_max = BEYOND_ANY_RUN_S
        config.warmup_duration = None
        modesty = MODESTY_OF_VOTES if self.options.trials_per_bound > 1 else MODESTY
        measurer = _Measurer(recorder, goal, modesty * limits.precision)
        MultipleLossRatioSearch(config=config).search(measurer=measurer, debug=_ignore)

    def _narrow_to_open(self, recorder: Recorder, goal: Goal, limits: Limits) -> Limits:
        """Returns the limits between the highest load that passed and the lowest that failed, by our own rule.

        Two trials come first where none was made: at the maximum, and a little below what came back from it. That rate
        itself, which the package would try, lies right at the knee, where trials disagree.
        """
        if not recorder.samples:
            recorder.measure(limits.maximum_load_frames_per_s, limits.trial_duration_s)
            reading = read(recorder.samples, goal, limits)
            if not is_narrow(reading.bounds, limits):
                recorder.measure(halve(reading, recorder.samples, limits), limits.trial_duration_s)
        bounds = read(recorder.samples, goal, limits).bounds
        recorder.restart()
        lowest, highest = limits.minimum_load_frames_per_s, limits.maximum_load_frames_per_s
        if bounds.upper is not None:
            highest = min(highest, bounds.upper.frames_per_s)
        if bounds.lower is not None:
            lowest = min(highest, bounds.lower.frames_per_s)
        return limits.model_copy(update={"minimum_load_frames_per_s": lowest, "maximum_load_frames_per_s": highest})

    def _search_goal(self, goal: Goal, limits: Limits) -> Any:
        from MLRsearch import SearchGoal

        final_s = limits.trial_duration_s
        return SearchGoal(
            loss_ratio=goal.loss_ratio,
            exceed_ratio=0.5,
            relative_width=limits.precision,
            initial_trial_duration=final_s,
            final_trial_duration=final_s,
            duration_sum=final_s * self.options.trials_per_bound,
            # Coarser intervals first save time where their trials are shorter. Here all trials are of one length, and
            # the package needs a preceding target only to go from one trial for each bound to several.
            preceding_targets=1 if self.options.trials_per_bound > 1 else 0,
            expansion_coefficient=self._knobs.expansion_coefficient,
            fail_fast=False,  # a dead DUT is an outcome, not an exception
        )


class _Measurer:
    """The package's interface to the recorder; it calls ``measure`` by these names."""

    def __init__(self, recorder: Recorder, goal: Goal, modesty: float) -> None:
        self._recorder = recorder
        self._goal = goal
        self._modesty = modesty

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Makes one trial, or returns one that was made before a restart."""
        sample = self._recorder.measure(intended_load, intended_duration)
        # What an overloaded DUT forwards lies right at its knee, where trials disagree. The package tries that rate
        # next: a little less passes, and one step above it does not.
        modesty = 0.0 if self._goal.passed_by(sample) else self._modesty
        return drop_unsent(sample, modesty)


def drop_unsent(sample: Sample, modesty: float = 0.0) -> Any:
    """Converts a sample for the package: frames that the tester never sent are neither intended nor lost.

    ``modesty`` is a share by which the forwarding rate is reported too low.
    """
    from MLRsearch import MeasurementResult

    counts = sample.counts
    offered = counts.offered
    return MeasurementResult(
        intended_duration=sample.duration_s,
        intended_load=sample.load_frames_per_s,
        intended_count=offered,
        offered_count=offered,
        forwarding_count=int((offered - counts.failed) * (1.0 - modesty)),
    )


def _ignore(_text: str) -> None:
    """Discards the package's debug log: every trial is in the journal."""
