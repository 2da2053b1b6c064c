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
GAP = {"longest_gap_ns": 50_000_000, "total_gap_ns": 50_000_000}
FLAP = {"link_changed": True}


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


CALM_BUT_LOSSY = {"longest_gap_ns": 21_000_000, "total_gap_ns": 21_000_000, "lost": 500_000}
REFUSED = {"unsent_backpressure": 200_000, "sent": 800_000}
# What comes one after the other, which of these trials is used, whether as disturbed, how many are made, and how.
CASES = {
    "a valid trial is not repeated": ([{}], 0, False, 1, {}),
    "a disturbed trial is repeated until one is valid": ([GAP, GAP, {}], 2, False, 3, {}),
    "a link changed: repeated whatever that costs, and never a figure": ([FLAP, GAP], 1, True, 3, {"budget_s": 0.0}),
    "after three repeats the least disturbed trial is used, whatever was lost": (
        [GAP, CALM_BUT_LOSSY, GAP, GAP, {}], 1, True, 4, {}
    ),
    "the trials of a test of a second are repeated, too": ([GAP, {}], 1, False, 2, {"budget_s": 1.0}),
    "no repeats at all may be asked for": ([GAP], 0, True, 1, {"policy": RepeatPolicy(maximum_repeats=0)}),
    "of a search, a trial with pauses still tells something": ([GAP], 0, True, 1, {"repeats": False}),
    "of a search, a trial that fell short still tells something": ([short_of(200_000)], 0, True, 1, {"repeats": False}),
    "of a search, a trial whose link changed tells nothing": (
        [FLAP, FLAP, {}], 2, False, 3, {"budget_s": 0.0, "repeats": False}
    ),
    "of a search, a trial with late frames tells nothing": (
        [{"late": 3}, {"late": 3}, {}], 2, False, 3, {"budget_s": 0.0, "repeats": False}
    ),
    "a link that goes down under load is no ceiling of the tester": (
        [short_of(200_000, **FLAP), short_of(200_000, **FLAP), {}], 2, False, 3, {}
    ),
    "shortfalls that differ are a disturbance": (
        [short_of(frames) for frames in (200_000, 400_000, 100_000, 300_000)], 2, True, 4, {}
    ),
    "a shortfall that pauses explain is a disturbance": ([short_of(49_500, **GAP)], 0, True, 4, {}),
    "what a lossless DUT refused is no ceiling of the tester": ([REFUSED], 0, False, 1, {}),
    "as fast as possible has no load to fall short of": ([short_of(200_000, load_frames_per_s=None)], 0, True, 4, {}),
}  # fmt: skip


@pytest.mark.parametrize(("found", "used", "disturbed", "made", "how"), CASES.values(), ids=CASES)
async def test_an_invalid_trial_is_repeated_within_bounds(
    found: list[dict[str, Any]], used: int, disturbed: bool, made: int, how: dict[str, Any], trial: MakeTrial
) -> None:
    tester = FakeTester(trial, *found)
    repeats = repeats_of(how.get("budget_s", 100.0), how.get("policy"))
    taken, is_disturbed = await repeats.measure(tester.once, repeats=how.get("repeats", True))
    assert (taken.id, is_disturbed, tester.made) == (f"t{used}", disturbed, made)


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


async def test_the_same_shortfall_twice_is_a_ceiling(trial: MakeTrial) -> None:
    tester = FakeTester(trial, short_of(200_000), short_of(190_000))
    with pytest.raises(CeilingReached) as reached:
        await repeats_of(100.0).measure(tester.once)
    assert reached.value.rate_frames_per_s == pytest.approx(800_000)
    assert tester.made == 2
