"""Estimates each rate from all trials, instead of bracketing it by two of them.

A trial whose DUT shared its core with somebody else is not lost: it tells the rate at that share of slow looks, and
the rate of a core of its own follows from all of them (``_estimating.py``). The first trial is at the maximum, the
second just below what came back; then each is placed where the estimate is least certain, a little below it or above.
The search ends when every interval is as narrow as ``precision``, or when as many trials as ``enough`` lie near the
knee: where the trials themselves differ by more, further ones would narrow it by their square root only.

A validation trial that fails shows that short trials miss what a longer one meets. The search for that goal then goes
on with long trials as ``mlr`` does, and its interval is that of two loads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from nicbench.core.quantity import Ratio
from nicbench.search._drive import DrivenSearch, Recorder
from nicbench.search._interval import explain_unvalidated, is_long, read
from nicbench.search._narrowing import TrialRequest, choose_near_knee, next_trial
from nicbench.search.base import CLOSE, CeilingReached, FellShort, Goal, Limits, Measure, Outcome, Sample, SearchOptions

if TYPE_CHECKING:  # NumPy loads slowly, and many commands search nothing
    from nicbench.search._estimating import Fit

CONFIDENCE = 0.95
SHARED = 0.002
"""A core that was slow in a larger share of the looks was shared."""
SIDE = 0.45
"""How far beside the estimate the next load lies, in precisions: a pass and a failure there are less than one apart."""
DEVIATIONS = 0.5
"""The same in deviations of the trials, where these are more."""
WIDEST_STEP = 0.1
DIFFER = 0.25
"""Trials that differ by less than this share of the precision can be narrowed further by more of them."""
MOST_TO_RESOLVE = 4
"""Where loads near the estimate are still untried, a search goes on up to so many times ``enough`` trials."""
LEAST_TRIALS = 4
"""An interval of fewer trials is narrow by luck."""
MOST_VALIDATIONS = 3
"""A rate on a shared core is not confirmed where so many long trials failed, or twice as many passed below it."""
CEILING_AFTER = 3
"""So many disturbed shortfalls in a row are a ceiling of the tester."""
_DIGITS = 9


class EstimateOptions(SearchOptions):
    """``trials_per_bound`` is of the bounds after a validation that failed; ``confidence`` of the interval."""

    trials_per_bound: int = Field(default=1, ge=1, le=21)
    """As above, of the search that follows where a validation failed."""
    confidence: Ratio = Field(default=CONFIDENCE, gt=0.5, lt=1.0)
    """How often the interval holds the rate."""
    enough: int = Field(default=8, ge=4)
    """So many trials near the knee end the search where they differ by more than `precision`; twice as many of any
    kind do too. The interval is then wider.
    """


class EstimateSearch(DrivenSearch):
    """Fits a model to all trials, and places each next one where it tells most."""

    kind = "estimate"
    adjusts = True
    Options = EstimateOptions

    def __init__(self, options: SearchOptions | None = None) -> None:
        super().__init__(options)
        self._knobs = EstimateOptions.model_validate(self.options.model_dump())
        self._fits: dict[tuple[str, int, float], Fit | None] = {}

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base does."""
        self._fits = {}
        return super().run(measure, goals, limits)

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Makes one trial after another until every goal is settled."""
        shortfalls = 0
        while True:
            request = self._next(recorder.samples, goals, limits, recorder.trials_left)
            if request is None:
                return
            try:
                recorder.measure(*request)
            except FellShort as short:
                # The trial counts at what was sent; where one has failed the model chooses another load by it.
                if not short.is_sample or all(all(map(goal.passed_by, recorder.samples)) for goal in goals):
                    raise
                shortfalls = 0
            except CeilingReached as ceiling:
                # A disturbed tester that fell short once has no ceiling there: the trial counts at what it sent.
                shortfalls += 1
                if not ceiling.disturbed or shortfalls >= CEILING_AFTER:
                    raise
            else:
                shortfalls = 0

    def conclude(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
        """Returns the estimate, or the bounds where no estimate is possible."""
        bounds = super().conclude(samples, goal, limits)
        found = self._fit(samples, goal, limits)
        if found is None or _was_misled(samples, goal, limits):
            adjusted = any(sample.adjusted for sample in samples)
            return bounds.model_copy(update={"adjusted": adjusted and bounds.rate.value is not None})
        validated = limits.validation_duration_s is None or _is_validated(found, limits)
        narrow = found.width <= limits.precision * (1.0 + CLOSE) and validated
        passed_for_s = max(
            (sample.duration_s for sample in samples if goal.passed_by(sample) and _bears(found, sample, limits)),
            default=None,
        )
        from nicbench.search._estimating import outcome_of_fit  # imported here, as NumPy loads slowly

        outcome = outcome_of_fit(found, limits, settled=narrow, passed_for_s=passed_for_s)
        if not validated and outcome.rate.value is not None:
            why = explain_unvalidated(found.lower, limits)
            outcome = outcome.model_copy(update={"notes": (*outcome.notes, why)})
        return outcome

    def _next(
        self, samples: Sequence[Sample], goals: Sequence[Goal], limits: Limits, trials_left: int
    ) -> TrialRequest | None:
        """Returns the next trial; the most tolerant goal comes first, as its rate repeats best."""
        if not samples:
            return TrialRequest(limits.maximum_load_frames_per_s, limits.trial_duration_s)
        by_tolerance = sorted(goals, key=lambda goal: -goal.loss_ratio)
        bracketed: list[Goal] = []
        fitted: list[Fit] = []
        for goal in by_tolerance:
            found = None if _was_misled(samples, goal, limits) else self._fit(samples, goal, limits)
            if found is None:
                bracketed.append(goal)
            else:
                fitted.append(found)
        unvalidated = [found for found in fitted if _may_be_validated(found, limits)]
        if unvalidated and trials_left <= len(unvalidated):
            return _validation_of(unvalidated[0], limits)
        for found in fitted:
            if not self._is_settled(found, limits):
                return TrialRequest(choose_load(found, limits), limits.trial_duration_s)
        if bracketed:
            votes = self.options.votes_needed
            request = next_trial(samples, bracketed, limits, votes, trials_left, choose_near_knee)
            if request is not None:
                return request
        return _validation_of(unvalidated[0], limits) if unvalidated else None

    def _fit(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Fit | None:
        """Returns the fit, computed once for the same samples."""
        key = goal.name, len(samples), limits.maximum_load_frames_per_s
        if key not in self._fits:
            from nicbench.search._estimating import fit_goal  # imported here, as NumPy loads slowly

            self._fits[key] = fit_goal(samples, goal, limits, self._knobs.confidence)
        return self._fits[key]

    def _is_settled(self, found: Fit, limits: Limits) -> bool:
        """Returns whether the interval is narrow, or further trials near the knee would hardly narrow it."""
        if not _has_pass(found):
            lowest = min(sample.load_frames_per_s for sample in found.samples)
            return lowest <= limits.minimum_load_frames_per_s * (1.0 + CLOSE)
        most = limits.maximum_load_frames_per_s
        bears_most = any(
            found.goal.passed_by(sample) and sample.load_frames_per_s >= most * (1.0 - CLOSE)
            for sample in found.samples
        )
        if bears_most and found.middle * found.expected_drop() >= most:
            return True  # no higher load can be offered
        differ = found.posterior.scatter > DIFFER * limits.precision
        near = len(found.near(limits))
        made, enough = len(found.samples), self._knobs.enough
        if _is_resolved(found, limits):
            if (near >= enough and differ) or made >= 2 * enough:
                return True
        elif made >= MOST_TO_RESOLVE * enough:
            return True
        # No load that could be chosen brings the clock nearer to the one stated.
        return len(found.samples) >= LEAST_TRIALS and found.width_seen <= limits.precision * (1.0 + CLOSE)


def choose_load(found: Fit, limits: Limits) -> float:
    """Returns the load that tells most: just beside the estimate, on the side of which less is known."""
    passes = [found.alone(sample) for sample in found.samples if found.goal.passed_by(sample)]
    failures = [found.alone(sample) for sample in found.samples if not found.goal.passed_by(sample)]
    step = _step(found, limits)
    if not passes:
        alone = _below(found, failures, limits, step)
    else:
        below, above = _surround(found)
        low = step * 1.2 < 1.0 - below / found.middle if below is not None else True
        high = step * 1.2 < above / found.middle - 1.0 if above is not None else True
        if not _is_resolved(found, limits) and below is not None:
            lowest = min([found.middle, *(load for load in failures if load > below)])
            alone = _between(found, below, lowest, step)
        elif low or high:
            alone = found.middle * (1.0 - step if low else 1.0 + step)
        else:
            near = found.near(limits)
            passed = sum(found.goal.passed_by(sample) for sample in near)
            alone = found.middle * (1.0 + step if 2 * passed > len(near) else 1.0 - step)
    load = alone * found.expected_drop()
    load = min(limits.maximum_load_frames_per_s, max(limits.minimum_load_frames_per_s, load))
    return float(f"{load:.{_DIGITS}g}")


def _step(found: Fit, limits: Limits) -> float:
    """Returns how far from the estimate a load is tried, relative to it."""
    return min(WIDEST_STEP, max(SIDE * limits.precision, DEVIATIONS * found.posterior.scatter))


def _surround(found: Fit) -> tuple[float | None, float | None]:
    """Returns the nearest pass below the estimate and the nearest failure above it, as of a core of its own."""
    loads = [(found.alone(sample), found.goal.passed_by(sample)) for sample in found.samples]
    below = max((load for load, passed in loads if passed and load <= found.middle), default=None)
    above = min((load for load, passed in loads if not passed and load >= found.middle), default=None)
    return below, above


def _is_resolved(found: Fit, limits: Limits) -> bool:
    """Returns whether a load near the estimate passed; where only passes and failures count, also one that failed."""
    below, above = _surround(found)
    nearest = found.middle if found.model == "forwarded" else above
    return below is None or nearest is None or nearest <= below * (1.0 + 4.0 * _step(found, limits))


def _between(found: Fit, below: float, lowest: float, step: float) -> float:
    """Returns a load between the nearest pass and the lowest failure: by steps that double while trials fail."""
    if found.model != "forwarded":
        return found.middle
    failed = 0
    for sample in reversed(found.samples):
        if found.goal.passed_by(sample):
            break
        failed += 1
    return max(math.sqrt(below * lowest), lowest * (1.0 - step * 2.0 ** max(0, failed - 1)))


def _below(found: Fit, failures: Sequence[float], limits: Limits, step: float) -> float:
    """Returns a load below every failure: where the model says, else by steps that double."""
    lowest = min(failures)
    if found.model == "forwarded":
        near = sum(1 for load in failures if load <= found.middle * (1.0 + WIDEST_STEP))
        return min(found.middle, lowest) * (1.0 - min(0.5, step * 2.0**near))
    near = sum(1 for load in failures if load <= lowest * (1.0 + WIDEST_STEP))
    least = lowest * (1.0 - min(0.5, limits.precision * 2.0**near))
    if found.model == "lost":
        return min(lowest * (1.0 - limits.precision), max(found.middle, least))
    return least


def _has_pass(found: Fit) -> bool:
    return any(found.goal.passed_by(sample) for sample in found.samples)


def _was_misled(samples: Sequence[Sample], goal: Goal, limits: Limits) -> bool:
    """Returns whether a long trial failed where short ones passed; on a shared core it failed for another reason."""
    shared = any((sample.slow_share or 0.0) > SHARED for sample in samples)
    return limits.validation_duration_s is not None and not shared and read(samples, goal, limits).misled


def _bears(found: Fit, sample: Sample, limits: Limits) -> bool:
    """Returns whether a trial offered as much as the lower end of the interval, or as can be offered at all."""
    most = limits.maximum_load_frames_per_s
    is_most = sample.load_frames_per_s >= most * (1.0 - limits.precision) and found.lower > most
    return is_most or found.alone(sample) >= found.lower * (1.0 - limits.precision)


def _is_validated(found: Fit, limits: Limits) -> bool:
    """Returns whether no long trial is wanted, or one passed at the lower end."""
    if limits.validation_duration_s is None:
        return True
    return any(
        is_long(sample, limits) and found.goal.passed_by(sample) and _bears(found, sample, limits)
        for sample in found.samples
    )


def _may_be_validated(found: Fit, limits: Limits) -> bool:
    """Returns whether a validation trial is wanted, and has not been in vain too often."""
    made = [sample for sample in found.samples if is_long(sample, limits)]
    failed = sum(not found.goal.passed_by(sample) for sample in made)
    in_vain = failed >= MOST_VALIDATIONS or len(made) >= 2 * MOST_VALIDATIONS
    return _has_pass(found) and not _is_validated(found, limits) and not in_vain


def _validation_of(found: Fit, limits: Limits) -> TrialRequest:
    load = max(limits.minimum_load_frames_per_s, found.lower * found.expected_drop())
    return TrialRequest(min(load, limits.maximum_load_frames_per_s), limits.longest_trial_s)
