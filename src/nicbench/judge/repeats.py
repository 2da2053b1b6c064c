"""What happens after an invalid trial: it is repeated within bounds, found to be a ceiling, or used as disturbed.

A run never waits without bound for a quiet machine: at most 3 repeats a point, and 30 % of a test's time budget for all
of them. Time is counted in seconds of trials, not read from a clock, so that a resumed run decides as the first did.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from pydantic import Field

from nicbench.model.base import Frozen
from nicbench.model.trial import Trial
from nicbench.model.verdict import Finding, Reason
from nicbench.search.base import CeilingReached

TrialOnce = Callable[[int], Awaitable[Trial]]
"""Makes one trial at the point in question; the argument is the number of the repeat, 0 for the first."""


class RepeatPolicy(Frozen):
    """How much is spent on repeats, and when two shortfalls are the same one."""

    maximum_repeats: int = Field(default=3, ge=0)
    budget_share: float = Field(default=0.30, ge=0.0, le=1.0)
    ceiling_agreement: float = Field(default=0.03, gt=0.0, lt=1.0)


class Repeats:
    """The repeats of one test. ``time_budget_s`` is the trial time the test was planned to take."""

    def __init__(self, time_budget_s: float, policy: RepeatPolicy | None = None) -> None:
        self._policy = policy if policy is not None else RepeatPolicy()
        self._left_s = time_budget_s * self._policy.budget_share

    @property
    def left_s(self) -> float:
        """Trial time that may still go to repeats."""
        return self._left_s

    async def measured(self, trial_once: TrialOnce) -> tuple[Trial, bool]:
        """A valid trial and ``False``, or the least disturbed of several and ``True``.

        Raises CeilingReached where the tester twice in a row sent the same rate, less than it was asked for.
        """
        trials = [await trial_once(0)]
        while not trials[-1].verdict.valid:
            if len(trials) > 1:
                self._raise_at_ceiling(trials[-2], trials[-1])
            cost_s = trial_time_s(trials[-1])
            if len(trials) > self._policy.maximum_repeats or cost_s > self._left_s:
                return min(trials, key=_disturbance), True
            self._left_s -= cost_s
            trials.append(await trial_once(len(trials)))
        return trials[-1], False

    def _raise_at_ceiling(self, before: Trial, last: Trial) -> None:
        one, two = shortfall_rate_frames_per_s(before), shortfall_rate_frames_per_s(last)
        if one is None or two is None:
            return
        if abs(one - two) <= self._policy.ceiling_agreement * max(one, two):
            raise CeilingReached(min(one, two))


def trial_time_s(trial: Trial) -> float:
    """Seconds that a trial takes, by what was asked for."""
    request = trial.request
    return request.duration_s + request.drain_s + request.settle_s


def shortfall_rate_frames_per_s(trial: Trial) -> float | None:
    """The rate sent per port, where it fell short of the load by more than the tester's pauses explain; else ``None``.

    A pause costs frames too (only a little is caught up), so a shortfall no greater than the pauses is a disturbance.
    """
    load = trial.request.load_frames_per_s
    unsent = next((finding for finding in trial.verdict.findings if finding.reason is Reason.UNSENT), None)
    if load is None or unsent is None or trial.request.phases:
        return None  # where there are several loads the counts do not say which of them was too high
    reading = trial.reading
    paused_share = (reading.health.total_gap_ns or 0) / reading.transmit_ns if reading.transmit_ns else 1.0
    if unsent.value - paused_share <= unsent.limit:
        return None
    counts = reading.counts
    return load * (counts.sent + counts.unsent_backpressure) / counts.intended


def _disturbance(trial: Trial) -> tuple[float, int, int]:
    """How disturbed a trial was: how many times a limit the worst finding is, then the pauses; never by its loss."""
    worst = max((_times_its_limit(finding) for finding in trial.verdict.findings), default=0.0)
    health = trial.reading.health
    if health.total_gap_ns is None:
        return worst, health.overtime_ns or 0, health.queue_full or 0
    return worst, health.total_gap_ns, health.longest_gap_ns or 0


def _times_its_limit(finding: Finding) -> float:
    return finding.value / finding.limit if finding.limit > 0 else math.inf
