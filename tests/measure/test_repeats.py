"""Invalid trials: repeated within bounds, found to be a ceiling, or used as disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nicbench.core.errors import HostError
from nicbench.core.judging import RepeatPolicy
from nicbench.core.trial import CpuTime, Trial
from nicbench.measure.frame_context import CeilingReached, TrialRepeats
from nicbench.measure.samples import Repeats

MakeTrial = Callable[..., Trial]
GAP: dict[str, Any] = {"longest_gap_ns": 50_000_000, "total_gap_ns": 50_000_000}


class FakeTester:
    """Makes the trials it was given, in order, and counts them."""

    def __init__(self, trial: MakeTrial, *changes: dict[str, Any]) -> None:
        self._trial = trial
        self._changes = changes
        self.made = 0

    async def once(self, repeat: int) -> Trial:
        assert repeat == self.made
        self.made += 1
        return self._trial(repeat, **self._changes[min(repeat, len(self._changes) - 1)])


def repeats_of(time_budget_s: float, policy: RepeatPolicy | None = None) -> Repeats[Trial]:
    return Repeats(time_budget_s, TrialRepeats(), policy)


def short_of(frames: int, **more: Any) -> dict[str, Any]:
    return {"unsent_tester": frames, "sent": 1_000_000 - frames, **more}


async def test_a_valid_trial_is_not_repeated(trial: MakeTrial) -> None:
    tester = FakeTester(trial, {})
    assert (await repeats_of(100.0).measure(tester.once))[1] is False
    assert tester.made == 1


async def test_a_disturbed_trial_is_repeated_until_one_is_valid(trial: MakeTrial) -> None:
    tester = FakeTester(trial, GAP, GAP, {})
    used, disturbed = await repeats_of(100.0).measure(tester.once)
    assert (used.id, disturbed) == ("t2", False)


FLAP: dict[str, Any] = {"link_changed": True}


async def test_a_trial_whose_link_changed_is_repeated_whatever_that_costs_and_is_never_a_figure(
    trial: MakeTrial,
) -> None:
    tester = FakeTester(trial, FLAP, GAP)
    used, disturbed = await repeats_of(0.0).measure(tester.once)
    assert (used.id, disturbed) == ("t1", True)


async def test_a_link_that_changes_in_every_repeat_ends_the_run_and_resuming_it_begins_them_anew(
    trial: MakeTrial,
) -> None:
    with pytest.raises(
        HostError, match=r"link of the tester's port .* changed its state, in each of 4 trials"
    ) as caught:
        await repeats_of(100.0).measure(FakeTester(trial, FLAP).once)
    assert caught.value.exit_status == 4
    mended = FakeTester(trial, FLAP, FLAP, FLAP, FLAP, {})
    used, disturbed = await repeats_of(100.0).measure(mended.once, lambda repeat: repeat < 4)
    assert (used.id, disturbed) == ("t4", False)


async def test_after_three_repeats_the_least_disturbed_trial_is_used_whatever_was_lost(trial: MakeTrial) -> None:
    calm_but_lossy = {"longest_gap_ns": 21_000_000, "total_gap_ns": 21_000_000, "lost": 500_000}
    tester = FakeTester(trial, GAP, calm_but_lossy, GAP, GAP, {})
    used, disturbed = await repeats_of(100.0).measure(tester.once)
    assert (used.id, disturbed) == ("t1", True)
    assert tester.made == 4


async def test_of_trials_beside_a_neighbour_the_one_with_the_least_of_it_is_used(
    trial: MakeTrial, cpu: Callable[..., CpuTime]
) -> None:
    def beside(slow: int) -> dict[str, Any]:
        shared = cpu(1).replace(speed_samples=50, slow_samples=slow)
        return {"cpus": (cpu(0), shared)}

    few_pauses = {"longest_gap_ns": 1000, "total_gap_ns": 1000}
    tester = FakeTester(trial, beside(30) | few_pauses, beside(4), beside(20), beside(50) | few_pauses)
    used, disturbed = await repeats_of(100.0).measure(tester.once)
    assert (used.id, disturbed) == ("t1", True)


async def test_repeats_take_no_more_than_their_share_of_the_time(trial: MakeTrial) -> None:
    repeats = repeats_of(10.0)  # 3 s for repeats; a trial takes 1.3 s
    tester = FakeTester(trial, GAP)
    assert (await repeats.measure(tester.once))[1] is True
    assert tester.made == 3
    assert repeats.left_s == pytest.approx(0.4)
    later = FakeTester(trial, GAP)
    await repeats.measure(later.once)
    assert later.made == 1


async def test_the_trials_of_a_test_of_a_second_are_repeated_too(trial: MakeTrial) -> None:
    tester = FakeTester(trial, GAP, {})
    assert (await repeats_of(1.0).measure(tester.once))[1] is False


async def test_no_repeats_at_all_may_be_asked_for(trial: MakeTrial) -> None:
    tester = FakeTester(trial, GAP)
    assert (await repeats_of(100.0, RepeatPolicy(maximum_repeats=0)).measure(tester.once))[1] is True
    assert tester.made == 1


@pytest.mark.parametrize("found", [GAP, {"unsent_tester": 200_000, "sent": 800_000}], ids=["paused", "fell short"])
async def test_a_trial_of_a_search_is_not_repeated_where_it_still_tells_something(
    trial: MakeTrial, found: dict[str, Any]
) -> None:
    tester = FakeTester(trial, found)
    used, disturbed = await repeats_of(100.0).measure(tester.once, repeats=False)
    assert (used.id, disturbed, tester.made) == ("t0", True, 1)


@pytest.mark.parametrize("found", [FLAP, {"late": 3}], ids=["link changed", "late frames"])
async def test_a_trial_of_a_search_that_tells_nothing_is_repeated(trial: MakeTrial, found: dict[str, Any]) -> None:
    tester = FakeTester(trial, found, found, {})
    used, disturbed = await repeats_of(0.0).measure(tester.once, repeats=False)
    assert (used.id, disturbed, tester.made) == ("t2", False, 3)


async def test_the_same_shortfall_twice_is_a_ceiling(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(200_000), short_of(190_000))
    with pytest.raises(CeilingReached) as reached:
        await repeats_of(100.0).measure(tester.once)
    assert reached.value.rate_frames_per_s == pytest.approx(800_000)
    assert tester.made == 2


async def test_a_link_that_goes_down_under_load_is_no_ceiling_of_the_tester(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(200_000, **FLAP), short_of(200_000, **FLAP), {})
    assert (await repeats_of(100.0).measure(tester.once))[1] is False
    assert tester.made == 3


async def test_shortfalls_that_differ_are_a_disturbance(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(200_000), short_of(400_000), short_of(100_000), short_of(300_000))
    assert (await repeats_of(100.0).measure(tester.once))[1] is True


async def test_a_shortfall_that_pauses_explain_is_a_disturbance(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(49_500, **GAP))
    assert (await repeats_of(100.0).measure(tester.once))[1] is True
    assert tester.made == 4


async def test_what_a_lossless_dut_refused_is_no_ceiling_of_the_tester(trial: MakeTrial) -> None:
    tester = FakeTester(trial, {"unsent_backpressure": 200_000, "sent": 800_000})
    assert (await repeats_of(100.0).measure(tester.once))[1] is False


async def test_as_fast_as_possible_has_no_load_to_fall_short_of(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(200_000, load_frames_per_s=None))
    assert (await repeats_of(100.0).measure(tester.once))[1] is True
