"""The search that estimates: what it does with cores that others use, with a rate it cannot estimate, with repeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from nicbench.core.clocks.reference_clock import ReferenceClock
from nicbench.core.reading import Counts
from nicbench.core.result import LimitedBy
from nicbench.search._estimating import fit_goal, outcome_of_fit
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_sharp_dut_on_a_shared_core_gets_the_rate_of_a_core_of_its_own(seed: int) -> None:
    for goal, outcome in zip(GOALS, search(shared(seed).measure).values(), strict=True):
        assert outcome.rate.value == pytest.approx(400_000 / (1.0 - goal.loss_ratio), rel=0.05)
        assert outcome.rate.limited_by is LimitedBy.DUT
        assert outcome.estimate is not None
        assert outcome.estimate.half_frames_per_s is not None
        assert outcome.estimate.nine_tenths_frames_per_s is not None
        assert outcome.estimate.nine_tenths_frames_per_s <= outcome.estimate.half_frames_per_s <= outcome.rate.value
        assert any("a dedicated core; under the conditions of the run" in note for note in outcome.notes)


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


def test_one_trial_that_sent_less_than_another_is_no_ceiling_and_costs_no_rate() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000), 1)
    made: list[float] = []

    def tiring(load: float, duration_s: float) -> Sample:
        made.append(load)
        if len(made) == 2:
            raise CeilingReached(390_000)
        return machine.measure(load, duration_s)

    outcome = EstimateSearch().run(tiring, (PDR,), limits())["PDR"]
    assert len(made) <= 10
    assert outcome.outcome == "interval"
    assert outcome.rate.value == pytest.approx(400_000 / 0.995, rel=0.01)


@pytest.mark.parametrize("above", [1.02, 1.05, 1.1])
def test_a_rate_above_the_line_rate_is_validated_at_the_line_rate_and_said_to_be_at_least_that(above: float) -> None:
    """A neighbour has the core during the first trials; alone it carries more than the line."""
    made: list[tuple[float, float]] = []

    def measure(load: float, duration_s: float) -> Sample:
        share = 0.1 * (1 + len(made) % 5) if len(made) < 8 else 0.0
        made.append((load, duration_s))
        frames, carried = round(load * duration_s), round(1e6 * above * (1.0 - 0.5 * share) * duration_s)
        counts = Counts(intended=frames, sent=frames, received=min(frames, carried), lost=max(0, frames - carried))
        looks = round(1000 * duration_s)
        return Sample(load_frames_per_s=load, duration_s=duration_s, counts=counts, slow_share=share, looks=looks,
                      independent_looks=float(looks), trial_ids=(f"t{len(made)}",))  # fmt: skip

    outcome = search(measure, validation_duration_s=60.0, maximum_trials=60)["NDR"]
    assert sum(duration_s == 60.0 for _, duration_s in made) <= 5
    assert (outcome.outcome, outcome.rate.value, outcome.rate.upper) == ("at_least", 1e6, None)
    assert outcome.passed_for_s == 60.0
    assert not any("could confirm" in note or "% wide" in note for note in outcome.notes)
    assert outcome.estimate is not None
    assert (outcome.estimate.half_frames_per_s or 0.0) <= 1e6


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


@pytest.mark.sampled(1)
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


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_dut_that_something_else_limits_gets_the_rate_that_it_has_at_every_clock(seed: int) -> None:
    dut = SimulatedDut(400_000, is_limited_by_core=False)
    machine = SimulatedMachine(dut, seed, neighbour=SimulatedNeighbour(clocks=CLOCKS, regime_s=3.0))
    outcome = search(machine.measure)["NDR"]
    assert outcome.rate.value == pytest.approx(400_000, rel=0.005)
    assert outcome.estimate is not None
    assert (outcome.estimate.stated_clock_hz, outcome.estimate.slope) == (None, 0.0)


SHOWN = ReferenceClock(clock_hz=4e9, seen_on=date(2026, 11, 20))


def of_a_slower_run(measure: Measure, reference: ReferenceClock | None) -> Measure:
    """Trials of a run that never sees the highest clock of its machine."""

    def slower(load: float, duration_s: float) -> Sample:
        sample = measure(load, duration_s)
        return sample.model_copy(update={"highest_clock_hz": sample.clock_hz, "reference_clock": reference})

    return slower


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_never_sees_the_highest_clock_states_its_rates_for_the_reference(seed: int) -> None:
    """Clocks from 3.72 to about 3.85 GHz, where earlier runs have seen 4 GHz."""
    calm = ((0.1, 0.0),)
    neighbour = SimulatedNeighbour(slope=0.0, regimes=calm, clocks=(0.96, 0.95, 0.93), regime_s=3.0)

    def outcome(reference: ReferenceClock | None) -> Outcome:
        machine = SimulatedMachine(SimulatedDut(400_000), seed, neighbour=neighbour)
        return search(of_a_slower_run(machine.measure, reference))["NDR"]

    without, with_it = outcome(None), outcome(SHOWN)
    assert without.rate.upper is not None
    assert without.rate.upper < 399_000
    assert with_it.rate.lower is not None
    assert with_it.rate.upper is not None
    assert with_it.rate.lower <= 400_000 <= with_it.rate.upper
    assert with_it.rate.value == pytest.approx(400_000, rel=0.01)
    assert with_it.rate.upper - with_it.rate.lower > without.rate.upper - (without.rate.lower or 0.0)
    estimates = [one.estimate for one in (without, with_it)]
    assert [one and one.reference_seen_on for one in estimates] == [None, SHOWN.seen_on]
    assert [one and one.stated_clock_hz == 4e9 for one in estimates] == [False, True]
    assert [one and one.extrapolated for one in estimates] == [False, True]
    assert any("extrapolated to 4.00 GHz, the highest clock that this machine" in note for note in with_it.notes)
    assert with_it.trials <= without.trials + 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("reference_hz", [3.5e9, 4.6e9])
def test_a_reference_below_the_highest_clock_or_far_above_it_changes_nothing(reference_hz: float) -> None:
    neighbour = SimulatedNeighbour(slope=0.0, clocks=CLOCKS, regime_s=3.0)
    reference = SHOWN.model_copy(update={"clock_hz": reference_hz})
    found = [
        search(of_a_slower_run(SimulatedMachine(SimulatedDut(400_000), 1, neighbour=neighbour).measure, one))["PDR"]
        for one in (None, reference)
    ]
    assert found[0] == found[1]


def test_the_rate_of_a_dut_that_something_else_limits_is_the_same_with_a_reference() -> None:
    dut = SimulatedDut(400_000, is_limited_by_core=False)
    neighbour = SimulatedNeighbour(slope=0.0, clocks=(0.96, 0.93), regime_s=3.0)
    outcome = search(of_a_slower_run(SimulatedMachine(dut, 1, neighbour=neighbour).measure, SHOWN))["NDR"]
    assert outcome.rate.value == pytest.approx(400_000, rel=0.005)
    assert outcome.rate.upper == pytest.approx(400_000, rel=0.01)
    assert outcome.estimate is not None
    assert outcome.estimate.stated_clock_hz is None


def test_where_losses_grow_slowly_a_load_that_passes_is_looked_for_below_them() -> None:
    machine = SimulatedMachine(SimulatedDut(400_000, onset=0.6, growth=0.2), 1)
    outcome = search(machine.measure)["NDR"]
    assert outcome.rate.lower is not None
    assert outcome.rate.upper is not None
    assert outcome.rate.lower <= 240_000 * 1.01
    assert outcome.rate.upper / outcome.rate.lower < 1.15


def test_a_goal_without_a_rate_has_no_note_about_one() -> None:
    machine = shared(3)

    def losing(load: float, duration_s: float) -> Sample:
        sample = machine.measure(load, duration_s)
        lost = max(1, sample.counts.lost)
        counts = sample.counts.model_copy(update={"lost": lost, "received": sample.counts.sent - lost})
        return sample.model_copy(update={"counts": counts})

    outcomes = search(losing, maximum_trials=20)
    assert (outcomes["NDR"].outcome, outcomes["PDR"].outcome) == ("none", "interval")
    about_a_rate = ("% wide", "dedicated core", "half of the trials", "extrapolated", "could confirm")
    assert not [note for note in outcomes["NDR"].notes if any(words in note for words in about_a_rate)]


def test_rates_as_observed_are_said_to_be_of_no_clock_and_of_no_core_of_its_own() -> None:
    """Where the model does not fit, the rates are the trials' own, and nothing that the model says is told of them."""
    machine = SimulatedMachine(SimulatedDut(400_000), 1, neighbour=SimulatedNeighbour(clocks=CLOCKS, regime_s=3.0))
    estimated = search(machine.measure)["NDR"].estimate
    assert estimated is not None
    assert (estimated.stated_clock_hz, estimated.unscaled_clock_hz) == (pytest.approx(4e9), None)
    asked = limits()
    fitted = fit_goal(machine.trials, NDR, asked, 0.95)
    assert fitted is not None
    outcome = outcome_of_fit(replace(fitted, misfit="the rate drifts"), asked, settled=True, passed_for_s=None)
    assert outcome.notes == ("the rate drifts: the rates are those observed, with their spread, not an estimate",)
    observed = outcome.estimate
    assert observed is not None
    assert (observed.stated_clock_hz, observed.half_frames_per_s, observed.slope) == (None, None, None)
    assert observed.unscaled_clock_hz == observed.lowest_clock_hz < 0.99 * 4e9
