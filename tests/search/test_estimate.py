"""The search that estimates: what it does with cores that others use, with a rate it cannot estimate, with repeats."""

from __future__ import annotations

import pytest

from nicbench.core.result import LimitedBy
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search._simulated_neighbour import SimulatedNeighbour
from nicbench.search.base import NDR, PDR, CeilingReached, Limits, Measure, Outcome, Sample
from nicbench.search.estimate import EstimateOptions, EstimateSearch

GOALS = (NDR, PDR)


def limits(**changes: object) -> Limits:
    return Limits.model_validate(
        {
            "minimum_load_frames_per_s": 1_000,
            "maximum_load_frames_per_s": 1_000_000,
            "maximum_limited_by": "line_rate",
            "precision": 0.01,
            "trial_duration_s": 1.0,
            "maximum_trials": 40,
        }
        | changes
    )


def search(measure: Measure, **changes: object) -> dict[str, Outcome]:
    return EstimateSearch().run(measure, GOALS, limits(**changes))


def shared(seed: int, **changes: float) -> SimulatedMachine:
    return SimulatedMachine(SimulatedDut(400_000), seed, neighbour=SimulatedNeighbour(**changes))


@pytest.mark.parametrize("seed", range(4))
def test_a_sharp_dut_on_a_shared_core_gets_the_rate_of_a_core_of_its_own(seed: int) -> None:
    for goal, outcome in zip(GOALS, search(shared(seed).measure).values(), strict=True):
        assert outcome.rate.value == pytest.approx(400_000 / (1.0 - goal.loss_ratio), rel=0.05)
        assert outcome.rate.limited_by is LimitedBy.DUT
        assert outcome.estimate is not None
        assert outcome.estimate.half_frames_per_s is not None
        assert outcome.estimate.nine_tenths_frames_per_s is not None
        assert outcome.estimate.nine_tenths_frames_per_s <= outcome.estimate.half_frames_per_s <= outcome.rate.value
        assert any("a core of its own; as the machine was" in note for note in outcome.notes)


def test_the_slope_is_told_with_its_interval() -> None:
    estimate = search(shared(3).measure)["PDR"].estimate
    assert estimate is not None
    assert estimate.slope_lower is not None
    assert estimate.slope_upper is not None
    assert estimate.slope_lower <= 0.4 <= estimate.slope_upper


def test_a_core_that_was_never_quiet_has_its_rate_marked_as_extrapolated() -> None:
    machine = SimulatedMachine(
        SimulatedDut(400_000), 1, neighbour=SimulatedNeighbour(regimes=((0.004, 0.003), (0.002, 0.008)))
    )
    for outcome in search(machine.measure).values():
        assert outcome.estimate is not None
        assert outcome.estimate.extrapolated
        assert any("extrapolated" in note for note in outcome.notes)


def test_without_looks_at_the_core_there_is_no_slope_and_no_word_of_it() -> None:
    outcome = search(SimulatedMachine(SimulatedDut(400_000), 1).measure)["NDR"]
    assert outcome.estimate is not None
    assert (outcome.estimate.slope, outcome.estimate.half_frames_per_s) == (None, None)
    assert not any("core" in note for note in outcome.notes)


def test_a_quiet_core_gives_the_same_answer_as_no_looks_at_it() -> None:
    machine, quiet = SimulatedMachine(SimulatedDut(400_000), 1), SimulatedMachine(SimulatedDut(400_000), 1)

    def looked_at(load: float, duration_s: float) -> Sample:
        return quiet.measure(load, duration_s).model_copy(update={"slow_share": 0.0, "looks": 1000})

    plain, looked = search(machine.measure), search(looked_at)
    assert {name: one.rate for name, one in plain.items()} == {name: one.rate for name, one in looked.items()}
    assert all(one.converged for one in plain.values())
    assert len(machine.trials) <= 8


def test_trials_that_differ_widen_the_interval_instead_of_prolonging_the_search() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000, noise=0.03), 2)
    options = EstimateOptions(enough=6)
    outcomes = EstimateSearch(options).run(machine.measure, (PDR,), limits())
    assert len(machine.trials) <= 12
    assert not outcomes["PDR"].converged
    assert any("which differ by" in note for note in outcomes["PDR"].notes)


def test_the_lower_end_has_passed_a_trial_of_full_length() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000), 1)
    for goal, outcome in zip(GOALS, search(machine.measure, validation_duration_s=10.0).values(), strict=True):
        assert outcome.passed_for_s == 10.0
        assert outcome.rate.lower is not None
        passes = [one for one in machine.trials if one.duration_s == 10.0 and goal.passed_by(one)]
        assert any(one.load_frames_per_s >= 0.99 * outcome.rate.lower for one in passes)


def test_a_rate_that_drifts_is_not_estimated_but_told_as_it_was_seen() -> None:
    made: list[Sample] = []

    def tiring(load: float, duration_s: float) -> Sample:
        rate = 400_000 * 0.97 ** len(made)
        made.append(SimulatedMachine(SimulatedDut(rate), len(made)).measure(load, duration_s))
        return made[-1]

    outcome = EstimateSearch(EstimateOptions(enough=20)).run(tiring, (PDR,), limits())["PDR"]
    assert not outcome.converged
    assert outcome.rate.lower is not None
    assert outcome.rate.upper is not None
    assert outcome.rate.lower <= 1.02 * 400_000 * 0.97 ** (len(made) - 1)
    assert any("drifts" in note or "differ by" in note for note in outcome.notes)


def test_a_maximum_that_passed_beside_a_failure_elsewhere_is_not_offered_again_and_again() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000), 1)
    made: list[float] = []

    def tiring(load: float, duration_s: float) -> Sample:
        made.append(load)
        if len(made) == 2:
            raise CeilingReached(390_000)
        return machine.measure(load, duration_s)

    outcome = EstimateSearch().run(tiring, (PDR,), limits())["PDR"]
    assert len(made) <= 5
    assert outcome.outcome == "at_least"


def test_a_disturbed_trial_that_fell_short_counts_at_what_was_sent_and_is_no_ceiling() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000), 1)
    made: list[float] = []

    def short(load: float, duration_s: float) -> Sample:
        made.append(load)
        sample = machine.measure(load, duration_s)
        if len(made) != 2:
            return sample
        sent = int(0.97 * sample.counts.sent)
        counts = sample.counts.model_copy(
            update={"sent": sent, "received": sent, "lost": 0, "unsent_tester": sample.counts.intended - sent}
        )
        return sample.model_copy(update={"counts": counts, "valid": False})

    outcome = EstimateSearch().run(short, (PDR,), limits())["PDR"]
    assert outcome.rate.limited_by is LimitedBy.DUT
    assert outcome.rate.value == pytest.approx(400_000 / 0.995, rel=0.01)


CLOCKS = (1.0, 0.97, 0.93, 0.9)


@pytest.mark.parametrize("seed", range(3))
def test_a_dut_that_its_core_limits_gets_its_rate_at_the_highest_clock(seed: int) -> None:
    neighbour = SimulatedNeighbour(slope=0.0, clocks=CLOCKS, regime_s=3.0)
    outcome = search(SimulatedMachine(SimulatedDut(400_000), seed, neighbour=neighbour).measure)["NDR"]
    estimate = outcome.estimate
    assert outcome.rate.value == pytest.approx(400_000, rel=0.02)
    assert estimate is not None
    assert estimate.stated_clock_hz == 4e9
    assert (estimate.follows_clock or 0.0) > 0.9
    assert estimate.nine_tenths_frames_per_s is not None
    assert estimate.nine_tenths_frames_per_s < 0.96 * 400_000
    assert any("at 4.00 GHz, the highest clock seen" in note for note in outcome.notes)


@pytest.mark.parametrize("seed", range(3))
def test_a_dut_that_something_else_limits_gets_the_rate_that_it_has_at_every_clock(seed: int) -> None:
    dut = SimulatedDut(400_000, is_limited_by_core=False)
    machine = SimulatedMachine(dut, seed, neighbour=SimulatedNeighbour(clocks=CLOCKS, regime_s=3.0))
    outcome = search(machine.measure)["NDR"]
    assert outcome.rate.value == pytest.approx(400_000, rel=0.005)
    assert outcome.estimate is not None
    assert (outcome.estimate.stated_clock_hz, outcome.estimate.slope) == (None, 0.0)


def test_where_losses_grow_slowly_a_load_that_passes_is_looked_for_below_them() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000, onset=0.6, growth=0.2), 1)
    outcome = search(machine.measure)["NDR"]
    assert outcome.rate.lower is not None
    assert outcome.rate.upper is not None
    assert outcome.rate.lower <= 240_000 * 1.01
    assert outcome.rate.upper / outcome.rate.lower < 1.15
