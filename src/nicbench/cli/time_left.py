"""How much of a run is left, by the estimates of its calibration and tests and the time of the trials made so far."""

from __future__ import annotations

from collections.abc import Sequence

from nicbench.events import Event, RunFinished, StageStarted, TestStarted, TrialFinished
from nicbench.model.trial import CALIBRATION, TrialRequest
from nicbench.units import format_duration_s


class TimeLeft:
    """An upper bound: a search that ends early, or a test that has ended, gives back what it did not use."""

    def __init__(self, planned: Sequence[tuple[str, float]]) -> None:
        self._planned_s = dict(planned)
        self._total_s = sum(self._planned_s.values())
        self._ended_s = 0.0
        self._current: str | None = None
        self._spent_s = 0.0

    def note(self, event: Event) -> None:
        """Takes account of an event."""
        if isinstance(event, StageStarted | TestStarted | RunFinished):
            self._ended_s += self._planned_s.get(self._current or "", 0.0)
            self._spent_s = 0.0
            self._current = _begun(event)
        elif isinstance(event, TrialFinished):
            self._spent_s += _took_s(event.trial.request)

    @property
    def share_done(self) -> float:
        """From 0 to 1."""
        return min(1.0, self._done_s / self._total_s) if self._total_s > 0.0 else 0.0

    def text(self) -> str:
        """In words, rounded as an estimate should be."""
        left_s = self._total_s - self._done_s
        if left_s <= 0.0:
            return "nearly done"
        return f"at most {format_duration_s(float(max(1, round(left_s))))} left"

    @property
    def _done_s(self) -> float:
        # Repeats are in no estimate: they never make a test look more than finished.
        return self._ended_s + min(self._spent_s, self._planned_s.get(self._current or "", 0.0))


def _begun(event: StageStarted | TestStarted | RunFinished) -> str | None:
    """Calibration is the one stage with an estimate of its own."""
    if isinstance(event, TestStarted):
        return event.test
    return event.stage if isinstance(event, StageStarted) and event.stage == CALIBRATION else None


def _took_s(request: TrialRequest) -> float:
    return request.duration_s + request.drain_s + 2 * request.settle_s  # RFC 2544 section 23
