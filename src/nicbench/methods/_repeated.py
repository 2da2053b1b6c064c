"""One trial, repeated, for a time that is their average: how many there are, what spoilt them, and the average."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nicbench.methods._returned import Values
from nicbench.methods.base import Context
from nicbench.model.frame_size import Size, size_parameters
from nicbench.model.rate import Bounded
from nicbench.model.result import ResultVerdict
from nicbench.model.trial import Reading, Trial, TrialRequest


@dataclass(frozen=True, slots=True)
class Repeated:
    """The trials, and of each whether it had to be used although disturbed; none where nothing could be sent."""

    trials: tuple[Trial, ...] = ()
    disturbed: tuple[bool, ...] = ()

    @property
    def readings(self) -> list[Reading]:
        return [trial.reading for trial in self.trials]

    @property
    def trial_ids(self) -> tuple[str, ...]:
        return tuple(trial.id for trial in self.trials)

    @property
    def verdict(self) -> ResultVerdict:
        if not self.trials:
            return ResultVerdict.INCOMPLETE
        return ResultVerdict.DISTURBED if any(self.disturbed) else ResultVerdict.VALID

    def disturbances(self, reason_null: str | None) -> tuple[str, ...]:
        """What disturbed them; where there are none, why."""
        if not self.trials:
            return (reason_null,) if reason_null else ()
        pairs = zip(self.trials, self.disturbed, strict=True)
        return tuple(found.text for trial, disturbed in pairs if disturbed for found in trial.verdict.findings)


async def repeated(context: Context, size: Size, request: TrialRequest, repetitions: int) -> Repeated:
    """The same trial so many times."""
    made = [
        await context.measure({**size_parameters(size), "repetition": repetition}, request)
        for repetition in range(1, repetitions + 1)
    ]
    return Repeated(tuple(trial for trial, _ in made), tuple(disturbed for _, disturbed in made))


def average_ms(name: str, times_s: Sequence[float | None], why_unknown: Callable[[], str]) -> Values:
    """The average and the extremes in milliseconds; without them, and with the reason, where one time is unknown."""
    known = [1e3 * time_s for time_s in times_s if time_s is not None]
    if len(known) < len(times_s):
        unknown = Bounded(value=None, n=len(times_s), reason_null=why_unknown())
        return {name: unknown, "repetitions": len(times_s)}
    return {
        name: Bounded(value=statistics.fmean(known), lower=min(known), upper=max(known), n=len(known)),
        "minimum_ms": min(known),
        "maximum_ms": max(known),
        "repetitions": len(known),
    }


def reason_of(values: Values, name: str) -> str | None:
    """Why this value is not there."""
    value = values[name]
    return value.reason_null if isinstance(value, Bounded) else None
