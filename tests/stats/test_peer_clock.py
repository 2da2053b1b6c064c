"""The truth about two clocks is found again within the stated uncertainty, whatever the ways between them are."""

import random

import pytest

from nicbench.stats.peer_clock import ClockLine, Comparison, compare_both_ways, lay_line, map_trial, recent

OFFSET_NS, DRIFT = 1_000_000.0, 100e-6


def truth_ns(at_ns: float, step_ns: float = 0.0) -> float:
    return OFFSET_NS + DRIFT * at_ns + step_ns


def compare(draw: random.Random, at_ns: float, slower_ns: float, frames: int = 32, step_ns: float = 0.0) -> Comparison:
    """An exchange of frames whose way there takes ``slower_ns`` longer, and whose queues are as they come."""

    def least(fixed_ns: float) -> float:
        return min(fixed_ns + draw.expovariate(1 / 20_000) for _ in range(frames))

    offset_ns = truth_ns(at_ns, step_ns)
    return compare_both_ways("test links", at_ns, least(8_000 + slower_ns) + offset_ns, least(8_000) - offset_ns)


def error_over(line: ClockLine, begin_ns: float, end_ns: float) -> float:
    return max(abs(line.offset_at(at_ns) - truth_ns(at_ns)) for at_ns in (begin_ns, (begin_ns + end_ns) / 2, end_ns))


def test_an_offset_of_1_ms_and_a_drift_of_100_ppm_are_found_within_the_uncertainty_in_95_of_100_cases(
    draw: random.Random,
) -> None:
    found = fitted = 0
    for _ in range(100):
        slower_ns = draw.uniform(-7_000, 20_000)
        begin_ns, end_ns = 3e9, 3e9 + draw.uniform(0.1e9, 30e9)
        before = [compare(draw, at_ns * 1e9, slower_ns) for at_ns in (0.0, 0.3, 0.7, 1.1, 2.8)]
        line = lay_line(before)
        mapping = map_trial(line, [*before, compare(draw, end_ns + 0.2e9, slower_ns)], begin_ns, end_ns)
        found += error_over(line, begin_ns, end_ns) <= mapping.uncertainty_ns
        fitted += abs(mapping.drift_ppm - 100.0) < 10.0
        assert mapping.step_ns < 100_000, "an even drift is no step"
    assert found >= 95
    assert fitted >= 95


def test_the_asymmetry_of_the_ways_is_stated_as_half_the_least_round_trip() -> None:
    (one,) = [compare_both_ways("test links", 0.0, 30_000 + OFFSET_NS, 10_000 - OFFSET_NS)]
    assert (one.offset_ns, one.half_ns) == (OFFSET_NS + 10_000, 20_000)
    mapping = map_trial(lay_line([one]), [one, Comparison("test links", 2e9, one.offset_ns, 21_000)], 1e9, 1.5e9)
    assert (mapping.asymmetry_bound_ns, mapping.fit_error_ns) == (21_000, 0)


def test_a_clock_that_steps_in_the_trial_is_told(draw: random.Random) -> None:
    before = [compare(draw, at_ns * 1e9, 0.0) for at_ns in (0.0, 0.5, 1.0, 1.5)]
    after = compare(draw, 4e9, 0.0, step_ns=1_000_000.0)
    mapping = map_trial(lay_line(before), [*before, after], 2e9, 3e9)
    assert mapping.step_ns == pytest.approx(1_000_000.0, rel=0.1)


def test_one_bad_comparison_beside_a_good_one_takes_nothing_from_the_bound() -> None:
    line = ClockLine(0.0, OFFSET_NS, 0.0, 4)
    good = [Comparison("test links", at_ns, OFFSET_NS + 100, 5_000) for at_ns in (0.5e9, 3.5e9)]
    bad = [Comparison("test links", at_ns, OFFSET_NS + 900_000, 4_000_000) for at_ns in (0.9e9, 3.1e9)]
    mapping = map_trial(line, [*good, *bad], 1e9, 3e9)
    assert (mapping.asymmetry_bound_ns, mapping.fit_error_ns, mapping.step_ns) == (5_000, 100, 0)


def test_slow_comparisons_weigh_little() -> None:
    fast = [Comparison("test links", at_ns * 1e9, truth_ns(at_ns * 1e9), 10_000) for at_ns in range(6)]
    slow = [Comparison("test links", at_ns * 1e9 + 5e8, truth_ns(at_ns * 1e9) + 9e6, 10e6) for at_ns in range(6)]
    line = lay_line([*fast, *slow])
    assert line.drift == pytest.approx(DRIFT, rel=0.01)
    assert line.offset_at(3e9) == pytest.approx(truth_ns(3e9), abs=100)


def test_a_drift_that_was_not_watched_is_not_made_up() -> None:
    line = lay_line([Comparison("test links", 0.0, 0.0, 9_000), Comparison("test links", 1e6, 3_000.0, 9_000)])
    assert abs(line.drift) < 100e-6, "3 us in 1 ms would be 3000 ppm"


def test_the_kind_that_bounds_the_error_best_is_told_and_none_without_both_ends() -> None:
    line = lay_line([Comparison("control path", 0.0, 0.0, 200_000)])
    control = [Comparison("control path", at_ns, 50_000.0, 200_000) for at_ns in (0.0, 9e9)]
    links = [Comparison("test links", at_ns, 2_000.0, 9_000) for at_ns in (0.0, 9e9)]
    mapping = map_trial(line, [*control, *links], 1e9, 2e9)
    assert (mapping.by, mapping.uncertainty_ns) == ("test links", 11_000)
    assert map_trial(line, control[:1], 1e9, 2e9) is None


def test_old_comparisons_are_forgotten_but_for_the_last_four() -> None:
    hours = [Comparison("test links", hour * 3.6e12, 0.0, 1.0) for hour in range(9)]
    assert recent(hours) == tuple(hours[-4:])
    with pytest.raises(ValueError, match="no comparison"):
        lay_line([])
