"""All searches: budget, ceilings, repeatability. What they find is checked in tests/simulated."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nicbench.core.registry import find
from nicbench.core.result import Bounded, LimitedBy
from nicbench.search._drive import order_outcomes
from nicbench.search._simulated import SimulatedDut, SimulatedMachine
from nicbench.search.base import NDR, PDR, CeilingReached, Goal, Limits, Outcome, Sample, Search, SearchOptions
from nicbench.search.bisect import Bisect
from nicbench.search.estimate import EstimateSearch
from nicbench.search.mlr import Mlr, drop_unsent
from nicbench.search.step_down import StepDown, StepDownOptions

GOALS = (NDR, PDR)
every = pytest.mark.parametrize(
    "search", [Bisect(), EstimateSearch(), Mlr(), StepDown()], ids=lambda search: search.kind
)

bracketing = pytest.mark.parametrize("search", [Bisect(), Mlr(), StepDown()], ids=lambda search: search.kind)


def limits(**changes: object) -> Limits:
    return Limits.model_validate(
        {
            "minimum_load_frames_per_s": 10_000,
            "maximum_load_frames_per_s": 1_000_000,
            "maximum_limited_by": "line_rate",
            "precision": 0.05,
            "trial_duration_s": 1.0,
            "maximum_trials": 8,
        }
        | changes
    )


def noisy() -> SimulatedMachine:
    return SimulatedMachine(SimulatedDut(640_000, early=1e-3, spurious_share=0.1, spurious_loss=0.01), seed=7)


def test_the_registry_finds_the_searches() -> None:
    assert find("nicbench.search", Search) == {
        "bisect": Bisect,
        "estimate": EstimateSearch,
        "mlr": Mlr,
        "step-down": StepDown,
    }  # type: ignore[type-abstract]


@every
@pytest.mark.parametrize("trials", [1, 2, 5, 8])
def test_no_more_trials_are_made_than_allowed_and_the_outcome_stands_on_them(search: Search, trials: int) -> None:
    machine = noisy()
    outcomes = search.run(machine.measure, GOALS, limits(maximum_trials=trials))
    assert len(machine.trials) == trials
    assert {outcome.trials for outcome in outcomes.values()} == {trials}


@pytest.mark.parametrize("search", [Bisect(), Mlr()], ids=lambda search: search.kind)
def test_eight_trials_find_both_rates_of_a_sharp_dut_within_five_percent(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(430_000, exact=True), seed=1)
    for outcome in search.run(machine.measure, GOALS, limits()).values():
        assert outcome.converged
        assert outcome.rate.lower is not None
        assert outcome.rate.upper is not None
        assert outcome.rate.lower <= 430_000 <= outcome.rate.upper


@every
def test_what_eight_trials_cannot_settle_is_said_not_to_be_converged(search: Search) -> None:
    outcomes = search.run(noisy().measure, GOALS, limits(precision=0.001))
    assert not outcomes["NDR"].converged


@every
@pytest.mark.parametrize("validation_s", [None, 20.0], ids=["short trials", "validated"])
def test_a_search_that_is_given_its_first_trials_again_goes_on_with_the_same_ones(
    search: Search, validation_s: float | None
) -> None:
    first, wanted = noisy(), limits(maximum_trials=30, validation_duration_s=validation_s)
    expected = search.run(first.measure, GOALS, wanted)
    for kept in range(len(first.trials)):
        journal, machine = list(first.trials[:kept]), noisy()

        def resumed(
            load: float, duration_s: float, journal: list[Sample] = journal, machine: SimulatedMachine = machine
        ) -> Sample:
            made = machine.measure(load, duration_s)
            return journal.pop(0) if journal else made

        assert search.run(resumed, GOALS, wanted) == expected


@every
def test_a_dead_dut_costs_few_trials_and_is_none(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(0.0), seed=1)
    outcomes = search.run(machine.measure, GOALS, limits())
    assert {outcome.outcome for outcome in outcomes.values()} == {"none"}
    assert outcomes["NDR"].rate.reason_null is not None
    assert "no frame came back" in outcomes["NDR"].rate.reason_null


@every
@pytest.mark.parametrize("says_ceiling", [True, False], ids=["it is told so", "the trial shows it"])
def test_a_tester_that_cannot_send_more_bounds_the_search_and_is_named(search: Search, says_ceiling: bool) -> None:
    machine = SimulatedMachine(
        SimulatedDut(2_000_000, exact=True), seed=1, ceiling_frames_per_s=600_000, says_ceiling=says_ceiling
    )
    outcome = search.run(machine.measure, [NDR], limits())["NDR"]
    assert outcome.outcome == "at_least"
    assert outcome.rate.limited_by is LimitedBy.TESTER
    assert outcome.rate.value == pytest.approx(600_000, rel=0.03)
    assert outcome.rate.value <= 600_000


@every
def test_a_tester_that_sends_less_for_long_than_before_ends_the_search_and_is_no_limit(search: Search) -> None:
    machine, made = SimulatedMachine(SimulatedDut(500_000, exact=True), seed=1), list[tuple[float, float]]()

    def measure(load: float, duration_s: float) -> Sample:
        made.append((load, duration_s))
        if duration_s > 1.0 and load > 475_000:
            raise CeilingReached(475_000)
        return machine.measure(load, duration_s)

    asked = limits(validation_duration_s=60.0, maximum_trials=60, precision=0.005)
    outcome = search.run(measure, [NDR], asked)["NDR"]
    assert sum(duration_s == 60.0 for _, duration_s in made) <= 3
    if outcome.outcome == "interval":
        assert outcome.rate.value == pytest.approx(500_000, rel=0.005)
        assert not outcome.converged
        assert any("which is a disturbance and no ceiling: no trial of 60 s" in note for note in outcome.notes)
    else:
        assert (outcome.outcome, outcome.rate.limited_by) == ("at_least", None)
        assert (outcome.rate.value, outcome.passed_for_s) == (pytest.approx(473_812, rel=0.005), 60.0)


@every
@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_a_tester_that_sends_less_by_and_by_is_not_asked_for_more(search: Search, after: int) -> None:
    machine, made = SimulatedMachine(SimulatedDut(500_000, exact=True), seed=1), list[float]()

    def measure(load: float, duration_s: float) -> Sample:
        made.append(load)
        if len(made) > after and load > 490_000:
            raise CeilingReached(490_000)
        return machine.measure(load, duration_s)

    outcome = search.run(measure, [NDR], limits(maximum_trials=60, precision=0.005))["NDR"]
    assert len(made) <= 20
    assert outcome.rate.lower is not None
    assert 450_000 <= outcome.rate.lower <= 500_000
    assert outcome.rate.limited_by is not LimitedBy.TESTER


@every
def test_a_tester_that_cannot_even_send_the_minimum_charges_nothing_to_the_dut(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(2_000_000), seed=1, ceiling_frames_per_s=5_000)
    outcome = search.run(machine.measure, [NDR], limits())["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("none", LimitedBy.TESTER)
    assert outcome.rate.reason_null == "the tester sends no more than 5000 frames/s, less than the minimum load"


@every
def test_losses_before_the_tester_sank_below_the_minimum_still_bound_the_rate(search: Search) -> None:
    machine, made = SimulatedMachine(SimulatedDut(20_000, exact=True), seed=1), list[float]()

    def measure(load: float, duration_s: float) -> Sample:
        made.append(load)
        if len(made) > 1:
            raise CeilingReached(5_000)
        return machine.measure(load, duration_s)

    outcome = search.run(measure, [NDR], limits())["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("none", LimitedBy.DUT)
    assert outcome.rate.upper == pytest.approx(made[0])
    said = outcome.rate.reason_null or ""
    assert said.startswith("frames were lost at")
    told = (
        f"; the tester sent 5000 frames/s at last, less than the minimum load, and {made[0]:.0f} frames/s in an earlier"
    )
    assert said.endswith(f"{told} trial")


@every
@pytest.mark.parametrize("valid", [True, False])
def test_a_rate_bounded_by_a_ceiling_that_only_a_disturbed_trial_showed_is_disturbed(
    search: Search, valid: bool
) -> None:
    machine = SimulatedMachine(
        SimulatedDut(2_000_000, exact=True), seed=1, ceiling_frames_per_s=600_000, says_ceiling=False
    )

    def measure(load: float, duration_s: float) -> Sample:
        sample = machine.measure(load, duration_s)
        return sample.model_copy(update={"valid": valid}) if sample.sent_share < 1.0 else sample

    assert search.run(measure, [NDR], limits())["NDR"].disturbed is not valid


@every
def test_a_ceiling_that_falls_with_every_trial_ends_within_the_budget(search: Search) -> None:
    made: list[float] = []

    def tired(load: float, duration_s: float) -> Sample:
        made.append(load)
        raise CeilingReached(load * 0.999)

    outcomes = search.run(tired, GOALS, limits())
    assert len(made) == 8 + 1  # the first that found a ceiling is none of the search's
    assert outcomes["NDR"].rate.value is None


@every
def test_limits_without_room_between_them_are_searched_all_the_same(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(2_000_000, exact=True), seed=1)
    narrow = limits(minimum_load_frames_per_s=1_000_000)
    assert search.run(machine.measure, GOALS, narrow)["PDR"].outcome == "at_least"


@every
@pytest.mark.parametrize("maximum", [50.0, 4_000.0, 3e9])
def test_rates_far_from_the_usual_are_searched_too(search: Search, maximum: float) -> None:
    machine = SimulatedMachine(SimulatedDut(maximum * 0.4, exact=True), seed=1)
    wide = limits(minimum_load_frames_per_s=maximum / 100, maximum_load_frames_per_s=maximum, trial_duration_s=10.0)
    outcome = search.run(machine.measure, [PDR], wide)["PDR"]
    assert outcome.rate.lower == pytest.approx(maximum * 0.4, rel=0.06)


def loads_in_thousands(machine: SimulatedMachine) -> list[int]:
    return [round(sample.load_frames_per_s / 1000) for sample in machine.trials]


def test_stepping_down_goes_from_line_rate_in_the_stated_step_and_refines_by_a_tenth_of_it() -> None:
    machine = SimulatedMachine(SimulatedDut(773_000, exact=True), seed=1)
    StepDown(StepDownOptions(trials_per_bound=1)).run(machine.measure, [NDR], limits(precision=0.01, maximum_trials=60))
    assert loads_in_thousands(machine) == [1000, 900, 800, 700, 790, 780, 770, 772]


def test_stepping_down_without_refinement_ends_with_an_interval_of_one_step() -> None:
    machine = SimulatedMachine(SimulatedDut(773_000, exact=True), seed=1)
    search = StepDown(StepDownOptions(trials_per_bound=1, step=0.05, refine=False))
    outcome = search.run(machine.measure, [NDR], limits(precision=0.001, maximum_trials=60))["NDR"]
    assert loads_in_thousands(machine) == [1000, 950, 900, 850, 800, 750]
    assert outcome.converged
    assert (outcome.rate.lower, outcome.rate.upper) == pytest.approx((750_000, 800_000))


@pytest.mark.parametrize(
    ("capacity", "tried"), [(773_000, [800, 700, 790, 780, 770, 772]), (2_000_000, [800, 1000])], ids=["below", "above"]
)
def test_a_stated_start_saves_trials_and_costs_no_rate(capacity: int, tried: list[int]) -> None:
    machine = SimulatedMachine(SimulatedDut(capacity, exact=True), seed=1)
    search = StepDown(StepDownOptions(trials_per_bound=1, start=0.8))
    search.run(machine.measure, [NDR], limits(precision=0.01, maximum_trials=60))
    assert loads_in_thousands(machine) == tried


def soft() -> SimulatedMachine:
    """Loses nothing in 1 s at loads at which it loses some frames in 60 s."""
    return SimulatedMachine(SimulatedDut(640_000, early=1e-4, knee_width=0.02), seed=3)


VALIDATED = limits(precision=0.01, maximum_trials=100, validation_duration_s=60.0)


@bracketing
def test_each_rate_has_passed_a_trial_of_full_length(search: Search) -> None:
    machine = soft()
    for outcome in search.run(machine.measure, GOALS, VALIDATED).values():
        assert outcome.converged
        assert outcome.passed_for_s == 60.0
        at_it = [one for one in machine.trials if one.load_frames_per_s == pytest.approx(outcome.rate.value)]
        assert max(one.duration_s for one in at_it) == 60.0


@every
def test_where_the_validation_fails_the_search_goes_on_below_and_says_so(search: Search) -> None:
    machine = soft()
    outcome = search.run(machine.measure, [NDR], VALIDATED)["NDR"]
    long = [one for one in machine.trials if one.duration_s == 60.0]
    failed = [one.load_frames_per_s for one in long if one.counts.lost]
    passed = [one.load_frames_per_s for one in long if not one.counts.lost]
    outvoted = [load for load in failed if failed.count(load) >= passed.count(load)]
    assert outvoted
    assert outcome.rate.value is not None
    assert outcome.rate.value < min(outvoted)
    assert any("the search went on below" in note for note in outcome.notes)


@every
def test_the_last_trials_are_kept_for_validation(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(430_000, exact=True), seed=1)
    few = limits(precision=0.0001, maximum_trials=12, validation_duration_s=60.0)
    outcomes = search.run(machine.measure, GOALS, few)
    assert len(machine.trials) <= 12
    assert {outcome.passed_for_s for outcome in outcomes.values()} == {60.0}


@every
def test_a_dut_that_passes_line_rate_is_validated_there(search: Search) -> None:
    machine = SimulatedMachine(SimulatedDut(2_000_000, exact=True), seed=1)
    outcome = search.run(machine.measure, GOALS, VALIDATED)["NDR"]
    assert (outcome.outcome, outcome.rate.limited_by) == ("at_least", LimitedBy.LINE_RATE)
    assert [one.duration_s for one in machine.trials][-1] == 60.0


@bracketing
@pytest.mark.parametrize("bursts_per_s", [1 / 30, 1 / 5, 3.0])
def test_a_strict_goal_under_a_rare_loss_is_answered_and_explained(search: Search, bursts_per_s: float) -> None:
    machine = SimulatedMachine(SimulatedDut(640_000, bursts_per_s=bursts_per_s, burst_frames=20), seed=5)
    outcomes = search.run(machine.measure, GOALS, VALIDATED)
    assert outcomes["PDR"].rate.value == pytest.approx(643_000, rel=0.01)
    assert not any("comes at any load" in note for note in outcomes["PDR"].notes)
    why = " ".join(outcomes["NDR"].notes)
    assert "a loss that comes at any load, not what the DUT can carry" in why


@every
def test_a_soft_knee_is_no_rare_loss(search: Search) -> None:
    assert not any("comes at any load" in note for note in search.run(soft().measure, GOALS, VALIDATED)["NDR"].notes)


def test_a_trial_that_validates_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="validates nothing"):
        limits(validation_duration_s=1.0)


def test_mlrsearch_is_never_shown_what_the_tester_did_not_send() -> None:
    machine = SimulatedMachine(SimulatedDut(2_000_000), seed=1, ceiling_frames_per_s=99_000, says_ceiling=False)
    assert drop_unsent(machine.measure(100_000, 1.0)).loss_ratio == 0.0


def test_mlrsearch_sees_back_pressure_as_loss() -> None:
    machine = SimulatedMachine(SimulatedDut(75_000, exact=True, lossless=True), seed=1)
    assert drop_unsent(machine.measure(100_000, 1.0)).loss_ratio == 0.25


def test_an_even_number_of_trials_a_bound_is_refused() -> None:
    with pytest.raises(ValidationError, match="majority"):
        SearchOptions(trials_per_bound=4)


def test_limits_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValidationError, match="exceeds maximum"):
        limits(minimum_load_frames_per_s=2_000_000)


def interval(goal: str, lower: float, value: float, upper: float) -> Outcome:
    rate = Bounded(value=value, lower=lower, upper=upper)
    return Outcome(goal=goal, outcome="interval", rate=rate, converged=True)


ENDS = st.tuples(*[st.floats(1e3, 1e7)] * 3).map(sorted)


@given(st.lists(ENDS, min_size=2, max_size=4))
def test_a_goal_that_tolerates_more_loss_has_no_lower_rate(found: list[list[float]]) -> None:
    goals = [Goal(name=f"goal{number}", loss_ratio=number / 100) for number in range(len(found))]
    outcomes = {goal.name: interval(goal.name, *ends) for goal, ends in zip(goals, found, strict=True)}
    ordered = [order_outcomes(outcomes, goals[::-1])[goal.name] for goal in goals]
    rates = [(one.rate.lower or 0.0, one.rate.value or 0.0, one.rate.upper or 0.0) for one in ordered]
    assert all(lower <= value <= upper for lower, value, upper in rates)
    for strict, tolerant in pairwise(rates):
        assert all(one <= other for one, other in zip(strict, tolerant, strict=True))
    for before, after in zip(outcomes.values(), ordered, strict=True):
        assert (before.rate == after.rate) == (not after.notes)


def test_the_rate_that_is_known_better_weighs_more() -> None:
    """The NDR of 156 kpps has a wide interval, the PDR of 147 kpps a narrow one."""
    rates = {"NDR": (140e3, 156e3, 170e3), "PDR": (145e3, 147e3, 149e3)}
    outcomes = {name: interval(name, *ends) for name, ends in rates.items()}
    ndr, pdr = order_outcomes(outcomes, (NDR, PDR)).values()
    assert ndr.rate.value == pdr.rate.value == pytest.approx(147.16e3, rel=1e-4)
    assert (ndr.rate.lower, ndr.rate.upper, pdr.rate.lower, pdr.rate.upper) == (140e3, 149e3, 145e3, 149e3)
    assert ndr.notes == (
        "by itself it would be 156.0 kpps (140.0 kpps to 170.0 kpps), but with more loss tolerated no rate is lower",
    )
