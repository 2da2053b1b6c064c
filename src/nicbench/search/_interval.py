"""From samples to an outcome: the one rule by which every search's trials are read. Pure.

The DUT is taken to carry every load up to some step and none above it. The step reported is the one that contradicts
the least trial time; of equal ones, the lowest. Where higher loads never pass below failing ones this is the plain rule
(highest load passed below the lowest that failed); where one trial lost frames for a reason of its own, far below loads
that passed again and again, those outvote it, as the exceed ratio of MLRsearch does, and the trial is listed as a
contradiction instead of becoming the result. A single pass above a single failure outvotes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nicbench.model.rate import Bounded, LimitedBy
from nicbench.search.base import CLOSE, Contradiction, Goal, Limits, Outcome, Sample

DISTURBED_SHARE = 0.5
"""What a disturbed trial's time counts beside an undisturbed one's."""


@dataclass(frozen=True)
class Load:
    """All trials at one load, read for one goal."""

    frames_per_s: float
    passes: int
    failures: int
    weight: float
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Bounds:
    """The loads on both sides of the step; ``None`` where no load was tried on that side."""

    lower: Load | None
    upper: Load | None


def same_load(one: float, other: float) -> bool:
    """Whether two loads differ by rounding only."""
    return abs(one - other) <= CLOSE * max(abs(one), abs(other))


def full_length(samples: Iterable[Sample], limits: Limits) -> list[Sample]:
    """The trials of full duration; a shorter one can pass on buffers alone, so it never makes a bound."""
    return [sample for sample in samples if sample.duration_s >= limits.trial_duration_s * (1.0 - CLOSE)]


def loads_of(samples: Iterable[Sample], goal: Goal) -> list[Load]:
    """The samples by load, ascending."""
    groups: list[list[Sample]] = []
    for sample in sorted(samples, key=lambda sample: sample.load_frames_per_s):
        if groups and same_load(groups[-1][0].load_frames_per_s, sample.load_frames_per_s):
            groups[-1].append(sample)
        else:
            groups.append([sample])
    loads = []
    for group in groups:
        signs = [1 if goal.passed_by(sample) else -1 for sample in group]
        weight = sum(sign * _weight(sample) for sign, sample in zip(signs, group, strict=True))
        loads.append(Load(group[0].load_frames_per_s, signs.count(1), signs.count(-1), weight, tuple(group)))
    return loads


def _certainly_above(load: Load) -> float:
    """A failed load as an upper bound.

    After a pause the tester makes good what it missed, and a DUT with a bucket or a queue may lose frames that it would
    have carried at an even pace: the bound is raised by as much as the frames were denser, in the evenest trial.
    """
    return load.frames_per_s * (1.0 + min(sample.pacing_uncertainty for sample in load.samples))


def _weight(sample: Sample) -> float:
    """A trial that had to be used although disturbed is outvoted by one that was not."""
    return sample.duration_s if sample.valid else DISTURBED_SHARE * sample.duration_s


def bounds_of(loads: Sequence[Load]) -> Bounds:
    """The step that contradicts the least trial time, the lowest of equals."""
    best_count, best_weight, weight = 0, 0.0, 0.0
    for count, load in enumerate(loads, start=1):
        weight += load.weight
        if weight > best_weight + CLOSE:
            best_count, best_weight = count, weight
    lower = loads[best_count - 1] if best_count else None
    upper = loads[best_count] if best_count < len(loads) else None
    return Bounds(lower, upper)


def is_narrow(bounds: Bounds, limits: Limits) -> bool:
    """Whether nothing is left to find: within precision, or the maximum passed, or the minimum failed."""
    lower, upper = bounds.lower, bounds.upper
    if lower is None:
        return upper is not None and upper.frames_per_s <= limits.minimum_load_frames_per_s * (1.0 + CLOSE)
    if upper is None:
        return lower.frames_per_s >= limits.maximum_load_frames_per_s * (1.0 - CLOSE)
    return upper.frames_per_s - lower.frames_per_s <= limits.precision * upper.frames_per_s * (1.0 + CLOSE)


def outcome_of(samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
    """Reads all trials of a search for one goal."""
    used = full_length(samples, limits)
    notes: list[str] = []
    if samples and not used:
        used = list(samples)
        notes.append("the trials were spent before one of full duration: shorter ones decide")
    loads = loads_of(used, goal)
    bounds = bounds_of(loads)
    contradictions = _contradictions(loads, bounds, goal)
    if contradictions:
        notes.append(f"{len(contradictions)} of {len(used)} trials disagree with the reported bounds and are outvoted")
    narrow = is_narrow(bounds, limits) and not (samples and not full_length(samples, limits))
    if not narrow:
        notes.append(_why_open(bounds, limits, len(samples)))
    lower, upper = bounds.lower, bounds.upper
    deciding = [sample for load in (lower, upper) if load is not None for sample in load.samples]
    rate = Bounded(
        value=lower.frames_per_s if lower else None,
        lower=lower.frames_per_s if lower else None,
        upper=_certainly_above(upper) if upper else None,
        limited_by=_limited_by(bounds, limits, narrow),
        n=len(used),
        reason_null=None if lower else _why_none(upper, limits, goal),
    )
    return Outcome(
        goal=goal.name,
        outcome="none" if lower is None else "at_least" if upper is None else "interval",
        rate=rate,
        converged=narrow,
        contradictions=contradictions,
        trials=len(samples),
        disturbed=any(not sample.valid for sample in deciding),
        deciding_trial_ids=tuple(name for sample in deciding for name in sample.trial_ids),
        notes=tuple(notes),
    )


def _contradictions(loads: Sequence[Load], bounds: Bounds, goal: Goal) -> tuple[Contradiction, ...]:
    found = []
    for load in loads:
        below = bounds.lower is not None and load.frames_per_s <= bounds.lower.frames_per_s
        for sample in load.samples:
            if goal.passed_by(sample) != below:
                found.append(
                    Contradiction(
                        load_frames_per_s=sample.load_frames_per_s,
                        passed=not below,
                        loss_ratio=sample.counts.loss_ratio,
                        trial_ids=sample.trial_ids,
                    )
                )
    return tuple(found)


def _limited_by(bounds: Bounds, limits: Limits, narrow: bool) -> LimitedBy | None:
    if bounds.upper is not None:
        return LimitedBy.DUT
    # A pass below a maximum that was never tried tells nothing of what limits the DUT.
    return limits.maximum_limited_by if bounds.lower is not None and narrow else None


def _why_none(upper: Load | None, limits: Limits, goal: Goal) -> str:
    if upper is None:
        return "no trial was made"
    received = sum(sample.counts.received for sample in upper.samples)
    what = "no frame came back" if received == 0 else _exceeded(goal)
    tried = f"at {upper.frames_per_s:.0f} frames/s, the lowest load tried"
    if upper.frames_per_s > limits.minimum_load_frames_per_s * (1.0 + CLOSE):
        return f"{what} {tried}; the trials were spent before the minimum load"
    return f"{what} {tried}"


def _exceeded(goal: Goal) -> str:
    return f"the loss exceeded {goal.loss_ratio * 100:g} %" if goal.loss_ratio else "frames were lost"


def _why_open(bounds: Bounds, limits: Limits, trials: int) -> str:
    if bounds.lower is not None and bounds.upper is not None:
        width = 1.0 - bounds.lower.frames_per_s / bounds.upper.frames_per_s
        asked = f"{limits.precision * 100:.2f} % was asked for"
        return f"the interval is {width * 100:.2f} % wide after {_counted(trials)}; {asked}"
    missing = "passed" if bounds.lower is None else "failed"
    return f"the search ended after {_counted(trials)} without a load that {missing}"


def _counted(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"
