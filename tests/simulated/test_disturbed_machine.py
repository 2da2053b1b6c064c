"""A machine that is never quiet: a search on it ends within its time, and shows what passed all the same."""

from __future__ import annotations

import pytest
from tests.simulated.worlds import Dut, World

from nicbench.core.result import LimitedBy
from nicbench.search.base import NDR, PDR, Limits, Search
from nicbench.search.guided import Guided, Mlr
from nicbench.search.step_down import StepDown

TIME_S = 30.0


@pytest.mark.parametrize("search", [Guided(), Mlr(), StepDown()], ids=lambda search: search.kind)
def test_an_always_disturbed_machine_ends_in_time_with_what_passed(search: Search) -> None:
    """Every trial has pauses for a tenth of its time: none is even."""
    world = World(Dut(400_000, early=1e-4), 1_000_000, 3, pauses=12.0)
    limits = Limits(
        minimum_load_frames_per_s=10_000,
        maximum_load_frames_per_s=1_000_000,
        maximum_limited_by=LimitedBy.TESTER,
        precision=0.05,
        trial_duration_s=1.0,
        maximum_trials=60,
        time_s=TIME_S,
    )
    outcomes = search.run(world.measure, (NDR, PDR), limits)
    assert world.now_s <= TIME_S
    assert not any(sample.is_even for sample in world.trials)
    rate = outcomes["PDR"].rate
    assert rate.lower is not None
    assert rate.upper is not None
    assert rate.lower <= 405_000 <= rate.upper
