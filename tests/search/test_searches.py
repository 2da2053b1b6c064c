"""All searches: budgets, testers that fall short, validation, resumption. What they find is held in tests/simulated."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from tests.simulated.worlds import Dut, World

from nicbench.core.result import LimitedBy
from nicbench.search.base import NDR, PDR, Ended, Limits, Sample, Search
from nicbench.search.guided import Guided, Mlr, to_package
from nicbench.search.step_down import StepDown, StepDownOptions

GOALS = (NDR, PDR)
every = pytest.mark.parametrize("search", [Guided(), Mlr(), StepDown()], ids=lambda search: search.kind)


def limits(**changes: object) -> Limits:
    return Limits.model_validate(
        {
            "minimum_load_frames_per_s": 10_000,
            "maximum_load_frames_per_s": 1_000_000,
            "maximum_limited_by": "line_rate",
            "precision": 0.05,
            "trial_duration_s": 1.0,
            "maximum_trials": 60,
        }
        | changes
    )


def world(capacity: float = 430_000, **changes: float) -> World:
    return World(Dut(capacity), 1_000_000, 1, **changes)


def noisy() -> World:
    return World(Dut(640_000, noise=0.02, early=1e-4), 1_000_000, 7)


def soft() -> World:
    """Loses nothing in 1 s at loads at which it loses some frames in 60 s."""
    return World(Dut(640_000, early=1e-4, knee_width=0.02), 1_000_000, 3)


@every
@pytest.mark.parametrize("trials", [1, 2, 5, 8])
def test_no_more_trials_are_made_than_allowed_and_the_outcome_stands_on_them(search: Search, trials: int) -> None:
    machine = noisy()
    outcomes = search.run(machine.measure, GOALS, limits(maximum_trials=trials, precision=0.001))
    assert len(machine.trials) == trials
    assert {outcome.trials for outcome in outcomes.values()} == {trials}
    assert {outcome.ended for outcome in outcomes.values()} == {Ended.TRIALS}
    assert not outcomes["NDR"].is_settled


@every
@pytest.mark.parametrize("time_s", [3.0, 10.0, 12.0])
def test_a_search_ends_in_its_time_with_what_its_trials_showed(search: Search, time_s: float) -> None:
    machine = noisy()
    outcomes = search.run(machine.measure, GOALS, limits(time_s=time_s, precision=0.001))
    assert machine.now_s <= time_s
    assert {outcome.ended for outcome in outcomes.values()} == {Ended.TIME}
    assert outcomes["PDR"].rate.upper is not None


@every
def test_a_sharp_limit_is_enclosed(search: Search) -> None:
    for goal, outcome in zip(GOALS, search.run(world().measure, GOALS, limits()).values(), strict=True):
        assert outcome.is_settled
        assert outcome.rate.lower is not None
        assert outcome.rate.upper is not None
        assert outcome.rate.lower <= 430_000 / (1.0 - goal.loss_ratio) + 1
        assert outcome.rate.upper >= 430_000
        assert outcome.rate.limited_by is LimitedBy.DUT


@every
@pytest.mark.parametrize("validation_s", [None, 20.0], ids=["short trials", "validated"])
def test_a_search_that_is_given_its_first_trials_again_goes_on_with_the_same_ones(
    search: Search, validation_s: float | None
) -> None:
    first, wanted = noisy(), limits(maximum_trials=20, validation_duration_s=validation_s)
    expected = search.run(first.measure, GOALS, wanted)
    for kept in range(len(first.trials)):
        journal, machine = list(first.trials[:kept]), noisy()

        def resumed(
            load: float, duration_s: float, journal: list[Sample] = journal, machine: World = machine
        ) -> Sample:
            made = machine.measure(load, duration_s)
            return journal.pop(0) if journal else made

        assert search.run(resumed, GOALS, wanted) == expected


@every
def test_a_dead_dut_costs_few_trials_and_passes_nothing(search: Search) -> None:
    made = []

    def dead(load: float, duration_s: float) -> Sample:
        sample = world().measure(load, duration_s)
        frames = sample.counts.sent
        made.append(load)
        return sample.replace(counts=sample.counts.replace(received=0, lost=frames))

    outcomes = search.run(dead, GOALS, limits(minimum_load_frames_per_s=1.0))
    assert all(outcome.rate.passes_nothing for outcome in outcomes.values())
    assert len(made) <= 60 if search.kind == "step-down" else 12


@every
def test_a_dut_below_a_thousand_frames_a_second_is_measured(search: Search) -> None:
    if search.kind == "step-down":
        return  # its steps are a tenth of the line rate
    machine = World(Dut(406.0), 812_744, 1)
    outcome = search.run(machine.measure, [NDR], limits(minimum_load_frames_per_s=1.0, precision=0.005))["NDR"]
    assert outcome.rate.lower == pytest.approx(406.0, rel=0.01)
    assert outcome.rate.upper == pytest.approx(406.0, rel=0.01)


@every
def test_a_tester_that_cannot_send_more_bounds_the_search_and_is_named(search: Search) -> None:
    outcome = search.run(world(2_000_000, ceiling=600_000.0).measure, [NDR], limits())["NDR"]
    assert outcome.rate.at_least
    assert outcome.rate.limited_by is LimitedBy.TESTER
    assert outcome.rate.value == pytest.approx(600_000, rel=0.03)


@every
@pytest.mark.parametrize("share", [0.5, 0.6, 0.9, 0.99, 0.997])
def test_the_rate_is_that_of_the_dut_in_loads_that_were_sent(search: Search, share: float) -> None:
    asked = limits(precision=0.01)
    for goal, outcome in zip(
        GOALS, search.run(world(300_000, sent_share=share).measure, GOALS, asked).values(), strict=True
    ):
        assert outcome.rate.limited_by is LimitedBy.DUT
        assert outcome.rate.value == pytest.approx(300_000 / (1.0 - goal.loss_ratio), rel=0.015)


@every
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_dut_that_carries_all_that_is_sent_has_at_least_that_rate(search: Search, share: float) -> None:
    outcome = search.run(world(2_000_000, sent_share=share).measure, [NDR], limits(precision=0.01))["NDR"]
    assert outcome.rate.at_least
    assert outcome.rate.limited_by is LimitedBy.TESTER or share == 0.99
    assert outcome.rate.value == pytest.approx(share * 1_000_000, rel=0.011)


@every
def test_every_trial_offers_a_frame_however_slow_the_dut_is(search: Search) -> None:
    machine = World(Dut(1.5), 1_000_000.0, 1, trial_s=0.1)
    search.run(machine.measure, GOALS, limits(trial_duration_s=0.1, time_s=3.0, minimum_load_frames_per_s=1.0))
    assert min(one.load_frames_per_s * one.duration_s for one in machine.trials) >= 1.0


@every
def test_a_tester_that_is_always_held_up_still_shows_what_passed(search: Search) -> None:
    machine = world(pauses=8.0)
    outcomes = search.run(machine.measure, GOALS, limits(maximum_trials=30))
    lower, upper = outcomes["NDR"].rate.lower, outcomes["NDR"].rate.upper
    assert lower is not None
    assert lower <= 430_000
    assert upper is None or upper >= 430_000


def test_a_trial_above_a_load_that_failed_is_not_repeated_for_its_tester() -> None:
    """Of the flood the tester sends a third: what came back is the first guess all the same."""
    machine = world(200_500, ceiling=460_000.0)
    Guided().run(machine.measure, [NDR], limits(precision=0.005))
    assert sum(sample.load_frames_per_s > 210_000 for sample in machine.trials) == 1
    assert len(machine.trials) <= 6


@every
@pytest.mark.parametrize("livelock", [5.0, 60.0])
def test_a_dut_that_collapses_when_it_is_overloaded_keeps_its_rate(search: Search, livelock: float) -> None:
    """It forwards a twentieth of what it could in every trial above its rate, and passes every load below it."""
    machine = World(Dut(430_000, livelock=livelock), 1_000_000, 1)
    rate = search.run(machine.measure, [NDR], limits(precision=0.005))["NDR"].rate
    assert rate.lower == pytest.approx(430_000, rel=0.005)
    assert rate.upper == pytest.approx(430_000, rel=0.005)
    assert rate.some is None


def loads_in_thousands(machine: World) -> list[int]:
    return [round(sample.load_frames_per_s / 1000) for sample in machine.trials]


ONCE = {"trials_per_bound": 1}


def test_stepping_down_goes_from_line_rate_in_the_stated_step_and_refines_by_a_tenth_of_it() -> None:
    machine = world(773_000)
    StepDown(StepDownOptions(**ONCE)).run(machine.measure, [NDR], limits(precision=0.01))
    assert loads_in_thousands(machine)[:8] == [1000, 900, 800, 700, 790, 780, 770, 772]


def test_stepping_down_without_refinement_ends_with_an_interval_of_one_step() -> None:
    machine = world(773_000)
    search = StepDown(StepDownOptions(step=0.05, refine=False, **ONCE))
    outcome = search.run(machine.measure, [NDR], limits(precision=0.001))["NDR"]
    assert loads_in_thousands(machine)[:6] == [1000, 950, 900, 850, 800, 750]
    assert outcome.is_settled
    assert (outcome.rate.lower, outcome.rate.upper) == pytest.approx((750_000, 800_000))


@pytest.mark.parametrize(
    ("capacity", "tried"), [(773_000, [800, 700, 790, 780, 770, 772]), (2_000_000, [800, 1000])], ids=["below", "above"]
)
def test_a_stated_start_saves_trials_and_costs_no_rate(capacity: int, tried: list[int]) -> None:
    machine = world(capacity)
    StepDown(StepDownOptions(start=0.8, **ONCE)).run(machine.measure, [NDR], limits(precision=0.01))
    assert loads_in_thousands(machine)[: len(tried)] == tried


VALIDATED = limits(precision=0.01, maximum_trials=100, validation_duration_s=60.0)


@every
def test_each_rate_has_passed_a_trial_of_full_length(search: Search) -> None:
    for outcome in search.run(soft().measure, GOALS, VALIDATED).values():
        assert outcome.is_settled
        assert outcome.passed_for_s == 60.0


@every
def test_where_the_validation_fails_the_search_goes_on_below_and_says_so(search: Search) -> None:
    machine = soft()
    outcome = search.run(machine.measure, [NDR], VALIDATED)["NDR"]
    failed = [one.load_frames_per_s for one in machine.trials if one.duration_s == 60.0 and one.counts.lost]
    assert failed
    assert outcome.rate.value is not None
    assert outcome.rate.value < min(failed)
    assert outcome.misleading_frames_per_s is not None


@every
def test_the_last_trials_are_kept_for_validation(search: Search) -> None:
    machine = world()
    few = limits(precision=0.0001, maximum_trials=14, validation_duration_s=60.0)
    outcomes = search.run(machine.measure, [NDR], few)
    assert len(machine.trials) <= 14
    assert outcomes["NDR"].passed_for_s == 60.0


@pytest.mark.parametrize(("dut", "all_of_it"), [(Dut(640_000, noise=0.02), True), (Dut(640_000), False)])
def test_a_given_time_is_used_up_where_trials_disagree(dut: Dut, all_of_it: bool) -> None:
    machine = World(dut, 1_000_000, 7)
    rate = Guided().run(machine.measure, [NDR], limits(precision=0.005, time_s=30.0, spends_time=True))["NDR"].rate
    assert (machine.now_s > 27.0) is all_of_it
    assert machine.now_s <= 30.0
    assert rate.lower is not None
    assert rate.upper is not None
    assert 0.9 * 640_000 < rate.lower <= 640_000 < rate.upper < 1.1 * 640_000


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_an_overload_that_costs_forwarding_is_no_zone_in_which_trials_disagree(share: float) -> None:
    machine = World(Dut(430_000, livelock=share), 1_000_000, 1)
    rate = Guided().run(machine.measure, [NDR], limits(precision=0.005))["NDR"].rate
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.some is None
    assert 430_000 * 0.995 < rate.lower <= 430_000 < rate.upper < 430_000 * 1.006


@every
def test_a_dut_that_passes_line_rate_is_validated_there(search: Search) -> None:
    machine = world(2_000_000)
    outcome = search.run(machine.measure, GOALS, VALIDATED)["NDR"]
    assert outcome.rate.is_line_rate
    assert machine.trials[-1].duration_s == 60.0


def test_a_trial_that_validates_nothing_is_refused() -> None:
    with pytest.raises(ValidationError, match="validates nothing"):
        limits(validation_duration_s=1.0)


def test_limits_the_wrong_way_round_are_refused() -> None:
    with pytest.raises(ValidationError, match="exceeds maximum"):
        limits(minimum_load_frames_per_s=2_000_000)


def test_mlrsearch_is_never_shown_what_the_tester_did_not_send() -> None:
    sample = world(2_000_000, ceiling=99_000.0).measure(100_000, 1.0)
    assert to_package(sample, 100_000, NDR, limits()).loss_ratio == 0.0
