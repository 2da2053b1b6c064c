"""What every search does around its choice of loads: restart below the tester's ceiling, stop when trials are spent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from nicbench.model.rate import LimitedBy
from nicbench.search._explanation import rare_loss
from nicbench.search._interval import Reading, outcome_of, read
from nicbench.search._narrowing import halve, next_trial
from nicbench.search._recorder import BudgetSpent, Recorder
from nicbench.search.base import CeilingReached, Goal, Limits, Measure, Outcome, Sample, Search


class DrivenSearch(Search):
    """A search that is restarted with a lower maximum when the tester cannot send what it asks for."""

    @abstractmethod
    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Measures through ``recorder``; returns when it has nothing left to ask."""

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        """See the base; the budget of trials is shared by all restarts."""
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
                    return {goal.name: _too_slow(outcome_of(recorder.samples, goal, limits), ceiling) for goal in goals}
                limits = lowered
                ceiling_disturbed = ceiling.disturbed
                recorder.restart()
        outcomes = {goal.name: _explained(recorder.samples, goal, limits) for goal in goals}
        return {name: _marked(outcome) if ceiling_disturbed else outcome for name, outcome in outcomes.items()}


class NarrowingSearch(DrivenSearch):
    """A search that lets ``next_trial`` ask for one trial after another; it only says where an open interval is cut."""

    def choose(self, reading: Reading, samples: Sequence[Sample], limits: Limits) -> float:
        """The load that narrows an open reading."""
        return halve(reading, samples, limits)

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Asks for one trial after another until every goal is settled."""
        while True:
            wish = next_trial(
                recorder.samples, goals, limits, self.options.votes_needed, recorder.trials_left, self.choose
            )
            if wish is None:
                return
            recorder.measure(*wish)


def _explained(samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
    outcome = outcome_of(samples, goal, limits)
    riddle = rare_loss(samples, goal, read(samples, goal, limits).bounds, limits)
    return outcome if riddle is None else outcome.model_copy(update={"notes": (*outcome.notes, riddle)})


def _marked(outcome: Outcome) -> Outcome:
    """An outcome that rests on a ceiling rests on the trial that showed it."""
    if outcome.rate.limited_by is not LimitedBy.TESTER:
        return outcome
    return outcome.model_copy(update={"disturbed": True})


def _too_slow(outcome: Outcome, ceiling: CeilingReached) -> Outcome:
    """Not even the minimum could be sent: what passed before stands, and nothing is charged to the DUT."""
    if outcome.rate.value is not None:
        return outcome.model_copy(update={"notes": (*outcome.notes, str(ceiling)), "converged": False})
    rate = outcome.rate.model_copy(
        update={"limited_by": LimitedBy.TESTER, "reason_null": f"{ceiling}, less than the minimum load"}
    )
    return outcome.model_copy(update={"rate": rate, "converged": False, "disturbed": ceiling.disturbed})
