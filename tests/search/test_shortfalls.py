"""A tester that falls short by a constant share: every search gives the rate of the DUT, in loads that were sent."""

from __future__ import annotations

import pytest

from nicbench.core.result import LimitedBy
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search.base import NDR, PDR, CeilingReached, Limits, Measure, Sample, Search
from nicbench.search.bisect import Bisect
from nicbench.search.estimate import EstimateSearch
from nicbench.search.mlr import Mlr
from nicbench.search.step_down import StepDown

GOALS = (NDR, PDR)
PRECISION = 0.01
LIMITS = Limits(
    minimum_load_frames_per_s=10_000,
    maximum_load_frames_per_s=1_000_000,
    maximum_limited_by=LimitedBy.LINE_RATE,
    precision=PRECISION,
    trial_duration_s=1.0,
    validation_duration_s=10.0,
    maximum_trials=60,
)
every = pytest.mark.parametrize(
    "search", [Bisect(), EstimateSearch(), Mlr(), StepDown()], ids=lambda search: search.kind
)
shares = pytest.mark.parametrize("share", [0.5, 0.6, 0.9, 0.99, 0.997, 0.9985])


def machine_of(share: float, capacity: float = 300_000, **changes: float | bool) -> SimulatedMachine:
    return SimulatedMachine(SimulatedDut(capacity), seed=4, sent_share=share, **changes)  # type: ignore[arg-type]


@every
@shares
def test_the_rate_is_that_of_the_dut_in_loads_that_were_sent(search: Search, share: float) -> None:
    for goal, outcome in zip(GOALS, search.run(machine_of(share).measure, GOALS, LIMITS).values(), strict=True):
        assert outcome.converged
        assert outcome.rate.limited_by is LimitedBy.DUT
        assert outcome.rate.value == pytest.approx(300_000 / (1.0 - goal.loss_ratio), rel=PRECISION)
        assert outcome.rate.value <= 300_000 / (1.0 - goal.loss_ratio) * 1.001
        assert not outcome.disturbed
        (said,) = [note for note in outcome.notes if "the tester" in note]
        assert said.startswith(f"the tester sent {100 * share:.4g} % of what it was asked for at every load; ")
        assert "no more than" not in said


@every
@pytest.mark.parametrize("share", [0.5, 0.6, 0.9, 0.99])
def test_a_dut_that_carries_all_that_is_sent_has_at_least_that_rate_and_the_tester_is_the_limit(
    search: Search, share: float
) -> None:
    outcome = search.run(machine_of(share, 2_000_000).measure, [NDR], LIMITS)["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("at_least", LimitedBy.TESTER)
    assert outcome.rate.value == pytest.approx(share * 1_000_000, rel=PRECISION)


@every
def test_a_tester_with_a_share_and_a_ceiling_has_both(search: Search) -> None:
    machine = machine_of(0.8, 2_000_000, ceiling_frames_per_s=500_000, says_ceiling=False)
    outcome = search.run(machine.measure, [NDR], LIMITS)["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("at_least", LimitedBy.TESTER)
    assert outcome.rate.value == pytest.approx(500_000, rel=2 * PRECISION)
    assert any("sent 80 % of what it was asked for" in note for note in outcome.notes)


@every
@pytest.mark.parametrize("trials", [1, 2, 3, 8])
def test_no_more_trials_are_made_than_allowed_but_the_one_that_seemed_a_ceiling(search: Search, trials: int) -> None:
    machine = machine_of(0.6)
    few = LIMITS.model_copy(update={"maximum_trials": trials, "precision": 0.001})
    outcomes = search.run(machine.measure, GOALS, few)
    assert len(machine.trials) <= trials + 1
    assert not any("no more than" in note for outcome in outcomes.values() for note in outcome.notes)


@every
def test_a_ceiling_that_was_told_and_a_trial_that_falls_short_by_the_same_share_are_no_ceiling(search: Search) -> None:
    machine = machine_of(0.7)
    told: list[float] = []

    def tells_once(load: float, duration_s: float) -> Sample:
        if not told:
            told.append(load)
            raise CeilingReached(0.7 * load)
        return machine.measure(load, duration_s)

    outcome = search.run(tells_once, [NDR], LIMITS)["NDR"]
    assert outcome.rate.value == pytest.approx(300_000, rel=PRECISION)
    assert any("70 %" in note for note in outcome.notes)


@every
def test_a_ceiling_leaves_no_word_of_a_share(search: Search) -> None:
    machine = machine_of(1.0, 2_000_000, ceiling_frames_per_s=600_000, says_ceiling=False)
    outcome = search.run(machine.measure, [NDR], LIMITS)["NDR"]
    assert outcome.rate.value == pytest.approx(600_000, rel=2 * PRECISION)
    assert not any("of what it was asked for" in note for note in outcome.notes)


@every
def test_a_share_too_small_for_the_minimum_blames_the_tester(search: Search) -> None:
    narrow = LIMITS.model_copy(update={"minimum_load_frames_per_s": 900_000.0})
    outcome = search.run(machine_of(0.6).measure, [NDR], narrow)["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("none", LimitedBy.TESTER)


@every
def test_a_shortfall_that_moves_no_bound_is_not_mentioned(search: Search) -> None:
    rough = LIMITS.model_copy(update={"precision": 0.05})
    outcomes = search.run(machine_of(0.998).measure, GOALS, rough)
    assert not any("what it was asked for" in note for one in outcomes.values() for note in one.notes)


def disturbed_machine(first_disturbed: int, *, says_ceiling: bool, valid: bool = False) -> tuple[Measure, list[Sample]]:
    """A DUT of 140 kpps behind a tester of 1 Mpps from which, from one trial on, 3 % of its time is taken away."""
    machine, made = SimulatedMachine(SimulatedDut(140_000, exact=True), seed=1), list[Sample]()

    def measure(load: float, duration_s: float) -> Sample:
        sample = machine.measure(load, duration_s)
        made.append(sample)
        if len(made) < first_disturbed:
            return sample
        sent = int(0.97 * sample.counts.sent)
        if says_ceiling:
            raise CeilingReached(sent / duration_s)
        received = min(sent, sample.counts.received)
        counts = {"sent": sent, "unsent_tester": sample.counts.intended - sent, "received": received}
        counts["lost"] = sent - received
        return sample.model_copy(update={"counts": sample.counts.model_copy(update=counts), "valid": valid})

    return measure, made


@every
@pytest.mark.parametrize("valid", [True, False])
@pytest.mark.parametrize("says_ceiling", [True, False], ids=["it is told so", "the trial shows it"])
@pytest.mark.parametrize("first", [2, 3, 4, 6])
def test_a_tester_that_has_sent_far_more_is_not_named_as_the_limit(
    search: Search, first: int, says_ceiling: bool, valid: bool
) -> None:
    measure, made = disturbed_machine(first, says_ceiling=says_ceiling, valid=valid)
    limits = LIMITS.model_copy(update={"precision": 0.05, "maximum_trials": 30})
    for outcome in search.run(measure, GOALS, limits).values():
        assert outcome.rate.limited_by is not LimitedBy.TESTER
        assert outcome.outcome != "at_least"
        assert outcome.rate.upper is None or outcome.rate.upper >= 0.97 * 140_000
        assert not any("sends no more than" in note for note in outcome.notes)
    assert len(made) <= 30
