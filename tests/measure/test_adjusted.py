"""What a search allows for makes its trials adjusted and valid; any other trial is invalid by it."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.judging import Thresholds
from nicbench.core.trial import CpuTime
from nicbench.measure.trial_verdict import Evidence, PortEvidence, judge

PAUSED: dict[str, Any] = {"longest_gap_ns": 30_000_000, "total_gap_ns": 30_000_000}
FELL_SHORT: dict[str, Any] = {"unsent_tester": 200_000}
OVERRUN = PortEvidence(name="t0", receive_overrun=1000, link_changed=False)


def evidence(slow: int = 5, steal_ns: int = 0, **changes: Any) -> Evidence:
    """Evidence of a trial in which ``slow`` of 500 samples found the DUT's core shared."""
    times = {"user_ns": 0, "nice_ns": 0, "system_ns": 0, "softirq_ns": 900, "irq_ns": 0, "idle_ns": 100}
    core = CpuTime.model_validate({"cpu": 1, **times, "steal_ns": steal_ns, "speed_samples": 500, "slow_samples": slow})
    given = {"transmit_ns": 10**9, "intended": 10**6, "unsent_tester": 0, "dut_cpus": (core,)}
    return Evidence.model_validate(given | changes)


ALLOWED_FOR = pytest.mark.parametrize(
    "found",
    [evidence(200), evidence(steal_ns=500), evidence(**PAUSED), evidence(**FELL_SHORT), evidence(200, **PAUSED)],
    ids=["shared core", "stolen", "paused", "fell short", "shared core and paused"],
)


@ALLOWED_FOR
def test_a_shared_core_and_a_tester_that_paused_or_fell_short_leave_a_trial_of_a_search_usable(found: Evidence) -> None:
    verdict = judge(found, Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (True, True)
    assert verdict.findings


@ALLOWED_FOR
def test_without_a_search_that_allows_for_it_the_same_trial_is_invalid(found: Evidence) -> None:
    verdict = judge(found, Thresholds())
    assert (verdict.valid, verdict.adjusted) == (False, False)


def test_a_quiet_trial_is_valid_and_has_nothing_to_adjust_for() -> None:
    verdict = judge(evidence(), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (True, False)


@pytest.mark.parametrize(
    "also",
    [{"ports": (OVERRUN,)}, {"clock_step_ns": 5_000_000}, {"outlasted_drain_s": 0.1}],
    ids=["overrun", "clock", "late frames"],
)
def test_whatever_else_was_found_leaves_it_invalid(also: dict[str, Any]) -> None:
    verdict = judge(evidence(200, **PAUSED, **also), Thresholds(), adjusts=True)
    assert (verdict.valid, verdict.adjusted) == (False, False)
