"""Searches against simulated DUTs whose truth is computed from the curve before the search is run.

A case is right when the outcome is the right kind and its interval meets the band of loads at which a trial passes with
a probability between 0.9 and 0.1; where the answer is validated, a trial of that length. Three broken searches must
fail the very same check.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from scipy.special import bdtr

from nicbench.core.result import Bounded, LimitedBy
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search.base import NDR, PDR, CeilingReached, Goal, Limits, Measure, Outcome, Sample, Search
from nicbench.search.bisect import Bisect
from nicbench.search.mlr import Mlr
from nicbench.search.step_down import StepDown

GOALS = (NDR, PDR)
# In `make test`, and in acceptance.
SHARP_CASES, MANY_SHARP_CASES = 100, 200
# Not fewer: bisect is wrong in one outcome of 400, and half as many cases would fail by chance once in 70 sessions.
RANDOM_CASES, MANY_RANDOM_CASES = 200, 1000
DRAWN_CASES = 200  # so many hold each kind of DUT for certain
RANDOM_SHARE_RIGHT = 0.99


@dataclass(frozen=True)
class Case:
    """One DUT behind one tester, and the limits of the search."""

    dut: SimulatedDut
    limits: Limits
    ceiling_frames_per_s: float | None
    says_ceiling: bool
    seed: int

    @property
    def reachable_frames_per_s(self) -> float:
        maximum = self.limits.maximum_load_frames_per_s
        return maximum if self.ceiling_frames_per_s is None else min(maximum, self.ceiling_frames_per_s)

    @property
    def limited_by(self) -> LimitedBy:
        reachable = self.reachable_frames_per_s
        return LimitedBy.TESTER if reachable < self.limits.maximum_load_frames_per_s else LimitedBy.LINE_RATE

    def machine(self) -> SimulatedMachine:
        return SimulatedMachine(
            self.dut, self.seed, ceiling_frames_per_s=self.ceiling_frames_per_s, says_ceiling=self.says_ceiling
        )


@dataclass(frozen=True)
class Band:
    """Up to ``surely`` a trial passes with probability 0.9 or more, from ``hardly`` on with 0.1 or less."""

    surely: float | None
    hardly: float | None


def passing_probability(case: Case, goal: Goal, load: float, duration_s: float | None = None) -> float:
    """Whether one trial, of full length by default, meets the goal, by the binomial distribution of its losses."""
    duration_s = duration_s or case.limits.longest_trial_s
    dut, frames = case.dut, int(load * duration_s)
    allowed = int(goal.loss_ratio * frames)
    if dut.exact:
        lost = max(0, frames - int(dut.capacity_frames_per_s * duration_s + 1e-6))
        return 1.0 if lost <= allowed else 0.0
    probability = dut.loss_probability(load)
    usual = float(bdtr(allowed, frames, probability))
    fewer = allowed - int(frames * dut.spurious_loss)
    spurious = float(bdtr(fewer, frames, probability)) if fewer >= 0 else 0.0
    return (1.0 - dut.spurious_share) * usual + dut.spurious_share * spurious


def band_of(case: Case, goal: Goal) -> Band:
    """A lower bound has passed a trial of full length; an upper bound may have failed in a short one."""
    low, high = case.limits.minimum_load_frames_per_s, case.reachable_frames_per_s

    def crossing(level: float, duration_s: float) -> float | None:
        """The load at which the probability falls to ``level``; None where it is not above it even at the minimum."""
        if passing_probability(case, goal, low, duration_s) <= level:
            return None
        below, above = low, high
        for _ in range(40):
            middle = (below + above) / 2
            if passing_probability(case, goal, middle, duration_s) > level:
                below = middle
            else:
                above = middle
        return below

    full_s = case.limits.longest_trial_s
    surely = [crossing(0.9, duration_s) for duration_s in {case.limits.trial_duration_s, full_s}]
    hardly = (crossing(0.1, full_s) or low) if passing_probability(case, goal, high) <= 0.1 else None
    return Band(None if None in surely else min(filter(None, surely)), hardly)


def what_is_wrong(case: Case, goal: Goal, outcome: Outcome, band: Band) -> str | None:
    """Compares an outcome with the truth; None where it is right."""
    rate, precision = outcome.rate, case.limits.precision
    low, high = case.limits.minimum_load_frames_per_s, case.reachable_frames_per_s
    if not outcome.converged:
        return f"not converged: {outcome.notes}"
    if outcome.outcome == "none":
        return "none, but the minimum load passes" if passing_probability(case, goal, low) >= 0.9 else None
    if rate.value is None or rate.lower is None:
        return "an outcome without a rate"
    if outcome.outcome == "at_least":
        if passing_probability(case, goal, rate.value) <= 0.1:
            return f"at least {rate.value:.0f}, but that load fails; {band}"
        # A ceiling leaves half a precision of room at each restart; two happen where the first trial met it.
        if not high * (1.0 - 2 * precision) <= rate.value <= high * (1.0 + 1e-9):
            return f"at least {rate.value:.0f} where {high:.0f} can be sent"
        return None if rate.limited_by is case.limited_by else f"limited by {rate.limited_by}"
    if rate.upper is None:
        return "an interval without an upper bound"
    if rate.limited_by is not LimitedBy.DUT:
        return f"limited by {rate.limited_by}"
    if rate.upper - rate.lower > precision * rate.upper * (1.0 + 1e-6):
        return f"too wide: {rate.lower:.0f} to {rate.upper:.0f}"
    grain = 2.0 / (rate.upper * case.limits.trial_duration_s)  # one frame more or less is no loss that shows
    if band.hardly is not None and rate.lower > band.hardly * (1.0 + grain):
        return f"{rate.lower:.0f} to {rate.upper:.0f} lies above {band}"
    if passing_probability(case, goal, high) >= 0.9 or (
        band.surely is not None and rate.upper < band.surely * (1.0 - grain)
    ):
        return f"{rate.lower:.0f} to {rate.upper:.0f} lies below {band}"
    return None


def wrongs(search: Search, cases: Sequence[Case]) -> list[str]:
    """Every case and goal that the search got wrong, in words."""
    found = []
    for number, case in enumerate(cases):
        bands = {goal.name: band_of(case, goal) for goal in GOALS}
        outcomes = search.run(case.machine().measure, GOALS, case.limits)
        for goal in GOALS:
            wrong = what_is_wrong(case, goal, outcomes[goal.name], bands[goal.name])
            if wrong is not None:
                found.append(f"case {number} {goal.name}: {wrong}; {case}")
    return found


def assert_sharp_curves_are_found(search: Search, cases: Sequence[Case]) -> None:
    found = wrongs(search, cases)
    assert not found, f"{len(found)} wrong of {len(cases)}, the first: {found[:3]}"


def assert_random_curves_are_found(search: Search, cases: Sequence[Case]) -> None:
    found = wrongs(search, cases)
    allowed = (1.0 - RANDOM_SHARE_RIGHT) * len(cases) * len(GOALS)
    assert len(found) <= allowed, f"{len(found)} wrong of {len(cases)}, the first: {found[:3]}"


def draw_limits(draw: random.Random, maximum_trials: int) -> Limits:
    duration_s = draw.choice((0.5, 1.0, 2.0))
    maximum = draw.uniform(2e5, 15e6)
    return Limits(
        minimum_load_frames_per_s=maximum * draw.choice((0.001, 0.01)),
        maximum_load_frames_per_s=maximum,
        maximum_limited_by=LimitedBy.LINE_RATE,
        precision=draw.choice((0.005, 0.01, 0.02)),
        trial_duration_s=duration_s,
        validation_duration_s=draw.choice((None, duration_s * 10)),
        maximum_trials=maximum_trials,
    )


def draw_case(draw: random.Random, limits: Limits, dut: SimulatedDut) -> Case:
    ceiling = limits.maximum_load_frames_per_s * draw.uniform(0.2, 0.95) if draw.random() < 0.2 else None
    return Case(dut, limits, ceiling, draw.random() < 0.5, draw.getrandbits(32))


def draw_capacity(draw: random.Random, limits: Limits) -> float:
    """Mostly within the limits; some DUTs are dead, some carry the line rate."""
    kind = draw.random()
    if kind < 0.05:
        return 0.0
    maximum = limits.maximum_load_frames_per_s
    return maximum * draw.uniform(1.05, 3.0) if kind < 0.15 else maximum * draw.uniform(0.02, 0.98)


def drawn_sharp_cases(draw: random.Random, count: int) -> list[Case]:
    cases = []
    for _ in range(count):
        limits = draw_limits(draw, 60)
        dut = SimulatedDut(draw_capacity(draw, limits), exact=True, lossless=draw.random() < 0.2)
        cases.append(draw_case(draw, limits, dut))
    return cases


def drawn_cases(draw: random.Random, count: int) -> list[Case]:
    cases = []
    for _ in range(count):
        limits = draw_limits(draw, 400)
        dut = SimulatedDut(
            draw_capacity(draw, limits),
            floor=draw.choice((0.0, 0.0, 0.001)),
            early=draw.choice((0.0, 1e-4, 1e-3, 1e-2)),
            knee_width=draw.uniform(0.002, 0.02),
            spurious_share=draw.choice((0.0, 0.01, 0.03)),
            spurious_loss=draw.choice((0.0001, 0.02)),
            lossless=draw.random() < 0.1,
        )
        cases.append(draw_case(draw, limits, dut))
    return cases


SOUND = [
    pytest.param(Bisect, id="bisect"),
    pytest.param(Mlr, id="mlr"),
    pytest.param(StepDown, id="step-down"),
]


@pytest.mark.parametrize("sound", SOUND)
@pytest.mark.parametrize("count", [SHARP_CASES, pytest.param(MANY_SHARP_CASES, marks=pytest.mark.acceptance)])
def test_the_true_rate_of_every_sharp_curve_lies_in_an_interval_of_the_stated_precision(
    sound: type[Search], count: int, draw: random.Random
) -> None:
    assert_sharp_curves_are_found(sound(), drawn_sharp_cases(draw, count))


@pytest.mark.parametrize("sound", SOUND)
@pytest.mark.parametrize(
    "count", [RANDOM_CASES, pytest.param(MANY_RANDOM_CASES, marks=[pytest.mark.acceptance, pytest.mark.slow])]
)
def test_random_curves_get_the_right_outcome(sound: type[Search], count: int, draw: random.Random) -> None:
    options = sound.Options(trials_per_bound=5)
    assert_random_curves_are_found(sound(options), drawn_cases(draw, count))


class ReturnsTheMidpoint(Bisect):
    """Broken: it forgets its bounds and reports the middle as if it were exact."""

    kind = "returns_the_midpoint"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        return {name: self._middle_of(outcome) for name, outcome in super().run(measure, goals, limits).items()}

    def _middle_of(self, outcome: Outcome) -> Outcome:
        if outcome.rate.lower is None or outcome.rate.upper is None:
            return outcome
        middle = (outcome.rate.lower + outcome.rate.upper) / 2
        rate = outcome.rate.model_copy(update={"value": middle, "lower": middle, "upper": middle})
        return outcome.model_copy(update={"rate": rate})


class IgnoresUnsent(Bisect):
    """Broken: frames that were never sent, for whatever reason, were not lost, so all is well."""

    kind = "ignores_unsent"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        def blind(load: float, duration_s: float) -> Sample:
            try:
                sample = measure(load, duration_s)
            except CeilingReached as ceiling:
                sample = measure(ceiling.rate_frames_per_s, duration_s)
            sent = sample.counts.sent
            counts = sample.counts.model_copy(update={"intended": sent, "unsent_tester": 0, "unsent_backpressure": 0})
            return sample.model_copy(update={"load_frames_per_s": load, "counts": counts})

        return super().run(blind, goals, limits)


class ReportsTheMaximum(Bisect):
    """Broken: whatever was measured, the DUT carries everything."""

    kind = "reports_the_maximum"

    def run(self, measure: Measure, goals: Sequence[Goal], limits: Limits) -> dict[str, Outcome]:
        maximum = limits.maximum_load_frames_per_s
        rate = Bounded(value=maximum, lower=maximum, limited_by=limits.maximum_limited_by)
        return {goal.name: Outcome(goal=goal.name, outcome="at_least", rate=rate, converged=True) for goal in goals}


@pytest.mark.parametrize("broken", [ReturnsTheMidpoint, IgnoresUnsent, ReportsTheMaximum])
def test_a_broken_search_fails_the_check_on_sharp_curves(broken: type[Search], draw: random.Random) -> None:
    with pytest.raises(AssertionError, match="wrong of"):
        assert_sharp_curves_are_found(broken(), drawn_sharp_cases(draw, SHARP_CASES))


@pytest.mark.parametrize("broken", [ReturnsTheMidpoint, IgnoresUnsent, ReportsTheMaximum])
def test_a_broken_search_fails_the_check_on_random_curves(broken: type[Search], draw: random.Random) -> None:
    with pytest.raises(AssertionError, match="wrong of"):
        assert_random_curves_are_found(broken(), drawn_cases(draw, RANDOM_CASES // 2))


def test_the_draws_hold_dead_line_rate_and_lossless_duts_and_both_kinds_of_slow_testers(draw: random.Random) -> None:
    for cases in (drawn_sharp_cases(draw, DRAWN_CASES), drawn_cases(draw, DRAWN_CASES)):
        assert any(case.dut.capacity_frames_per_s == 0.0 for case in cases)
        assert any(case.dut.capacity_frames_per_s > case.limits.maximum_load_frames_per_s for case in cases)
        assert any(case.dut.lossless for case in cases)
        assert {case.says_ceiling for case in cases if case.ceiling_frames_per_s is not None} == {False, True}
