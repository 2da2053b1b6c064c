"""The critical load of DUTs whose loss is a known curve lies in the reported interval; and the reports on others."""

from __future__ import annotations

import random

import pytest
from tests.simulated.worlds import Dut, World

from nicbench.core.result import LimitedBy
from nicbench.search._critical_load import Course, CriticalLoadSearch
from nicbench.search.base import Ended, Goal, Limits, Outcome, Sample

COURSE = Course(total_s=140.0, first_trial_s=5.1, longer_by_s=0.1, pause_s=0.5)
MAXIMUM = 1e6


def limits(maximum: float = MAXIMUM) -> Limits:
    return Limits(
        minimum_load_frames_per_s=1000.0,
        maximum_load_frames_per_s=maximum,
        maximum_limited_by=LimitedBy.LINE_RATE,
        trial_duration_s=5.1,
        maximum_trials=10**6,
    )


def goal(loss_ratio: float = 1e-6) -> Goal:
    return Goal(name="critical", loss_ratio=loss_ratio)


def searched(machine: World, maximum: float = MAXIMUM, loss_ratio: float = 1e-6) -> Outcome:
    return CriticalLoadSearch(COURSE, 1).run(machine.measure, [goal(loss_ratio)], limits(maximum))["critical"]


def truth(dut: Dut, loss_ratio: float) -> float:
    """The load at which a frame is lost with this probability."""
    low, high = 0.0, 1e9
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if dut.expected_ratio(middle) < loss_ratio else (low, middle)
    return low


def sharp(_: random.Random, capacity: float) -> Dut:
    """Nothing is lost up to the capacity, and above it all that exceeds it."""
    return Dut(capacity)


def fast(draw: random.Random, capacity: float) -> Dut:
    """The loss falls by e with 0.1 to 1 % of the capacity."""
    return Dut(capacity, early=10.0 ** draw.uniform(-5, -2), knee_width=10.0 ** draw.uniform(-3, -2))


def slow(draw: random.Random, capacity: float) -> Dut:
    """With 1 to 3 %: at the target the load is far below the capacity."""
    return Dut(capacity, early=10.0 ** draw.uniform(-4, -2), knee_width=draw.uniform(0.01, 0.03))


DROP_OFFS = (sharp, fast, slow)


@pytest.mark.parametrize("cases", [3, pytest.param(60, marks=pytest.mark.acceptance)])
def test_the_true_critical_load_lies_in_the_interval_of_95_percent_of_the_duts(cases: int) -> None:
    missed, widths = [], []
    for number in range(cases):
        draw = random.Random(f"critical load/{number}")
        maximum = 10.0 ** draw.uniform(5, 7)
        loss_ratio = 10.0 ** draw.uniform(-7, -5)
        dut = DROP_OFFS[number % len(DROP_OFFS)](draw, maximum * draw.uniform(0.1, 0.95))
        rate = searched(World(dut, maximum, number), maximum, loss_ratio).rate
        expected = truth(dut, loss_ratio)
        assert rate.lower is not None
        assert rate.upper is not None, (number, rate)
        widths.append((rate.upper - rate.lower) / expected)
        if not rate.lower <= expected <= rate.upper:
            missed.append((number, expected, rate.lower, rate.upper))
    print(f"missed {missed}; widths {sorted(widths)[cases // 2]:.2g} in the middle, {max(widths):.2g} at most")
    assert len(missed) <= 0.05 * cases
    # An interval of everything would hold the truth, too.
    assert sorted(widths)[cases // 2] < 0.02


def test_the_interval_narrows_and_the_time_is_kept() -> None:
    search = CriticalLoadSearch(COURSE, 3)
    machine = World(Dut(4e5, early=1e-3, knee_width=0.01), MAXIMUM, 3)
    outcome = search.run(machine.measure, [goal()], limits())["critical"]
    widths = [one.upper_frames_per_s - one.lower_frames_per_s for one in search.estimates]
    assert widths[-1] < widths[len(widths) // 2] < widths[2]
    assert search.estimates[-1].seconds <= COURSE.total_s
    assert search.estimates[-1].seconds + COURSE.trial_s(len(machine.trials)) > COURSE.total_s - COURSE.pause_s
    assert [trial.duration_s for trial in machine.trials[:3]] == pytest.approx([5.1, 5.2, 5.3])
    assert outcome.trials == len(machine.trials) == len(search.estimates)
    assert set(search.estimates[-1].models) == {"stretch", "erf"}


def test_the_same_samples_lead_to_the_same_loads_and_the_same_answer() -> None:
    machines = [World(Dut(4e5, early=1e-3), MAXIMUM, 3) for _ in range(2)]
    one, other = (searched(machine) for machine in machines)
    assert one == other
    assert machines[0].trials == machines[1].trials


def test_a_dut_that_carries_the_line_rate_has_at_least_that() -> None:
    rate = searched(World(Dut(2e7), 1e7, 1), 1e7, 1e-6).rate
    assert rate.is_line_rate
    assert rate.value == 1e7


def test_a_testers_ceiling_below_the_critical_load_is_told_as_the_limit() -> None:
    rate = searched(World(Dut(2e7), 1e7, 1, ceiling=6e6), 1e7, 1e-6).rate
    assert rate.at_least
    assert rate.limited_by is LimitedBy.TESTER
    assert rate.value == pytest.approx(6e6, rel=0.02)


def test_a_dead_dut_passes_nothing_and_the_time_is_not_spent_on_it() -> None:
    machine = World(Dut(1e-3), MAXIMUM, 1)
    outcome = searched(machine)
    assert outcome.rate.passes_nothing
    assert "the lowest load tried" in str(outcome.rate.reason_null)
    assert len(machine.trials) < 8


def test_a_dut_that_loses_at_any_load_has_no_critical_load_and_says_so() -> None:
    rate = searched(World(Dut(5e5, floor=0.01), MAXIMUM, 1)).rate
    assert rate.value is None
    assert "below 1000 frames/s" in str(rate.reason_null)


def test_a_bistable_dut_is_found_at_its_slow_state_or_named() -> None:
    """In the long run it is the slow state that loses: its capacity is the critical load."""
    named = 0
    for seed in range(4):
        search, machine = CriticalLoadSearch(COURSE, 1), World(Dut(5e5, slow=0.8, dwell_s=10.0), MAXIMUM, seed)
        outcome = search.run(machine.measure, [goal()], limits())["critical"]
        is_named = any("the DUT does not lose frames alike at all times" in note for note in search.notes)
        named += is_named
        assert outcome.rate.value is not None
        assert is_named or outcome.rate.value == pytest.approx(4e5, rel=0.01)
        print(seed, is_named, outcome.rate)
    assert named >= 2


def test_too_few_frames_for_the_target_are_named() -> None:
    search, machine = CriticalLoadSearch(COURSE, 1), World(Dut(4e3), 1e4, 1)
    search.run(machine.measure, [goal(1e-7)], limits(1e4))
    assert any("too few to see a loss ratio of 0.0000001" in note for note in search.notes)


def test_disturbed_trials_count_half_and_mark_the_answer() -> None:
    machine = World(Dut(4e5), MAXIMUM, 1)
    search = CriticalLoadSearch(COURSE, 1)
    disturbed = lambda load, time: machine.measure(load, time).replace(is_even=False)  # noqa: E731
    outcome = search.run(disturbed, [goal()], limits())["critical"]
    assert outcome.disturbed
    assert search.notes[0] == f"{outcome.trials} of {outcome.trials} trials were disturbed and count half"


def test_a_tester_that_falls_short_for_a_while_moves_the_critical_load_no_lower() -> None:
    """In two trials a tester of 1 Mpps sends 100 kpps, without a frame lost: they count at what was sent."""
    machine = World(Dut(4e5), MAXIMUM, 1)

    def measure(load: float, duration_s: float) -> Sample:
        machine.ceiling = 1e5 if 3 <= len(machine.trials) < 5 else None
        return machine.measure(load, duration_s)

    rate = CriticalLoadSearch(COURSE, 1).run(measure, [goal()], limits())["critical"].rate
    assert rate.lower is not None
    assert rate.lower <= 4e5 * 1.001
    assert rate.upper is None or rate.upper >= 4e5


def test_an_interrupted_search_concludes_with_its_last_estimate() -> None:
    search, machine = CriticalLoadSearch(COURSE, 1), World(Dut(4e5, early=1e-3), MAXIMUM, 1)
    assert search.conclude([], [goal()], limits())["critical"].rate.value is None
    expected = search.run(machine.measure, [goal()], limits())["critical"]
    stopped = search.conclude(machine.trials, [goal()], limits())["critical"]
    assert stopped.rate == expected.rate
    assert stopped.ended is Ended.STOPPED
