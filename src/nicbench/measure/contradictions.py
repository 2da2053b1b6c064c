"""Demotes a rate that a later trial contradicts: one that lost more at that load, or below it, than the rate allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nicbench.core.frame_size import label_of, size_label
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Purpose, Trial
from nicbench.core.units import format_rate, format_ratio
from nicbench.methods.base import Method, Promise

_STEADY: Final = frozenset({Purpose.LATENCY, Purpose.LOSS, Purpose.AVERAGE, Purpose.SOAK, Purpose.POWER})
"""Trials that may offer one load for all of their time; what a search makes of its own trials it says itself."""
_SAME: Final = 1.0 + 1e-9


def with_contradictions(
    results: Sequence[Result], methods: Mapping[tuple[str, str], Method], trials: Iterable[Trial]
) -> tuple[Result, ...]:
    """Results that promise a rate are disturbed where a valid trial after them broke it; the reason says so.

    ``methods`` are those of the bench file by configuration and test.
    """
    steady = [
        trial for trial in trials if trial.verdict.valid and trial.request.purpose in _STEADY and trial.request.is_plain
    ]
    return tuple(_demoted(result, methods.get((result.configuration, result.test or "")), steady) for result in results)


def _demoted(result: Result, method: Method | None, steady: Sequence[Trial]) -> Result:
    promises = () if method is None else method.promises(result)
    found = [(promise, _broken(promise, result, steady)) for promise in promises]
    broken = [(promise, trial) for promise, trial in found if trial is not None]
    if not broken:
        return result
    values = dict(result.values)
    for promise, _ in broken:
        rate = values[promise.value]
        if isinstance(rate, Bounded) and rate.limited_by is LimitedBy.DUT:
            values[promise.value] = rate.replace(limited_by=None)
    reasons = tuple(_say(promise, trial) for promise, trial in broken)
    stood = result.verdict.is_reliable
    result = result.replace(values=values, disturbances=(*result.disturbances, *reasons))
    if not stood:
        return result
    return result.replace(verdict=ResultVerdict.DISTURBED, contradicted_by=tuple(trial.id for _, trial in broken))


def _broken(promise: Promise, result: Result, steady: Sequence[Trial]) -> Trial | None:
    """The later trial of the same size, configuration and run that lost most of its frames, if one lost too many."""
    last = max((int(name[1:]) for name in result.trials), default=0)
    size = label_of(result.parameters)
    later = [
        trial
        for trial in steady
        if trial.number > last
        and (trial.configuration, trial.run) == (result.configuration, result.run or 1)
        and size_label(trial.request.size) == size
        and (trial.request.sent_frames_per_s or 0.0) <= promise.load_frames_per_s * _SAME
        and trial.request.load_frames_per_s is not None
        and trial.reading.counts.loss_ratio > promise.loss_ratio
    ]
    return max(later, key=lambda trial: trial.reading.counts.loss_ratio, default=None)


def _say(promise: Promise, trial: Trial) -> str:
    counts = trial.reading.counts
    load = trial.request.sent_frames_per_s or 0.0
    return (
        f"{promise.name}: contradicted by {trial.id} of {trial.test}, which lost {counts.failed} of {counts.sent} "
        f"frames ({format_ratio(counts.loss_ratio)}) at {format_rate(load)}"
    )
