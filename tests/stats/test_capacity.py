"""The estimate of a rate from trials that passed or failed, against what is known of simple cases."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from nicbench.stats.capacity import Observation, fit
from nicbench.stats.capacity_checks import contradicts_forwarding, find_misfit
from nicbench.stats.capacity_shares import calibrate_shares, effective_looks

LOWEST, HIGHEST = 1e3, 1e7


def overloads(rates: list[float]) -> list[Observation]:
    """Trials just above a knee, of which each tells its critical load."""
    return [Observation(load=rate * 1.0001, critical_load=rate, passed=False) for rate in rates]


@pytest.mark.parametrize("count", [4, 6, 12])
def test_without_censoring_the_interval_is_that_of_student(count: int) -> None:
    logs = np.random.default_rng(count).normal(math.log(1e5), 0.01, count)
    posterior = fit(overloads([float(rate) for rate in np.exp(logs)]), LOWEST, HIGHEST)
    half = stats.t.ppf(0.975, count - 1) * statistics.stdev(logs) / math.sqrt(count)
    # Lapses make the tails a little wider, and a grid is a grid.
    for level, expected in ((0.025, logs.mean() - half), (0.5, logs.mean()), (0.975, logs.mean() + half)):
        assert math.log(posterior.rate(level)) == pytest.approx(expected, abs=0.25 * half)


def test_a_pass_raises_the_estimate_by_no_more_than_it_says() -> None:
    rates = [99_000.0, 100_000.0, 101_000.0, 100_500.0]
    alone = fit(overloads(rates), LOWEST, HIGHEST).rate(0.5)
    low = fit([*overloads(rates), Observation(90_000.0, None, True)], LOWEST, HIGHEST).rate(0.5)
    high = fit([*overloads(rates), Observation(101_500.0, None, True)], LOWEST, HIGHEST).rate(0.5)
    assert low == pytest.approx(alone, rel=0.001)
    assert high > alone


def test_one_trial_tells_next_to_nothing_of_the_interval() -> None:
    posterior = fit(overloads([100_000.0]), LOWEST, HIGHEST)
    assert posterior.rate(0.975) / posterior.rate(0.025) > 1.2


def test_the_slope_and_the_rate_of_a_quiet_core_follow_from_trials_on_a_shared_one() -> None:
    draw = np.random.default_rng(5)
    trials = []
    for share in draw.uniform(0.1, 0.8, 15):
        rate = 1e5 * (1.0 - 0.4 * share) * math.exp(0.005 * draw.standard_normal())
        looked = float(draw.binomial(1000, share)) / 1000
        trials.append(Observation(rate * 1.01, rate, False, share=looked, looks=1000))
    posterior = fit(trials, LOWEST, HIGHEST)
    assert posterior.slope(0.025) <= 0.4 <= posterior.slope(0.975)
    assert posterior.rate(0.025) <= 1e5 <= posterior.rate(0.975)
    assert posterior.rate(0.975) / posterior.rate(0.025) < 1.05


def test_shares_of_few_looks_are_drawn_to_their_mean_and_those_of_many_are_not() -> None:
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    narrow, wide = (calibrate_shares(shares, np.full(4, looks)) for looks in (20.0, 20_000.0))
    assert narrow[0].shares.mean() == pytest.approx(0.25)
    assert np.ptp(narrow[0].shares) < 0.75 * np.ptp(wide[0].shares)
    assert np.ptp(wide[0].shares) == pytest.approx(0.3, abs=0.001)
    # What many looks leave open is nothing; how much few shares differ in truth is.
    assert len(wide) == 1
    assert np.ptp(narrow[1].shares) < np.ptp(narrow[0].shares) < np.ptp(narrow[-1].shares)


def test_a_share_is_drawn_to_those_like_it_and_not_to_those_of_another_time() -> None:
    busy = np.random.default_rng(3).binomial(250, 0.8, 20) / 250
    shares = np.array([*busy, 0.0, 0.02])
    drawn = calibrate_shares(shares, np.full(len(shares), 250.0))[0].shares
    assert np.ptp(drawn[:20]) < 0.5 * np.ptp(busy)
    assert drawn[:20].mean() == pytest.approx(busy.mean())
    assert drawn[20:].max() <= 0.02


def test_trials_at_a_quiet_core_do_not_flatten_the_slope_of_those_at_a_busy_one() -> None:
    """All failures are of a time in which looks tell little of how shares differ; of a quiet core only passes are."""
    draw = np.random.default_rng(4)
    trials = []
    for true in draw.normal(0.8, 0.02, 24):
        rate = 1e5 * (1.0 - 0.4 * true) * math.exp(0.002 * draw.standard_normal())
        looked = float(draw.binomial(250, true)) / 250
        trials.append(Observation(rate * 1.01, rate, False, share=looked, looks=250))
    trials += [Observation(load, None, True, share=share, looks=250) for load, share in ((8e4, 0.02), (6e4, 0.0))]
    posterior = fit(trials, LOWEST, HIGHEST)
    assert posterior.slope(0.025) <= 0.4 <= posterior.slope(0.975)
    assert posterior.rate(0.025) <= 1e5 <= posterior.rate(0.975)


def test_looks_far_apart_count_one_by_one_and_close_ones_tell_more() -> None:
    assert effective_looks(50, 1.0) == pytest.approx(50, rel=0.2)
    assert effective_looks(1000, 1.0) > 3 * 1000
    assert effective_looks(0, 1.0) == 0.0


def test_few_looks_do_not_flatten_the_slope() -> None:
    draw = np.random.default_rng(8)
    trials = []
    for share in np.tile([0.1, 0.3, 0.5, 0.7], 15):
        rate = 1e5 * (1.0 - 0.4 * share)
        looked = float(draw.binomial(30, share)) / 30
        trials.append(Observation(rate * 1.01, rate, False, share=looked, looks=30))
    plain = [Observation(one.load, one.critical_load, False, share=one.share) for one in trials]
    assert fit(plain, LOWEST, HIGHEST).slope(0.5) < fit(trials, LOWEST, HIGHEST).slope(0.5)
    assert fit(trials, LOWEST, HIGHEST).slope(0.5) == pytest.approx(0.4, abs=0.04)


def test_losses_of_a_few_frames_far_below_what_came_back_contradict_a_sharp_knee() -> None:
    soft = [
        Observation(150_000.0, 100_000.0, False),
        Observation(100_500.0, 99_900.0, False),
        Observation(98_000.0, 97_999.0, False),
        Observation(96_000.0, 95_999.0, False),
        Observation(94_000.0, 93_999.5, False),
        Observation(90_000.0, None, True),
    ]
    assert contradicts_forwarding(soft, fit(soft, LOWEST, HIGHEST))
    sharp = [*overloads([100_000.0, 100_010.0, 99_990.0]), Observation(99_500.0, None, True)]
    assert not contradicts_forwarding(sharp, fit(sharp, LOWEST, HIGHEST))


def test_losses_that_grow_with_the_load_give_the_load_without_loss() -> None:
    def lost(load: float) -> int:
        return round(math.log(2.0) * math.exp((math.log(load) - math.log(80_000.0)) / 0.01))

    trials = [
        Observation(load, None, False, lost=lost(load), loss_ratio=lost(load) / load)
        for load in (81_500.0, 82_500.0, 83_500.0, 84_500.0)
    ]
    posterior = fit([*trials, Observation(79_000.0, None, True)], LOWEST, HIGHEST, "lost")
    assert posterior.rate(0.5) == pytest.approx(80_000.0, rel=0.005)
    assert posterior.scatter == pytest.approx(0.01, rel=0.2)


def test_a_drift_and_a_curve_are_told_and_a_straight_line_is_not() -> None:
    draw = np.random.default_rng(2)
    noise = np.exp(0.002 * draw.standard_normal(14))
    falling = overloads([1e5 * 0.99**number * float(noise[number]) for number in range(14)])
    steady = overloads([1e5 * float(one) for one in noise])
    curved = [
        Observation(1e5 * 1.01, 1e5 * (1.0 - 0.6 * share**3) * float(one), False, share=float(share), looks=100_000)
        for share, one in zip(draw.permutation(np.linspace(0.0, 0.9, 14)), noise, strict=True)
    ]
    assert find_misfit(steady, fit(steady, LOWEST, HIGHEST)) is None
    assert "drifts" in (find_misfit(falling, fit(falling, LOWEST, HIGHEST)) or "")
    assert "straight line" in (find_misfit(curved, fit(curved, LOWEST, HIGHEST)) or "")
