"""Bisection in the manner of RFC 2544 section 26.1: start at the maximum, go below what fails and above what passes.

With ``trials_per_bound`` above 1 the bounds that remain are repeated until a majority settles them, so that one trial
with a loss of its own neither makes nor spoils a result. All trials have the full duration.
"""

from __future__ import annotations

from nicbench.search._drive import DrivenSearch
from nicbench.search._narrowing import next_load
from nicbench.search._recorder import Recorder
from nicbench.search.base import Goal, Limits


class Bisect(DrivenSearch):
    """Halving between the highest load that passed and the lowest that failed."""

    kind = "bisect"

    def drive(self, recorder: Recorder, goals: tuple[Goal, ...], limits: Limits) -> None:
        """Asks for one load after another until every goal is settled."""
        while (load := next_load(recorder.samples, goals, limits, self.options.votes_needed)) is not None:
            recorder.measure(load, limits.trial_duration_s)
