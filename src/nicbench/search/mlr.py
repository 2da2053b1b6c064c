"""MLRsearch (RFC 9971, the package ``MLRsearch``): searches for every goal at once, coarse before fine.

The package chooses the loads of the short trials; the outcome is computed from all samples by our own rule. What the
package leaves open is closed by halving, then validated by long trials. Where short trials misled, the next long one
goes where the losses seen so far suggest the knee is (``_curve.py``), which saves many long trials at a soft knee.
Three properties of the package are kept from affecting results:

- it adds unsent frames to the loss, so it is only given frames that the tester offered;

- it limits itself by a clock, so that clock is set beyond any run, and the number of trials limits the search;

- it prefers the lowest load, so that with few trials the strictest goal would use them all up, and the rate that
repeats best would be left wide open. So the most tolerant goal goes first, with a share of the trials; where that was
enough all goals are searched at once on the same grid, which costs only the trials that are new.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import Field

from nicbench.core.quantity import Ratio
from nicbench.search._drive import NarrowingSearch, Recorder, ShareSpent
from nicbench.search._interval import Reading
from nicbench.search._narrowing import choose_near_knee
from nicbench.search.base import Goal, Limits, Sample, SearchOptions

BEYOND_ANY_RUN_S = 1e12
OVERLOADED = 0.2
"""A loss ratio far beyond every goal: of such a trial only the forwarding rate is used, as the next guess."""
MODESTY = 0.5
"""How many precisions below an overloaded DUT's forwarding rate the next load lies: mostly amid the final interval."""
MODESTY_OF_VOTES = 1.0
"""The same where several trials vote on a bound: a DUT that varies needs a safe lower bound first."""


class MlrOptions(SearchOptions):
    """The options of MLRsearch by their own names, and the share of the trials for the most tolerant goal."""

    expansion_coefficient: int = Field(default=2, ge=2, le=16)
    first_share: Ratio = Field(default=0.75, gt=0.0, lt=1.0)


class Mlr(NarrowingSearch):
    """All goals at once, by the published MLRsearch package."""

    kind = "mlr"
    Options = MlrOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        super().__init__(options)
        self._knobs = MlrOptions.model_validate(self.options.model_dump())

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Runs the package, then narrows what it left open."""
        tolerant = max(goals, key=lambda goal: goal.loss_ratio)
        validations = len(goals) if limits.validation_duration_s else 0
        held_back = math.floor((1.0 - self._knobs.first_share) * recorder.trials_left) if len(goals) > 1 else 0
        try:
            recorder.reserve(validations + held_back)
            self._search(recorder, (tolerant,), limits)
            recorder.reserve(validations)
            if len(goals) > 1:
                recorder.restart()
                self._search(recorder, goals, limits)
            recorder.reserve(0)
        except ShareSpent:
            # Too few trials for the package's way with the stricter goals: halve from what is known by now.
            recorder.reserve(min(validations, 1))
            with suppress(ShareSpent):
                super().drive(recorder, tuple(goal for goal in goals if goal != tolerant), limits)
            recorder.reserve(0)
        super().drive(recorder, goals, limits)

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        return choose_near_knee(reading, samples, limits)

    def _search(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
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
        config.goals = [self._search_goal(goal, limits) for goal in goals]
        config.search_duration_max = BEYOND_ANY_RUN_S
        config.warmup_duration = None
        modesty = MODESTY_OF_VOTES if self.options.trials_per_bound > 1 else MODESTY
        measurer = _Measurer(recorder, modesty * limits.precision)
        MultipleLossRatioSearch(config=config).search(measurer=measurer, debug=_ignore)

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

    def __init__(self, recorder: Recorder, modesty: float) -> None:
        self._recorder = recorder
        self._modesty = modesty

    def measure(self, intended_duration: float, intended_load: float) -> Any:
        """Makes one trial, or returns one that was made before a restart."""
        sample = self._recorder.measure(intended_load, intended_duration)
        # What an overloaded DUT forwards lies right at its knee, where trials disagree. The package tries that rate
        # next: a little less passes, and one step above it does not.
        modesty = self._modesty if sample.counts.loss_ratio > OVERLOADED else 0.0
        return drop_unsent(sample, modesty)


def drop_unsent(sample: Sample, modesty: float = 0.0) -> Any:
    """Converts a sample for the package: frames that the tester never sent are neither intended nor lost.

    ``modesty`` is a share by which the forwarding rate is reported too low.
    """
    from MLRsearch import MeasurementResult

    counts = sample.counts
    offered = counts.sent + counts.unsent_backpressure
    return MeasurementResult(
        intended_duration=sample.duration_s,
        intended_load=sample.load_frames_per_s,
        intended_count=offered,
        offered_count=offered,
        forwarding_count=int((offered - counts.failed) * (1.0 - modesty)),
    )


def _ignore(_text: str) -> None:
    """Discards the package's debug log: every trial is in the journal."""
