"""Quantiles, tails and special functions against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from nicbench.stats.critical_load import erfc, log_gamma, scaled_erfc
from nicbench.stats.intervals import binomial_tail, share_quantile, student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 29, 1000])
def test_quantiles_of_students_t(freedom: int) -> None:
    for p in (1e-6, 0.005, 0.1, 0.5, 0.8, 0.975, 0.9995):
        assert student_quantile(freedom, p) == pytest.approx(special.stdtrit(freedom, p), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("hits", "draws"), [(1, 1), (1, 5), (4, 5), (500, 1000), (10, 100_000), (500_000, 1_000_000)])
def test_quantiles_of_shares(hits: int, draws: int) -> None:
    for p in (0.001, 0.025, 0.975):
        expected = special.betaincinv(hits, draws - hits + 1, p)
        assert share_quantile(hits, draws - hits + 1, p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("more_than", "draws"), [(0, 5), (5, 5), (120, 1000), (50, 100_000)])
def test_tails_of_binomial_numbers(more_than: int, draws: int) -> None:
    for chance in (1e-4, 0.1, 0.5):
        expected = special.bdtrc(more_than, draws, chance)
        assert binomial_tail(more_than, draws, chance) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_functions_of_arrays() -> None:
    above = np.concatenate([np.logspace(-9, 1.4, 500), np.linspace(0.0, 30.0, 500)])
    assert scaled_erfc(above) == pytest.approx(special.erfcx(above), rel=1e-13)
    either = np.linspace(-30.0, 26.0, 999)
    assert erfc(either) == pytest.approx(special.erfc(either), rel=1e-13)
    positive = np.logspace(-6.0, 9.0, 999)
    assert log_gamma(positive) == pytest.approx(special.gammaln(positive), rel=1e-12, abs=1e-12)
