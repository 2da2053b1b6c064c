"""A trial whose DUT shared its core is adjusted where a search allows for that, and invalid everywhere else."""

from __future__ import annotations

import pytest

from nicbench.core.judging import Thresholds
from nicbench.core.trial import CpuTime
from nicbench.measure.trial_verdict import Evidence, judge


def evidence(slow: int, **changes: int) -> Evidence:
    times = {"user_ns": 0, "nice_ns": 0, "system_ns": 0, "softirq_ns": 900, "irq_ns": 0, "steal_ns": 0, "idle_ns": 100}
    core = CpuTime.model_validate({"cpu": 1, **times, "speed_samples": 500, "slow_samples": slow} | changes)
    return Evidence(transmit_ns=10**9, intended=10**6, unsent_tester=0, dut_cpus=(core,))


def test_a_shared_core_alone_makes_a_trial_adjusted_and_usable() -> None:
    verdict = judge(evidence(200), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted, len(verdict.findings)) == (True, True, 1)


def test_a_quiet_core_makes_it_valid_and_nothing_to_adjust_for() -> None:
    verdict = judge(evidence(5), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (True, False)


def test_without_a_search_that_allows_for_it_the_same_trial_is_invalid() -> None:
    verdict = judge(evidence(200), Thresholds())
    assert (verdict.valid, verdict.adjusted) == (False, False)


@pytest.mark.parametrize("also", [{"steal_ns": 500}, {"longest_pause_ns": 20_000_000}], ids=["stolen", "paused"])
def test_whatever_else_was_found_leaves_it_invalid(also: dict[str, int]) -> None:
    verdict = judge(evidence(200, **also), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (False, False)
