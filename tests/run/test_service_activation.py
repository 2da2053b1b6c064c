"""Service activation on real frames: a policer of known rate is found, and one that is not as agreed is reported."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Summary

from .lab_bench import run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

FRAME_BITS = 512 * 8
BENCH = """
nicbench: 1
title: Services over a policer
lab: {{kind: veth}}
dut: {{kind: policer, rate: {rate} pps, burst: 2000}}
tester: {{catch_up: 10 ms}}
thresholds: {{dut_contended_share: 1.0}} # a token bucket's rate does not depend on how much of its core it gets
tests:
  - name: activation
    method: service-activation
    steps: [100 %]
    services:
      - {{name: gold, frame_bytes: 512, cir: {cir:.0f} b/s, eir: {eir:.0f} b/s, burst: 1024000 B}}
    trial: {{step: {step}, performance: {performance}, drain: 100 ms, settle: 50 ms}}
"""


def activate(
    folder: Path, rate: int, *, agreed: int, step: str = "500 ms", performance: str = "500 ms"
) -> tuple[Summary, dict[str, object]]:
    """A policer of ``rate`` where ``agreed`` frames/s were agreed, half of them as excess."""
    bits = agreed * FRAME_BITS
    bench = BENCH.format(rate=rate, cir=0.5 * bits, eir=0.5 * bits, step=step, performance=performance)
    summary, _ = run_bench(folder, bench)
    return summary, {result.id.partition("/")[2]: result.values["outcome"] for result in summary.results}


def check_policed_rate(summary: Summary, rate: int) -> None:
    policed = [result.values["policed_rate_bits_per_s"] for result in summary.results
               if "policed_rate_bits_per_s" in result.values]  # fmt: skip
    for found in policed:
        assert isinstance(found, Bounded)
        assert found.lower is not None
        assert found.upper is not None
        print(f"policer {rate * FRAME_BITS / 1e6:.3f} Mb/s: {found.lower / 1e6:.3f} to {found.upper / 1e6:.3f} Mb/s")
        assert found.lower <= rate * FRAME_BITS <= found.upper
    assert len(policed) == 1


def test_a_policer_as_agreed_passes_and_its_rate_is_found(draw: random.Random, tmp_path: Path) -> None:
    rate = draw.randrange(60_000, 120_000)
    summary, outcomes = activate(tmp_path, rate, agreed=rate)
    assert set(outcomes.values()) == {"pass"}, summary
    check_policed_rate(summary, rate)


@pytest.mark.parametrize(
    ("rate", "failed"),
    [
        (
            40_000,  # the CIR is 50,000
            {"configuration/gold/100 % of CIR", "configuration/gold/CIR + EIR",
             "configuration/gold/CIR + 125 % of EIR", "configuration/all services",
             "performance/gold", "performance/all services"},
        ),
        (400_000, {"configuration/gold/CIR + 125 % of EIR", "configuration/all services"}),
    ],
    ids=["too little", "no policing"],
)  # fmt: skip
@pytest.mark.acceptance  # the pure tests have the same policers
def test_a_policer_that_is_not_as_agreed_is_told(rate: int, failed: set[str], tmp_path: Path) -> None:
    _, outcomes = activate(tmp_path, rate, agreed=100_000)
    assert {name for name, outcome in outcomes.items() if outcome == "fail"} == failed


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_policed_rate_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    rate = draw.randrange(40_000, 160_000)
    summary, outcomes = activate(tmp_path, rate, agreed=rate, step="2 s", performance="0 s")
    assert set(outcomes.values()) == {"pass"}
    check_policed_rate(summary, rate)
