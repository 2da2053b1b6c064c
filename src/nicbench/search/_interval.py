"""From samples to an outcome: the one rule by which the trials of every search are evaluated.

The DUT is assumed to carry every load up to some step and none above it. The step reported is the one that contradicts
the least trial time; of equal ones, the lowest. Where higher loads never pass below failing ones this is the plain rule
(highest load passed below the lowest that failed). Where one trial lost frames for a reason of its own, far below loads
that passed again and again, those outvote it, as the exceed ratio of MLRsearch does, and the trial is listed as a
contradiction instead of becoming the result. A single pass above a single failure outvotes nothing.

Where a validation trial failed at a load that shorter trials passed, the shorter ones were misleading: from then on a
short pass does not count at loads that no long trial confirmed. A short failure still counts, because a longer trial
contains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nicbench.core.result import PASSES_NOTHING, Bounded, LimitedBy
from nicbench.core.units import format_digits
from nicbench.search.base import CLOSE, Contradiction, Goal, Limits, Outcome, Sample

DISTURBED_SHARE = 0.5
"""The weight of a disturbed trial's time; an undisturbed one's is 1."""


@dataclass(frozen=True)
class Load:
    """All trials at one load, evaluated for one goal."""

    frames_per_s: float
    passes: int
    failures: int
    weight: float
    samples: tuple[Sample, ...]

    @property
    def longest_s(self) -> float:
        """The duration of the longest trial at this load."""
        return max(sample.duration_s for sample in self.samples)


@dataclass(frozen=True)
class Bounds:
    """The loads on both sides of the step; ``None`` where no load was tried on that side."""

    lower: Load | None
    upper: Load | None


@dataclass(frozen=True)
class Reading:
    """All trials evaluated for one goal. ``misled``: short trials passed where a validation trial failed."""

    goal: Goal
    loads: tuple[Load, ...]
    bounds: Bounds
    misled: bool


def same_load(one: float, other: float) -> bool:
    """Returns whether two loads differ by rounding only."""
    return abs(one - other) <= CLOSE * max(abs(one), abs(other))


def loads_of(samples: Iterable[Sample], goal: Goal) -> list[Load]:
    """Groups the samples by load, ascending."""
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


def read(samples: Iterable[Sample], goal: Goal, limits: Limits) -> Reading:
    """Computes the bounds from samples by the rule of this module."""
    loads = loads_of(samples, goal)
    misled = _were_misled(loads, goal, limits)
    if misled:
        loads = loads_of(_drop_short_passes(loads, goal, limits), goal)
    return Reading(goal, tuple(loads), bounds_of(loads), misled)


def bounds_so_far(samples: Iterable[Sample], goal: Goal, limits: Limits) -> tuple[float | None, float | None]:
    """Returns the highest load that passes and the lowest that fails, in frames per second; None where none is known.

    For whoever watches a search: the rule is that of its outcome, in which a trial that was not sent as it was asked
    for is one of the load that was sent.
    """
    least = 1.0 - limits.precision / 2
    sent = (
        one if one.sent_share >= least else one.count_at(one.load_frames_per_s * one.sent_share)
        for one in samples
        if one.sent_share > 0.0
    )
    found = read(sent, goal, limits).bounds
    lower = None if found.lower is None else found.lower.frames_per_s
    return lower, None if found.upper is None else found.upper.frames_per_s


def is_long(sample: Sample, limits: Limits) -> bool:
    """Returns whether it is a validation trial."""
    longest = limits.validation_duration_s
    return longest is not None and sample.duration_s >= longest * (1.0 - CLOSE)


def is_validated(load: Load, goal: Goal, limits: Limits) -> bool:
    """Returns whether this lower bound needs no validation trial, or most of its validation trials passed."""
    return limits.validation_duration_s is None or _long_balance(load, goal, limits) > 0


def _long_balance(load: Load, goal: Goal, limits: Limits) -> int:
    """Returns the number of validation trials passed less those failed."""
    return sum(1 if goal.passed_by(sample) else -1 for sample in load.samples if is_long(sample, limits))


def _were_misled(loads: Sequence[Load], goal: Goal, limits: Limits) -> bool:
    failed = [load.frames_per_s for load in loads if _long_balance(load, goal, limits) < 0]
    return bool(failed) and any(
        goal.passed_by(sample) and not is_long(sample, limits)
        for load in loads
        if load.frames_per_s >= failed[0] * (1.0 - CLOSE)
        for sample in load.samples
    )


def find_misleading(samples: Iterable[Sample], goal: Goal, limits: Limits) -> list[float]:
    """Returns the loads at which short trials passed and a validation trial failed, ascending."""
    return [
        load.frames_per_s
        for load in loads_of(samples, goal)
        if _long_balance(load, goal, limits) < 0
        and any(goal.passed_by(sample) and not is_long(sample, limits) for sample in load.samples)
    ]


def _drop_short_passes(loads: Iterable[Load], goal: Goal, limits: Limits) -> list[Sample]:
    remaining: list[Sample] = []
    for load in loads:
        confirmed = _long_balance(load, goal, limits) > 0
        remaining += (
            sample for sample in load.samples if confirmed or is_long(sample, limits) or not goal.passed_by(sample)
        )
    return remaining


def _upper_bound(load: Load) -> float:
    """Returns the upper bound that a failed load supports.

    After a pause the tester catches up, and a DUT with a bucket or a queue may lose frames that it would have carried
    at an even pace: the bound is raised by the share by which frames were denser, in the evenest trial.
    """
    return load.frames_per_s * (1.0 + min(sample.pacing_uncertainty for sample in load.samples))


def _weight(sample: Sample) -> float:
    """Returns the trial's time; that of a disturbed trial counts less, so that an undisturbed one outvotes it."""
    return sample.duration_s if sample.valid else DISTURBED_SHARE * sample.duration_s


def bounds_of(loads: Sequence[Load]) -> Bounds:
    """Finds the step that contradicts the least trial time, the lowest of equals."""
    best_count, best_weight, weight = 0, 0.0, 0.0
    for count, load in enumerate(loads, start=1):
        weight += load.weight
        if weight > best_weight + CLOSE:
            best_count, best_weight = count, weight
    lower = loads[best_count - 1] if best_count else None
    upper = loads[best_count] if best_count < len(loads) else None
    return Bounds(lower, upper)


def is_narrow(bounds: Bounds, limits: Limits) -> bool:
    """Returns whether nothing is left to find: within precision, or the maximum passed, or the minimum failed."""
    lower, upper = bounds.lower, bounds.upper
    if lower is None:
        return upper is not None and upper.frames_per_s <= limits.minimum_load_frames_per_s * (1.0 + CLOSE)
    if upper is None:
        return lower.frames_per_s >= limits.maximum_load_frames_per_s * (1.0 - CLOSE)
    enough = max(limits.precision * upper.frames_per_s, limits.narrow_enough_frames_per_s)
    return upper.frames_per_s - lower.frames_per_s <= enough * (1.0 + CLOSE)


def outcome_of(samples: Sequence[Sample], goal: Goal, limits: Limits) -> Outcome:
    """Computes the outcome of all trials of a search for one goal."""
    reading = read(samples, goal, limits)
    loads, bounds = reading.loads, reading.bounds
    if reading.misled and bounds.lower is None:
        # The trials were spent before a long one passed: only the short passes below the failure are left.
        loads = tuple(loads_of(samples, goal))
        bounds = bounds_of(loads)
    lower, upper = bounds.lower, bounds.upper
    notes: list[str] = []
    contradictions = _contradictions(loads, bounds, goal)
    if contradictions:
        counted = f"{len(contradictions)} of {len(samples)} trials"
        notes.append(f"{counted} disagree with the reported bounds and are outvoted")
    narrow = is_narrow(bounds, limits)
    validated = lower is None or is_validated(lower, goal, limits)
    if not narrow:
        notes.append(f"{_explain_open(bounds, limits, len(samples))}{_explain_ceiling(bounds.upper, limits)}")
    if reading.misled:
        notes.append(_describe_misled(samples, goal, limits))
    if not validated:
        notes.append(explain_unvalidated(lower.frames_per_s if lower else 0.0, limits))
    deciding = [sample for load in (lower, upper) if load is not None for sample in load.samples]
    rate = Bounded(
        value=lower.frames_per_s if lower else None,
        lower=lower.frames_per_s if lower else None,
        upper=_upper_bound(upper) if upper else None,
        limited_by=_find_limit(bounds, limits, narrow),
        n=len(samples),
        reason_null=None if lower else explain_none(samples, upper, limits, goal),
    )
    return Outcome(
        goal=goal.name,
        outcome="none" if lower is None else "at_least" if upper is None else "interval",
        rate=rate,
        converged=narrow and validated,
        passed_for_s=_passed_for_s(lower, goal),
        contradictions=contradictions,
        trials=len(samples),
        disturbed=any(not sample.valid for sample in deciding),
        deciding_trial_ids=tuple(name for sample in deciding for name in sample.trial_ids),
        notes=tuple(notes),
    )


def _passed_for_s(lower: Load | None, goal: Goal) -> float | None:
    """Returns the duration of the longest trial that the lower bound passed."""
    return max((one.duration_s for one in lower.samples if goal.passed_by(one)), default=None) if lower else None


def _describe_misled(samples: Iterable[Sample], goal: Goal, limits: Limits) -> str:
    failed = [load for load in loads_of(samples, goal) if _long_balance(load, goal, limits) < 0]
    load = next((load for load in failed if load.passes), failed[0])
    return (
        f"at {load.frames_per_s:.0f} frames/s shorter trials met the goal and one of {limits.longest_trial_s:g} s did "
        "not: the search went on below it with trials of that length"
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


def _find_limit(bounds: Bounds, limits: Limits, narrow: bool) -> LimitedBy | None:
    if bounds.upper is not None:
        return LimitedBy.DUT
    # A pass below a maximum that was never tried does not show what limits the DUT.
    return limits.maximum_limited_by if bounds.lower is not None and narrow else None


def explain_none(
    samples: Sequence[Sample],
    upper: Load | None,
    limits: Limits,
    goal: Goal,
    ended: str = "the trials were spent before the minimum load",
) -> str:
    """Returns the reason why no load passed; ``ended`` says why the minimum load was not tried."""
    if upper is None:
        return "no trial was made"
    dead = all(sample.counts.received == 0 for sample in samples)
    what = f"{PASSES_NOTHING}: no frame came back" if dead else _describe_loss(goal)
    tried = f"at {upper.frames_per_s:.0f} frames/s, the lowest load tried"
    if upper.frames_per_s > limits.minimum_load_frames_per_s * (1.0 + CLOSE):
        return f"{what} {tried}; {ended}"
    return f"{what} {tried}"


def _describe_loss(goal: Goal) -> str:
    return f"the loss exceeded {goal.loss_ratio * 100:g} %" if goal.loss_ratio else "frames were lost"


def _explain_open(bounds: Bounds, limits: Limits, trials: int) -> str:
    if bounds.lower is not None and bounds.upper is not None:
        width = 1.0 - bounds.lower.frames_per_s / bounds.upper.frames_per_s
        asked = f"{format_digits(limits.precision * 100)} % was the goal"
        return f"the interval is {format_digits(width * 100)} % wide after {_count_trials(trials)}; {asked}"
    missing = "passed" if bounds.lower is None else "failed"
    return f"the search ended after {_count_trials(trials)} without a load that {missing}"


def _explain_ceiling(upper: Load | None, limits: Limits) -> str:
    """Explains an interval that reaches above what the tester sends by now."""
    most = limits.maximum_load_frames_per_s
    if limits.maximum_limited_by is not LimitedBy.TESTER or upper is None or upper.frames_per_s <= most * (1.0 + CLOSE):
        return ""
    return f"; the tester sends no more than {most:.0f} frames/s by now"


SENT_LESS = "the tester fell short of loads that it had sent before, which is a disturbance and no ceiling"


def explain_unvalidated(lower_frames_per_s: float, limits: Limits) -> str:
    """Explains why no trial of full length confirmed a rate."""
    asked = limits.asked_up_to_frames_per_s
    if asked is not None and lower_frames_per_s > asked * (1.0 + CLOSE):
        return f"{SENT_LESS}: no trial of {limits.longest_trial_s:g} s could confirm the rate"
    most = limits.maximum_load_frames_per_s
    if limits.maximum_limited_by is LimitedBy.TESTER and lower_frames_per_s > most * (1.0 + CLOSE):
        why = f"the tester sends no more than {most:.0f} frames/s by now"
        return f"{why}: no trial of {limits.longest_trial_s:g} s could confirm the rate"
    return f"the trials were spent before one of {limits.longest_trial_s:g} s could confirm the rate"


def _count_trials(trials: int) -> str:
    return "1 trial" if trials == 1 else f"{trials} trials"
