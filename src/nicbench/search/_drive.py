"""What every search does around its choice of loads: restart below the tester's ceiling, stop when trials are spent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from nicbench.model.rate import LimitedBy
from nicbench.search._interval import outcome_of
from nicbench.search._recorder import BudgetSpent, Recorder
from nicbench.search.base import CeilingReached, Goal, Limits, Measure, Outcome, Search


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
        outcomes = {goal.name: outcome_of(recorder.samples, goal, limits) for goal in goals}
        return {name: _marked(outcome) if ceiling_disturbed else outcome for name, outcome in outcomes.items()}


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
