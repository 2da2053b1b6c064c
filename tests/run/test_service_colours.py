"""Service activation aware of colours, on real frames: bridges that police each mark by itself, and others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

FRAME_BITS = 512 * 8
BURST = 400
BENCH = """
nicbench: 1
title: A service of two colours
lab: {{kind: veth}}
dut: {{kind: bridge, police: {police}}}
tester: {{catch_up: 5 ms}}
traffic:
  flows: 4
  streams:
    - {{name: green, share: 50 %, fields: {{traffic_class: 184}}}}
    - {{name: yellow, share: 50 %, fields: {{traffic_class: 40}}}}
tests:
  - name: activation
    method: service-activation
    steps: [100 %]
    services:
      - {{name: green, excess_stream: yellow, frame_bytes: 512, cir: {cir} b/s, eir: {eir} b/s, burst: {burst} B}}
    trial: {{step: 2 s, performance: 0 s, drain: 50 ms, settle: 300 ms}}
"""


def activate(folder: Path, police: str, cir: int, eir: int) -> dict[str, Result]:
    """Sends a service of some committed and excess frames a second, in marks of their own."""
    bits = {"cir": cir * FRAME_BITS, "eir": eir * FRAME_BITS, "burst": 2 * BURST * 512}
    summary, _ = run_bench(folder, BENCH.format(police=police, **bits) + TOLERANT)
    return {result.id.partition("/")[2].removeprefix("configuration/"): result for result in summary.results}


def by_colour(green: int, yellow: int) -> str:
    """Policers of each mark: DSCP 46 and 10."""
    return f"[{{dscp: 46, rate: {green} pps, burst: {BURST}}}, {{dscp: 10, rate: {yellow} pps, burst: {BURST}}}]"


def check_as_agreed(folder: Path, cir: int, eir: int) -> None:
    results = activate(folder, by_colour(cir + 100, eir), cir, eir)
    assert {name: result.values["outcome"] for name, result in results.items()} == {
        "green/100 % of CIR": "pass", "green/CIR + EIR": "pass", "green/CIR + 125 % of EIR": "pass",
        "all services": "pass",
    }  # fmt: skip
    policed = results["green/CIR + 125 % of EIR"].values["policed_rate_bits_per_s"]
    assert isinstance(policed, Bounded)
    assert policed.lower is not None
    assert policed.upper is not None
    print(f"{(cir + eir) * FRAME_BITS / 1e6:.3f} Mb/s: {policed.lower / 1e6:.3f} to {policed.upper / 1e6:.3f} Mb/s")
    assert policed.lower <= (cir + eir) * FRAME_BITS <= policed.upper


@pytest.mark.acceptance  # the pure tests have the same policers
def test_excess_is_policed_by_its_mark_and_committed_frames_pass(draw: random.Random, tmp_path: Path) -> None:
    check_as_agreed(tmp_path, draw.randrange(4000, 8000), draw.randrange(2000, 4000))


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_the_policed_excess_is_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    check_as_agreed(tmp_path, draw.randrange(4000, 8000), draw.randrange(2000, 4000))


@pytest.mark.parametrize(
    ("police", "failed"),
    [
        (f"[{{rate: 9000 pps, burst: {BURST}}}]", {"green/CIR + 125 % of EIR"}),
        (by_colour(4000, 3000), {"green/100 % of CIR", "green/CIR + EIR", "green/CIR + 125 % of EIR"}),
    ],
    ids=["blind to colours", "too little for what is committed"],
)
@pytest.mark.acceptance  # the pure tests have the same policers
def test_a_policer_that_takes_committed_frames_is_told(police: str, failed: set[str], tmp_path: Path) -> None:
    results = activate(tmp_path, police, 6000, 3000)
    assert {name for name, result in results.items() if result.values.get("accepted") == "no"} == failed
