"""The golden DUT in the kernel: a rate that is known beforehand must be what a run finds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Summary

from .lab_bench import POLICER, rate_of, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow]

BURST_FRAMES = 4000


def check_known_rate(summary: Summary, rate: int, trial_s: float) -> None:
    for result in summary.results:
        found = rate_of(result)
        truth = rate + BURST_FRAMES / trial_s  # RFC 2697: what a full bucket lets pass in a trial
        assert found.lower is not None
        assert found.upper is not None
        assert found.lower <= truth <= found.upper, result
        assert abs(found.lower - truth) <= 0.01 * truth, result
        print(
            f"policer {rate}: {result.parameters['frame_bytes']} bytes {found.lower:.0f} to {found.upper:.0f} "
            f"in {result.values['search_trials']} trials, {result.verdict.value}"
        )


@pytest.mark.acceptance  # of two such rates, in two configurations: test_configurations.py
@pytest.mark.parametrize(("search", "trial_s"), [("guided", 1), ("guided", 8), ("mlr", 8)])
def test_a_rate_drawn_by_the_test_is_found(search: str, trial_s: int, draw: random.Random, tmp_path: Path) -> None:
    rate, size = draw.randrange(120_000, 300_000), draw.choice((64, 1518))
    summary, trials = run_bench(tmp_path, POLICER.format(rate=rate, sizes=f"[{size}]", search=search, trial_s=trial_s))
    check_known_rate(summary, rate, trial_s)
    lossy = [trial.reading for trial in trials if trial.test == "throughput" and trial.reading.counts.lost]
    assert lossy
    assert all(reading.unexplained == 0 for reading in lossy)  # the policer's own counter accounts for every frame


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_rate_is_found_in_ten_of_ten_runs(repetition: int, tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, POLICER.format(rate=200_000, sizes="[64, 1518]", search="guided", trial_s=8))
    check_known_rate(summary, 200_000, 8)
