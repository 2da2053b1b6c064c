"""Every search from the bench file to the report, on the simulated lab: validated answers, and words for the ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result
from nicbench.report import build
from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

BENCH = """
nicbench: 1
title: Searches
lab: {{kind: simulated, link: 20 Mb/s, {dut}}}
dut: {{kind: simulated}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{kind: {kind}, precision: 5 %, validation: 500 ms, maximum_trials: 40, trials_per_bound: 1}}
    trial: {{duration: 100 ms, drain: 20 ms, settle: 5 ms}}
"""
KINDS = ("guided", "mlr", "step-down")


def result_of(folder: Path, kind: str, dut: str) -> tuple[Result, RunFolder, str]:
    run = RunFolder.create(folder, BENCH.format(kind=kind, dut=dut), "Searches")
    run_whole(run)
    summary = run.summary()
    (result,) = summary.results
    return result, run, build(run.path).read_text()


def ndr(result: Result) -> Bounded:
    rate = result.values["ndr_frames_per_s"]
    assert isinstance(rate, Bounded)
    return rate


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_known_capacity_is_found_and_confirmed_by_a_longer_trial(kind: str, tmp_path: Path) -> None:
    result, run, page = result_of(tmp_path, kind, "capacity: 20 kpps, queue_frames: 16")
    assert ndr(result).value == pytest.approx(20_000, rel=0.06)
    assert result.values["ndr_passed_for_s"] == 0.5
    trials = [trial for trial in run.journal.trials().values() if trial.test == "throughput"]
    assert {round(trial.request.duration_s, 3) for trial in trials} == {0.1, 0.5}
    assert result.values["search_trials"] == len(trials)
    assert result.values["search_traffic_s"] == pytest.approx(sum(one.request.duration_s for one in trials), rel=0.05)
    assert "Every rate has passed a trial of 0.5 s." in page
    plan = run.plan()
    assert "throughput: validation trial 0.5 s, RFC 2544 section 24 asks for 60 s" in plan.deviations


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_strict_goal_under_rare_loss_ends_with_an_explanation(kind: str, tmp_path: Path) -> None:
    result, _, page = result_of(tmp_path, kind, "capacity: 20 kpps, queue_frames: 16, loss: 0.2 %")
    pdr = result.values["pdr_frames_per_s"]
    assert isinstance(pdr, Bounded)
    assert pdr.upper == pytest.approx(20_500, rel=0.06)  # one trial of few frames may fail below it by chance
    assert "of the 64-byte frames at any load" in page
