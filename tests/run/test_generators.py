"""One DUT of known rate behind two generators: our own engine and TRex's stand-in agree by every search."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.testbed.testers import trex_server

from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

OURS = "lab: {kind: simulated, link: 10 Mb/s, capacity: 10 kpps, queue_frames: 16}\ndut: {kind: simulated}\n"
TREX = f"tester: {{kind: trex, client: {trex_server.FAKE}}}\ndut: {{kind: external}}\n"
TESTS = """
nicbench: 1
title: Generators
thresholds: {tester_overtime_share: 9} # a machine of tests is busy, and trials are short
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {kind: KIND, precision: 5 %, maximum_trials: 30, validation: 0 s}
    trial: {duration: 100 ms, drain: 10 ms, settle: 0 s}
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    trial: {duration: 100 ms, drain: 10 ms, settle: 0 s}
"""


def measured(folder: Path, text: str) -> tuple[float, dict[float, float]]:
    """The NDR, and the loss in percent at each load."""
    run = RunFolder.create(folder, text, f"Generators {os.getpid()}")
    run_whole(run)
    summary = run.summary()
    throughput, *losses = summary.results
    rate = throughput.values["ndr_frames_per_s"]
    assert rate.value is not None
    found = {row.parameters["load_percent"]: row.values["loss_percent"] for row in losses}
    return rate.value, found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", ["guided", "mlr", "step-down"])
def test_both_generators_find_the_same_rate_and_the_same_loss(
    search: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trex_server, "SERVER", trex_server.Server(capacity=10_000.0, queue=16))
    address = str(tmp_path / "trex")
    monkeypatch.setenv("FAKE_TREX", address)
    tests = TESTS.replace("KIND", search)
    our_rate, our_loss = measured(tmp_path / "ours", tests + OURS)
    with trex_server.serving(address):
        its_rate, its_loss = measured(tmp_path / "its", tests + TREX)
    assert its_rate == pytest.approx(our_rate, rel=0.05)
    assert its_loss == pytest.approx(our_loss, abs=0.5)
