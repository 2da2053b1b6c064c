"""How long frames take through the DUT, as learning frames and trials have shown: one time, for whatever waits.

Learning, the proof that frames pass, the drain of a trial, and the proof behind it wait no less than that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nicbench.core.trial import Trial, TrialRequest
from nicbench.core.verdict import Reason

_AT_ONCE_S: Final = 0.02
"""So long the first learning frames behind a trial are waited for; of most DUTs they come back at once."""
_STUCK_S: Final = 0.5
"""So long a DUT may need, behind a trial that was too much for it, before it forwards again."""
_LONGER: Final = 2.0
"""Where frames came back only after a wait, it is so many times as long from then on: the next ones may take longer."""
_LEAST_LONGER_DRAIN_S: Final = 0.5


class Patience:
    """``needed_s`` is what frames are waited for at least; 0 until some took longer than they were given."""

    def __init__(self, journaled: Iterable[Trial] = ()) -> None:
        self.needed_s = 0.0
        for trial in journaled:
            self.note(trial)

    def note_wait(self, wait_s: float) -> None:
        """Takes notice that frames came back when they were waited for so long, and not when it was less."""
        self.needed_s = max(self.needed_s, _LONGER * wait_s)

    def note(self, trial: Trial) -> None:
        """Takes notice of a trial: of the drain that it had, and of frames that came after it."""
        used_s = trial.reading.drain_s or trial.request.drain_s
        if Reason.LATE in trial.verdict.reasons:
            longer_s = _LONGER * (used_s + trial.request.settle_s)
            self.needed_s = max(self.needed_s, longer_s, _LEAST_LONGER_DRAIN_S)
        self.needed_s = max(self.needed_s, trial.reading.drain_s or 0.0)

    def settle(self, request: TrialRequest) -> TrialRequest:
        """Returns the request with as long a settle time as learning frames need."""
        return request.replace(settle_s=max(request.settle_s, self.needed_s))

    def drain(self, request: TrialRequest) -> TrialRequest:
        """Returns the request with as long a drain as its frames need."""
        return request.replace(drain_s=max(request.drain_s, self.needed_s))

    def waits_behind(self, request: TrialRequest) -> tuple[float, ...]:
        """Returns how long learning frames behind a trial are waited for, one time after the other."""
        last_s = max(request.settle_s, self.needed_s + _STUCK_S)
        short = (min(request.settle_s, _AT_ONCE_S), request.settle_s)
        return (*(each for each in dict.fromkeys(short) if self.needed_s <= each < last_s), last_s)
