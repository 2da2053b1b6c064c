"""From samples to an estimated rate: what all trials of a search say of one goal, by the model of stats/capacity.py.

The interval reaches at least from the nearest pass below the estimate to the nearest failure above it: a knee is known
no better than the loads tried resolve it, however well the trials fit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.result import Bounded, LimitedBy
from nicbench.core.units import format_digits, format_rate
from nicbench.search._interval import explain_none, read
from nicbench.search.base import CERTAIN, CLOCK_CHANGES, CLOSE, Estimate, Goal, Limits, Outcome, Sample
from nicbench.stats.capacity import EVEN, LEAST_SHARE, Model, Observation, Posterior, fit
from nicbench.stats.capacity_checks import contradicts_forwarding, find_misfit, grows_with_load
from nicbench.stats.capacity_clock import extrapolate_clock
from nicbench.stats.capacity_shares import effective_looks

ABOVE_THE_MAXIMUM = 2.0
"""How far above the highest load that can be offered a rate may be estimated, of a core of its own."""
EXTRAPOLATED = 0.1
"""The rate of a core of its own is extrapolated where every trial found a larger share of slow looks."""
WORTH_SAYING = 0.01
"""As the machine was, the DUT bore less by more than this, and than the precision, or no note says so."""
RECENT = 3
"""So many trials say which share of slow looks the next one is likely to find."""
NEAR = 4.0
"""Trials within so many deviations of the estimate tell most of it."""


@dataclass(frozen=True)
class Fit:
    """One goal, fitted to the samples. Rates are of a core of its own, at the clock for which they are stated."""

    goal: Goal
    samples: tuple[Sample, ...]
    posterior: Posterior
    model: Model
    lower: float
    middle: float
    upper: float
    width_seen: float
    """The width of the interval for the highest clock that was seen: so far, further trials may narrow it."""
    misfit: str | None

    @property
    def slope(self) -> float:
        """By which part the rate falls where the core is slow all the time."""
        return self.posterior.likely_slope

    @property
    def width(self) -> float:
        """The width of the interval, relative to its upper end."""
        return 1.0 - self.lower / self.upper

    @property
    def clock_is_open(self) -> bool:
        """Whether the rate would be another if it followed the clock, and the trials do not tell whether it does."""
        clocks = [clock_of(sample, self.samples) for sample in self.samples]
        uncertain = 1.0 - CERTAIN < self.posterior.core_limits < CERTAIN
        return uncertain and min(clocks) < 1.0 - CLOCK_CHANGES

    @property
    def follows_clock(self) -> bool:
        """Whether the rate rather follows the core's clock than not."""
        return self.posterior.core_limits > EVEN

    def drop(self, sample: Sample) -> float:
        """Returns the part of its rate that the DUT could reach in a trial, as its core was."""
        clock = clock_of(sample, self.samples) if self.follows_clock else 1.0
        return clock * (1.0 - self.slope * (sample.slow_share or 0.0))

    def alone(self, sample: Sample) -> float:
        """Returns the load that would have been as much for a core of its own."""
        return sample.load_frames_per_s / self.drop(sample)

    def expected_drop(self) -> float:
        """Returns the part of the rate that the DUT is likely to reach in the next trial."""
        return statistics.median(self.drop(sample) for sample in self.samples[-RECENT:])

    def near(self, limits: Limits) -> list[Sample]:
        """Returns the trials that tell most of the rate."""
        reach = max(NEAR * self.posterior.scatter, 2.0 * limits.precision)
        return [sample for sample in self.samples if abs(self.alone(sample) / self.middle - 1.0) <= reach]


def highest_clock_hz(samples: Sequence[Sample]) -> float | None:
    """Returns the highest clock that the DUT's core is known to reach; None where nobody looked."""
    known = [clock for sample in samples for clock in (sample.highest_clock_hz, sample.clock_hz) if clock]
    return max(known, default=None)


def find_reference(samples: Sequence[Sample]) -> ReferenceClock | None:
    """Returns the clock of earlier runs for which rates are stated; None where that is the highest one seen here."""
    reference = next((sample.reference_clock for sample in samples if sample.reference_clock is not None), None)
    return reference if reference is not None and reference.applies_to(highest_clock_hz(samples)) else None


def stated_clock_hz(samples: Sequence[Sample]) -> float | None:
    """Returns the clock for which a rate is stated that follows the clock; None where nobody looked."""
    reference = find_reference(samples)
    return highest_clock_hz(samples) if reference is None else reference.clock_hz


def clock_of(sample: Sample, samples: Sequence[Sample]) -> float:
    """Returns the core's clock in a trial, relative to the one stated; the usual one where nobody looked."""
    stated = stated_clock_hz(samples)
    if stated is None:
        return 1.0
    usual = statistics.median(one.clock_hz for one in samples if one.clock_hz)
    return (sample.clock_hz or usual) / stated


def observe(sample: Sample, goal: Goal, clock: float = 1.0) -> Observation:
    """Converts one trial at a relative clock; what the tester did not send was no load.

    A disturbed trial counts like others: half its likelihood would make the scatter look larger, and find no rate.
    """
    counts = sample.counts
    offered = max(1, counts.offered)
    load = sample.load_frames_per_s * min(1.0, sample.sent_share)
    lost = counts.loss_ratio
    passed = goal.passed_by(sample)
    returned = load * (1.0 - lost) / (1.0 - goal.loss_ratio)
    # Which frame is lost is a matter of chance, and one frame more or less is none that a load could tell.
    resolution = (lost * (1.0 - lost) / offered + 1.0 / offered**2) ** 0.5
    return Observation(
        load=load,
        critical_load=None if passed or counts.received == 0 else returned,
        passed=passed,
        lost=counts.failed,
        loss_ratio=lost,
        share=sample.slow_share or 0.0,
        looks=_count_looks(sample) if sample.slow_share is not None else 0.0,
        clock=clock,
        resolution=resolution,
    )


def _count_looks(sample: Sample) -> float:
    if sample.independent_looks is not None:
        return sample.independent_looks
    return effective_looks(sample.looks, sample.duration_s)


def fit_goal(samples: Sequence[Sample], goal: Goal, limits: Limits, confidence: float) -> Fit | None:
    """Fits one goal; None where every trial passed, or nothing came back from any."""
    observations = [observe(sample, goal, clock_of(sample, samples)) for sample in samples if sample.sent_share > 0.0]
    if not any(one.critical_load for one in observations):
        return None
    span = limits.minimum_load_frames_per_s / 2.0, limits.maximum_load_frames_per_s * ABOVE_THE_MAXIMUM
    posterior = fit(observations, *span)
    model: Model = "forwarded"
    if contradicts_forwarding(observations, posterior):
        posterior, model = fit(observations, *span, "passed"), "passed"
        if goal.loss_ratio == 0.0:
            losses = fit(observations, *span, "lost")
            if grows_with_load(observations, losses, posterior):
                posterior, model = losses, "lost"
    stated, seen = stated_clock_hz(samples), highest_clock_hz(samples)
    highest = seen / stated if seen and stated else 1.0
    posterior = extrapolate_clock(posterior, -math.log(highest))
    middle = posterior.likely_rate
    tail = (1.0 - confidence) / 2.0
    slope, follows = posterior.likely_slope, posterior.core_limits > EVEN
    loads = [
        (one.load / ((1.0 - slope * one.share) * (one.clock if follows else 1.0)), one.passed) for one in observations
    ]
    below = max((load for load, passed in loads if passed and load <= middle), default=None)
    above = min((load for load, passed in loads if not passed and load >= middle), default=None)
    denser = min(sample.pacing_uncertainty for sample in samples if not goal.passed_by(sample))
    lowest, most = min(middle, below or middle), max(middle, above or middle)

    def interval_at(clock: float) -> tuple[float, float]:
        """Returns what is known of the rate at a relative clock, as the rate that it means at the stated one."""
        part = clock if follows else 1.0
        low, high = posterior.rate(tail, clock=clock) / part, posterior.rate(1.0 - tail, clock=clock) / part
        return min(lowest, low), max(most, high * (1.0 + denser))

    lower, upper = interval_at(1.0)
    lower_seen, upper_seen = interval_at(highest)
    return Fit(
        goal=goal,
        samples=tuple(samples),
        posterior=posterior,
        model=model,
        lower=lower,
        middle=middle,
        upper=upper,
        width_seen=1.0 - lower_seen / upper_seen,
        misfit=find_misfit(observations, posterior),
    )


def outcome_of_fit(found: Fit, limits: Limits, *, settled: bool, passed_for_s: float | None) -> Outcome:
    """Converts a fit to an outcome: the rate of a core of its own, and what the DUT bore as the machine was."""
    samples, goal = found.samples, found.goal
    bounds = read(samples, goal, limits).bounds
    passes = [sample for sample in samples if goal.passed_by(sample)]
    most = limits.maximum_load_frames_per_s
    lower, value, upper = found.lower, found.middle, found.upper
    if found.misfit is not None:
        seen = [one.critical_load or one.load for one in (observe(sample, goal) for sample in samples)]
        near = [rate for rate in seen if rate <= found.upper * ABOVE_THE_MAXIMUM]
        lower, value, upper = min(near), statistics.median(near), max(near)
        lower, upper = min(lower, found.lower), max(upper, found.upper)
    narrow = settled and found.misfit is None
    if not passes:
        reason = explain_none(samples, bounds.upper, limits, goal)
        upper = min([upper, *(sample.load_frames_per_s for sample in samples if not sample.slow_share)])
        rate = Bounded(value=None, upper=upper, limited_by=LimitedBy.DUT, n=len(samples), reason_null=reason)
    elif upper > most * (1.0 + CLOSE) and (lower > most or any(_is_at(sample, most) for sample in passes)):
        # The rate may lie beyond what can be offered, or does so where the core was shared: a lower bound is known.
        lower = min(max(lower, _passed_at_most(samples, goal, most)), most)
        reached = lower >= most * (1.0 - limits.precision)
        rate = Bounded(value=lower, lower=lower, limited_by=limits.maximum_limited_by if reached else None)
        rate = rate.model_copy(update={"n": len(samples)})
    else:
        rate = Bounded(value=value, lower=lower, upper=upper, limited_by=LimitedBy.DUT, n=len(samples))
    deciding = found.near(limits) or list(samples)
    return Outcome(
        goal=goal.name,
        outcome="none" if rate.value is None else "at_least" if rate.upper is None else "interval",
        rate=rate,
        converged=narrow,
        passed_for_s=passed_for_s,
        trials=len(samples),
        disturbed=any(not sample.valid for sample in deciding),
        adjusted=any(sample.adjusted for sample in samples),
        deciding_trial_ids=tuple(name for sample in deciding for name in sample.trial_ids),
        notes=_notes(found, limits, is_open=rate.upper is None)
        if rate.value is not None
        else _notes_without_rate(found),
        estimate=_estimate(found, limits),
    )


def _passed_at_most(samples: Sequence[Sample], goal: Goal, most: float) -> float:
    """Returns the highest load that can be offered where it or a higher one passed and none below it failed, else 0.

    Few trials leave an estimate wide; that this load passed on an unshared core they show all the same.
    """
    passed = any(goal.passed_by(sample) and _is_at(sample, most) and not sample.slow_share for sample in samples)
    failed = any(not goal.passed_by(sample) and sample.load_frames_per_s <= most * (1.0 + CLOSE) for sample in samples)
    return most if passed and not failed else 0.0


def _is_at(sample: Sample, load: float) -> bool:
    return sample.load_frames_per_s >= load * (1.0 - CLOSE)


def _estimate(found: Fit, limits: Limits) -> Estimate:
    posterior, samples = found.posterior, found.samples
    reference = find_reference(samples)
    clocks = [sample.clock_hz for sample in samples if sample.clock_hz]
    estimate = Estimate(scatter=posterior.scatter)
    if clocks:
        estimate = estimate.model_copy(
            update={
                "clock_hz": stated_clock_hz(samples),
                "reference_seen_on": None if reference is None else reference.seen_on,
                "lowest_clock_hz": min(clocks),
                "follows_clock": None if found.misfit else posterior.core_limits,
                "extrapolated": not found.misfit and _extrapolation_words(found) is not None,
            }
        )
    if found.misfit:
        return estimate.model_copy(update={"observed": True})
    shares = sorted(sample.slow_share for sample in samples if sample.slow_share is not None)
    if not shares:
        return estimate
    sloped = shares[-1] > LEAST_SHARE
    by_drop = sorted(samples, key=found.drop, reverse=True)
    half, most = (
        min(posterior.rate(0.5, sample.slow_share or 0.0, clock_of(sample, samples)), limits.maximum_load_frames_per_s)
        for sample in (by_drop[len(by_drop) // 2], by_drop[min(len(by_drop) - 1, int(0.9 * len(by_drop)))])
    )
    return estimate.model_copy(
        update={
            "slope": posterior.slope(0.5) if sloped else None,
            "slope_lower": posterior.slope(0.025) if sloped else None,
            "slope_upper": posterior.slope(0.975) if sloped else None,
            "least_share": shares[0],
            "extrapolated": estimate.extrapolated or shares[0] > EXTRAPOLATED,
            "half_frames_per_s": half,
            "nine_tenths_frames_per_s": most,
        }
    )


def _notes(found: Fit, limits: Limits, *, is_open: bool) -> tuple[str, ...]:
    """Returns what a reader must know of the estimate; ``is_open``: only its lower end is known."""
    estimate = _estimate(found, limits)
    notes = []
    if found.misfit is not None:
        observed = f"{found.misfit}: the rates are those observed, with their spread, not an estimate"
        return observed, *_notes_without_rate(found)
    if not is_open and found.width > limits.precision * (1.0 + CLOSE):
        width, scatter = format_digits(found.width * 100), format_digits(estimate.scatter * 100, 2)
        notes.append(
            f"the interval is {width} % wide after {len(found.samples)} trials, which differ by {scatter} %; the goal "
            f"was {format_digits(limits.precision * 100)} %"
        )
    notes += _notes_without_rate(found)
    if found.model == "lost":
        notes.append(
            "losses begin below the rate returned under overload: the rate is the load at which half of the trials "
            "would lose nothing, from how losses grow with the load"
        )
    half, most = estimate.half_frames_per_s, estimate.nine_tenths_frames_per_s
    if (
        half
        and most
        and most < (1.0 - max(WORTH_SAYING, limits.precision)) * min(found.middle, limits.maximum_load_frames_per_s)
    ):
        notes.append(
            f"the rate is that of a dedicated core{_clock_words(found, estimate)}; under the conditions of the run "
            f"half of the trials passed {format_rate(half)}, and nine of ten {format_rate(most)}"
        )
    if found.clock_is_open and found.width > limits.precision * (1.0 + CLOSE):
        notes.append(
            "the core clock changed, and the trials do not show whether the rate follows it: the interval covers "
            "both cases"
        )
    if (beyond := _extrapolation_words(found)) is not None:
        notes.append(beyond)
    if estimate.least_share is not None and estimate.least_share > EXTRAPOLATED:
        notes.append(
            f"the rate of a dedicated core is extrapolated: even in the quietest trial the core was shared in "
            f"{estimate.least_share * 100:.0f} % of samples"
        )
    return tuple(notes)


def _notes_without_rate(found: Fit) -> tuple[str, ...]:
    """Returns what holds of the trials also where there is no rate: no width, core or clock is that of a bound."""
    if found.model != "passed":
        return ()
    return ("an overloaded DUT returned less than it passes without overload: only passed or failed trials count",)


def _clock_words(found: Fit, estimate: Estimate) -> str:
    stated, lowest = estimate.stated_clock_hz, estimate.lowest_clock_hz
    if stated is None or lowest is None:
        return ""
    reference = find_reference(found.samples)
    source = "the highest clock seen" if reference is None else reference.words
    return f" at {stated / 1e9:.2f} GHz, {source}; the lowest clock in a trial was {lowest / 1e9:.2f} GHz"


def _extrapolation_words(found: Fit) -> str | None:
    """Says that a rate is stated for a clock beyond those seen; None where it is not, or hardly is."""
    reference, highest = find_reference(found.samples), highest_clock_hz(found.samples)
    if reference is None or highest is None or not found.follows_clock:
        return None
    if highest > (1.0 - CLOCK_CHANGES) * reference.clock_hz:
        return None
    return (
        f"the rate is extrapolated to {reference.clock_hz / 1e9:.2f} GHz, {reference.words}: the highest clock in a "
        f"trial was "
        f"{highest / 1e9:.2f} GHz, and the interval includes the error of that"
    )
