"""What a trial decides, and what zones, floors and queues follow from many."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated.worlds import Dut, World

from nicbench.core.reading import Counts
from nicbench.core.result import LimitedBy
from nicbench.search._zones import Decision, decide, find_floor, outcome_of
from nicbench.search.base import NDR, PDR, Limits, Sample
from nicbench.search.guided import Guided, Mlr

LIMITS = Limits(
    minimum_load_frames_per_s=1.0,
    maximum_load_frames_per_s=1_000_000,
    maximum_limited_by=LimitedBy.LINE_RATE,
    trial_duration_s=1.0,
    maximum_trials=60,
)


def trial(load: float, lost: int = 0, *, unsent: int = 0, duration_s: float = 1.0, **changes: Any) -> Sample:
    intended = int(load * duration_s)
    sent = intended - unsent
    counts = Counts(intended=intended, sent=sent, unsent_tester=unsent, received=sent - lost, lost=lost)
    return Sample(load_frames_per_s=load, duration_s=duration_s, counts=counts, **changes)


def test_a_trial_without_loss_passes_the_load_that_was_sent_however_unevenly() -> None:
    vote = decide(trial(100_000, unsent=20_000, is_even=False, held_up_share=0.2), NDR, LIMITS)
    assert (vote.decision, vote.load_frames_per_s) == (Decision.PASS, 80_000)


def test_losses_that_pauses_of_the_tester_explain_leave_an_uneven_trial_open() -> None:
    held = {"is_even": False, "held_up_share": 0.1}
    assert decide(trial(100_000, 9_000, **held), NDR, LIMITS).decision is Decision.OPEN
    assert decide(trial(100_000, 11_000, **held), NDR, LIMITS).decision is Decision.FAIL


def test_of_an_even_trial_they_raise_the_load_that_failed() -> None:
    vote = decide(trial(100_000, 500, held_up_share=0.01, longest_pause_share=0.004), NDR, LIMITS)
    assert vote.decision is Decision.FAIL
    assert vote.load_frames_per_s == pytest.approx(100_400)


def test_losses_that_may_be_the_testers_decide_nothing_and_none_at_all_still_pass() -> None:
    assert decide(trial(100_000, 500, may_fail=False), NDR, LIMITS).decision is Decision.OPEN
    assert decide(trial(100_000, may_fail=False), NDR, LIMITS).decision is Decision.PASS
    assert decide(trial(100_000, may_pass=False), NDR, LIMITS).decision is Decision.OPEN


def test_frames_that_a_queue_held_back_are_no_pass() -> None:
    vote = decide(trial(109_000, queued_s=0.09), NDR, LIMITS)
    assert (vote.decision, vote.load_frames_per_s) == (Decision.FAIL, 109_000)
    assert decide(trial(100_000, queued_s=0.001), NDR, LIMITS).decision is Decision.PASS


def test_pauses_of_the_tester_explain_what_a_queue_held_back_as_they_explain_losses() -> None:
    assert (
        decide(trial(109_000, queued_s=0.09, is_even=False, held_up_share=0.05), NDR, LIMITS).decision is Decision.FAIL
    )
    assert (
        decide(trial(109_000, queued_s=0.09, is_even=False, held_up_share=0.2), NDR, LIMITS).decision is Decision.OPEN
    )


def test_the_answer_has_three_zones() -> None:
    loads = [(40, 0), (41, 0), (44, 40), (47, 0), (50, 40), (58, 0), (60, 40), (62, 40)]
    outcome = outcome_of([trial(1e3 * load, lost) for load, lost in loads], NDR, LIMITS)
    rate = outcome.rate
    assert (rate.value, rate.lower, rate.some, rate.upper) == (41_000, 41_000, 58_000, 60_000)
    assert rate.half == pytest.approx(49_000, abs=2_000)
    assert not rate.shared_core


def test_half_of_the_trials_passed_between_the_loads_where_the_balance_turns() -> None:
    loads = [(40, 0), (45, 40), (50, 0), (52, 40), (58, 0), (60, 40)]
    rate = outcome_of([trial(1e3 * load, lost) for load, lost in loads], NDR, LIMITS).rate
    assert rate.half == pytest.approx(51_000)


def test_a_sharp_answer_has_two() -> None:
    rate = outcome_of([trial(100_000), trial(100_400, 300)], NDR, LIMITS).rate
    assert (rate.lower, rate.upper, rate.some, rate.half) == (100_000, 100_400, None, None)


def test_a_core_that_others_used_is_told_where_trials_disagree() -> None:
    samples = [trial(40e3), trial(45e3, 40, core_shared=True), trial(50e3), trial(60e3, 40)]
    assert outcome_of(samples, NDR, LIMITS).rate.shared_core


def test_a_flood_that_passed_is_too_short_to_pass() -> None:
    assert outcome_of([trial(500_000, duration_s=0.3)], NDR, LIMITS).rate.value is None


def test_a_failure_of_which_only_the_testers_state_is_in_doubt_is_used_last_and_marked() -> None:
    outcome = outcome_of([trial(100_000), trial(120_000, 50, is_even=False, held_up_share=0.1)], NDR, LIMITS)
    assert outcome.disturbed
    assert outcome.rate.upper == pytest.approx(120_000)
    assert outcome.rate.limited_by is None


def test_a_tester_that_pauses_shows_no_ceiling_and_one_that_sends_the_same_twice_does() -> None:
    paused = [trial(1e6, unsent=unsent, is_even=False, held_up_share=0.1) for unsent in (98_000, 97_000)]
    assert outcome_of(paused, NDR, LIMITS).rate.limited_by is None
    apart = [trial(1e6, unsent=unsent, is_even=False) for unsent in (98_000, 400_000)]
    assert outcome_of(apart, NDR, LIMITS).rate.limited_by is None
    alike = [trial(1e6, unsent=unsent, is_even=False) for unsent in (98_000, 97_000)]
    assert outcome_of(alike, NDR, LIMITS).rate.limited_by is LimitedBy.TESTER


FLOORED = [trial(load, round(load * 1e-4)) for load in (30_000, 60_000, 90_000, 120_000, 136_000)]


def test_a_loss_at_any_load_is_an_outcome_of_its_own() -> None:
    rate = outcome_of([*FLOORED, trial(140_000, 3_000)], NDR, LIMITS).rate
    assert rate.loss_floor.lower <= 1e-4 <= rate.loss_floor.upper
    assert rate.value == pytest.approx(6_931, rel=0.05)
    assert rate.limited_by is None
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.lower < 6_931 < rate.upper


def test_the_interval_of_a_loss_is_that_of_a_poisson_mean() -> None:
    shorter = [trial(load, round(load * 5e-5), duration_s=0.5) for load in (60_000, 120_000)]
    floor = find_floor([*FLOORED, *shorter], NDR)
    offered, lost = 436_000 + 90_000, 44 + 9  # exact limits (Garwood 1936) of 53 events: 39.70 and 69.32
    assert (floor.ratio, floor.trial_s) == (pytest.approx(lost / offered), 0.5)
    assert floor.lower == pytest.approx(39.70 / offered, rel=0.002)
    assert floor.upper == pytest.approx(69.32 / offered, rel=0.002)


def test_it_leaves_a_goal_that_tolerates_it_alone() -> None:
    assert find_floor(FLOORED, PDR) is None


def test_losses_that_grow_with_the_load_are_no_floor() -> None:
    assert find_floor([trial(load, round(2 * (load / 30_000) ** 3)) for load in (30e3, 60e3, 90e3, 120e3)], NDR) is None


@pytest.mark.parametrize("search", [Guided(), Mlr()], ids=lambda search: search.kind)
def test_every_search_gives_the_same_answer_for_it(search: Guided) -> None:
    world = World(Dut(137_000, floor=1e-4), 1_000_000, 5)
    rate = search.run(world.measure, [NDR], world.limits())["NDR"].rate
    assert rate.loss_floor is not None
    assert rate.value == pytest.approx(6_931, rel=0.3)


QUEUES = [(100_000, 10_000, 1.0), (200, 256, 0.2), (1e6, 100_000, 0.2), (50_000, 1, 5.0), (2_000, 1_000, 0.5)]


@pytest.mark.parametrize(("capacity", "queue", "trial_s"), QUEUES)
def test_a_queue_does_not_pass_as_throughput(capacity: float, queue: int, trial_s: float) -> None:
    world = World(Dut(capacity, queue=queue), 50 * capacity, 5, trial_s=trial_s)
    rate = Guided().run(world.measure, [NDR], world.limits())["NDR"].rate
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.lower <= capacity * 1.003
    assert capacity * 0.997 <= rate.upper <= capacity * 1.03


def test_the_queue_is_stated_beside_the_rate_that_it_let_through() -> None:
    rate = outcome_of(
        [trial(100_000), trial(109_000, queued_s=0.09), trial(112_000, 2_000, queued_s=0.1)], NDR, LIMITS
    ).rate
    assert rate.queue.burst_frames_per_s == 109_000
    assert rate.queue.frames == pytest.approx(10_000, rel=0.01)
