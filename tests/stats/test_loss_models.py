"""The two shapes of a loss: values computed with 1200 digits from the formulas of the draft, and their inverse."""

from __future__ import annotations

import numpy as np
import pytest

from nicbench.stats.critical_load import MODELS, critical_load, log_loss_ratio

# Shape, load, mrr, spread, logarithm of the frames lost per second.
KNOWN = (
    ("stretch", 1000, 200000, 200000, 5.90958266170552),
    ("stretch", 100000, 200000, 10000, -0.789727727489089),
    ("stretch", 190000, 200000, 10000, 8.04962399206878),
    ("stretch", 200000, 200000, 5000, 8.15068027083457),
    ("stretch", 250000, 200000, 10000, 10.8211204546462),
    ("stretch", 600000, 200000, 20000, 12.8992629551449),
    ("erf", 1000, 200000, 200000, 4.45351507671297),
    ("erf", 100000, 200000, 10000, -97.3682348691228),
    ("erf", 190000, 200000, 10000, 5.52653883658292),
    ("erf", 200000, 200000, 5000, 7.25168106793159),
    ("erf", 250000, 200000, 10000, 10.8197782844103),
    ("erf", 600000, 200000, 20000, 12.8992198260901),
)


@pytest.mark.parametrize(("name", "load", "mrr", "spread", "known"), KNOWN)
def test_the_loss_is_that_of_the_drafts_formula(
    name: str, load: float, mrr: float, spread: float, known: float
) -> None:
    found = MODELS[name](np.array([load]), np.array([mrr]), np.array([spread]))[0]
    assert found == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [1e-5, 1e-3, 0.05, 1.0])
def test_no_load_is_too_small_or_too_large_for_a_loss_that_rises(name: str, share: float) -> None:
    mrr = np.array([1e6])
    loads = np.geomspace(1.0, 1e9, 400)
    losses = np.array([log_loss_ratio(MODELS[name], np.array([load]), mrr, mrr * share)[0] for load in loads])
    assert not np.isnan(losses).any()
    assert (np.diff(losses[np.isfinite(losses)]) > -1e-6).all()
    assert losses[-1] == pytest.approx(0.0, abs=2e-3)


@pytest.mark.parametrize("name", MODELS)
def test_at_the_critical_load_so_much_is_lost(name: str) -> None:
    mrr, spread = np.array([1e6, 1e6, 3e5]), np.array([1e2, 3e4, 1e4])
    for ratio in (1e-7, 1e-3, 0.1):
        loads = critical_load(MODELS[name], mrr, spread, ratio)
        assert np.exp(log_loss_ratio(MODELS[name], loads, mrr, spread)) == pytest.approx([ratio] * 3, rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_a_shape_that_loses_more_at_any_load_has_no_critical_load(name: str) -> None:
    found = critical_load(MODELS[name], np.array([1e6]), np.array([1e6]), 1e-7)
    assert found[0] == pytest.approx(0.0, abs=1.0)
