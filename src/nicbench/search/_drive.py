"""What every search does around its choice of loads: it keeps samples, counts the budget and restarts below a
ceiling.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from nicbench.core.result import LimitedBy
from nicbench.search._curve import grows_with_load
from nicbench.search._interval import Bounds, Reading, outcome_of, read, same_load
from nicbench.search._narrowing import halve, next_trial
from nicbench.search.base import CeilingReached, Goal, Limits, Measure, Outcome, Sample, Search


class BudgetSpent(Exception):  # noqa: N818 - it ends a search, it is no error
    """The trials of the search are used up; the outcome is computed from the samples so far."""


class ShareSpent(Exception):  # noqa: N818 - as above
    """The remaining trials are reserved for later steps."""


class Recorder:
    """Measures at most ``maximum_trials`` times over all restarts; a restarted search first gets the known samples."""

    def __init__(self, measure: Measure, limits: Limits) -> None:
        self.samples: list[Sample] = []
        self._measure = measure
        self._limits = limits
        self._trials_left = limits.maximum_trials
        self._ceilings = 0
        self._reserved = 0
        self._served: list[int] = []

    @property
    def trials_left(self) -> int:
        """The number of trials that may be made before the reserved ones."""
        return max(0, self._trials_left - self._reserved)

    def reserve(self, trials: int) -> None:
        """Reserves this many of the remaining trials, until the next call."""
        self._reserved = trials

    def restart(self) -> None:
        """Lets a search that asks again for a load get the sample that was measured before."""
        self._served = []

    def measure(self, load_frames_per_s: float, duration_s: float) -> Sample:
        """Returns the next sample at this load: one from before the restart, else a new trial."""
        for index, sample in enumerate(self.samples):
            if index in self._served:
                continue
            if same_load(sample.load_frames_per_s, load_frames_per_s) and same_load(sample.duration_s, duration_s):
                self._served.append(index)
                # Rounding apart, it is the load asked for; MLRsearch compares exactly.
                return sample.model_copy(update={"load_frames_per_s": load_frames_per_s, "duration_s": duration_s})
        return self._new_trial(load_frames_per_s, duration_s)

    def _new_trial(self, load_frames_per_s: float, duration_s: float) -> Sample:
        if self._trials_left <= 0:
            raise BudgetSpent
        if self._trials_left <= self._reserved:
            raise ShareSpent
        self._trials_left -= 1
        try:
            return self._run_trial(load_frames_per_s, duration_s)
        except CeilingReached:
            # A load that the tester cannot send says nothing about the DUT: the first one costs no trial.
            self._ceilings += 1
            self._trials_left += self._ceilings == 1
            raise

    def _run_trial(self, load_frames_per_s: float, duration_s: float) -> Sample:
        sample = self._measure(load_frames_per_s, duration_s)
        # A shortfall below half the precision moves no bound by more than that. With a larger one this load was not
        # offered: counted as sent it would pass, counted as lost (MLRsearch adds unsent to loss) it would fail. On a
        # disturbed machine it is kept as a sample of the load that was offered: better than no answer at all.
        if sample.sent_share < 1.0 - self._limits.precision / 2:
            offered = sample.load_frames_per_s * sample.sent_share
            if not sample.valid and offered > 0.0:
                self.samples.append(sample.model_copy(update={"load_frames_per_s": offered}))
            raise CeilingReached(offered, disturbed=not sample.valid)
        self._served.append(len(self.samples))
        self.samples.append(sample)
        return sample


# Why a strict goal may have its rate far below what the DUT carries: a rare loss that occurs at any load.
#
# For example, a burst from elsewhere every few minutes is found by the long trials at every load. So no load without
# loss can be confirmed, and the search ends wherever a trial passes by luck: an answer, but one that needs an
# explanation.


TOLERANCES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
HITS_NEEDED = 2
CLEARLY = 4
"""How many precisions the rate must rise by when a little loss is tolerated."""


def explain_rare_loss(samples: Sequence[Sample], goal: Goal, bounds: Bounds, limits: Limits) -> str | None:
    """Describes a loss that occurs at any load, and the goal that would find the rate; None where there is none."""
    if bounds.upper is None:
        return None
    for tolerance in TOLERANCES:
        if tolerance <= goal.loss_ratio:
            continue
        tolerant = Goal(name=goal.name, loss_ratio=tolerance)
        rate = read(samples, tolerant, limits).bounds.lower
        if rate is None or rate.frames_per_s < bounds.upper.frames_per_s * (1.0 + CLEARLY * limits.precision):
            continue
        below = [one for one in samples if one.load_frames_per_s <= rate.frames_per_s and tolerant.passed_by(one)]
        hit = [sample for sample in below if not goal.passed_by(sample)]
        if len(hit) < HITS_NEEDED or grows_with_load(below, limits):
            continue
        most = max(sample.counts.failed for sample in hit)
        return (
            f"{len(hit)} of {len(below)} trials up to {rate.frames_per_s:.0f} frames/s lost frames, {most} at most and "
            "no more at higher loads than at lower ones: a loss that comes at any load, not what the DUT can carry; "
            f"with {tolerance * 100:g} % tolerated, {rate.frames_per_s:.0f} frames/s pass"
        )
    return None


class DrivenSearch(Search):
    """A search that is restarted with a lower maximum when the tester cannot send what it asks for."""

    @abstractmethod
    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Measures through ``recorder``; returns when it has nothing left to measure."""

    def conclude(self, samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
        """Computes the outcome for one goal from all samples."""
        outcome = outcome_of(samples, goal, limits)
        explanation = explain_rare_loss(samples, goal, read(samples, goal, limits).bounds, limits)
        if explanation is None:
            return outcome
        return outcome.model_copy(update={"notes": (*outcome.notes, explanation)})

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """Runs the search as the base says; all restarts share the budget of trials."""
        recorder = Recorder(measure, limits)
        ceiling_disturbed = False
        while True:
            try:
                self.drive(recorder, tuple(goals), limits)
                break
            except BudgetSpent:
                break
            except CeilingReached as ceiling:
                lowered = limits.lowered_to(ceiling.rate_frames_per_s)
                if lowered is None:
                    return {
                        goal.name: _outcome_below_minimum(outcome_of(recorder.samples, goal, limits), ceiling)
                        for goal in goals
                    }
                limits = lowered
                ceiling_disturbed = ceiling.disturbed
                recorder.restart()
        outcomes = {goal.name: self.conclude(recorder.samples, goal, limits) for goal in goals}
        return {name: _mark_disturbed(outcome) if ceiling_disturbed else outcome for name, outcome in outcomes.items()}


class NarrowingSearch(DrivenSearch):
    """A search that takes its trials from ``next_trial``; it only chooses where an open interval is cut."""

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        """Returns the load that narrows an open interval."""
        return halve(reading, samples, limits)

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Makes one trial after another until every goal is settled."""
        while True:
            request = next_trial(
                recorder.samples, goals, limits, self.options.votes_needed, recorder.trials_left, self.choose
            )
            if request is None:
                return
            recorder.measure(*request)


def _mark_disturbed(outcome: Outcome) -> Outcome:
    """Marks an outcome that is limited by the tester's ceiling, which a disturbed trial showed."""
    if outcome.rate.limited_by is not LimitedBy.TESTER:
        return outcome
    return outcome.model_copy(update={"disturbed": True})


def _outcome_below_minimum(outcome: Outcome, ceiling: CeilingReached) -> Outcome:
    """Returns the outcome where the tester cannot send even the minimum: earlier passes stand; the DUT is not
    blamed.
    """
    if outcome.rate.value is not None:
        return outcome.model_copy(update={"notes": (*outcome.notes, str(ceiling)), "converged": False})
    rate = outcome.rate.model_copy(
        update={"limited_by": LimitedBy.TESTER, "reason_null": f"{ceiling}, less than the minimum load"}
    )
    return outcome.model_copy(update={"rate": rate, "converged": False, "disturbed": ceiling.disturbed})
