"""The statistics of the runs in summary.json: every figure against SciPy and NumPy, outliers by the run's number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nicbench.stats.intervals import IntervalSpec
from nicbench.stats.runs import describe_runs

RUNS = (1, 2, 3, 4, 5, 6, 7, 8, 9)
VALUES = (10.1, 10.4, 9.9, 10.0, 10.2, 10.3, 10.15, 10.05, 14.0)


def test_every_figure_is_that_of_scipy_and_numpy() -> None:
    found = describe_runs(RUNS, VALUES, IntervalSpec(seed=1))
    assert found is not None
    values = np.array(VALUES)
    assert (found.n, found.minimum, found.maximum) == (9, 9.9, 14.0)
    assert found.mean == pytest.approx(values.mean())
    assert found.median == np.median(values)
    assert found.sample_standard_deviation == pytest.approx(values.std(ddof=1))
    assert found.population_standard_deviation == pytest.approx(values.std(ddof=0))
    assert found.coefficient_of_variation == pytest.approx(stats.variation(values, ddof=1))


def test_the_interval_of_the_mean_is_that_of_scipy_within_the_noise_of_resampling() -> None:
    found = describe_runs(RUNS, VALUES, IntervalSpec(seed=1))
    assert found is not None
    whole = stats.bootstrap((VALUES,), np.mean, n_resamples=100_000, method="BCa", rng=np.random.default_rng(1))
    assert found.mean_interval.lower == pytest.approx(whole.confidence_interval.low, abs=0.02)
    assert found.mean_interval.upper == pytest.approx(whole.confidence_interval.high, abs=0.1)
    assert (found.mean_interval.seed, found.mean_interval.resamples) == (1, 10_000)
    assert found.median_interval.method == "BCa bootstrap"


def test_an_outlier_is_named_by_its_run_and_counts_all_the_same() -> None:
    found = describe_runs(RUNS, (None, *VALUES[1:]), IntervalSpec(seed=1))
    assert found is not None
    assert [(one.run, one.value) for one in found.outliers] == [(9, 14.0)]
    assert found.maximum == 14.0
    assert found.n == 8
    assert found.outlier_rule.startswith("Tukey's fences")


def test_one_run_has_no_spread_and_says_why() -> None:
    found = describe_runs((1,), (5.0,), IntervalSpec(seed=1))
    assert found is not None
    assert (found.sample_standard_deviation, found.median_interval.lower) == (None, None)
    assert found.median_interval.notes == ("one value alone says nothing of how it varies",)
    assert describe_runs((1, 2), (None, None), IntervalSpec(seed=1)) is None
