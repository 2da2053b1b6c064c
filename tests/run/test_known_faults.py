"""What a forwarder of our own does to frames on purpose is what the tables say: real frames between two processes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nicbench.engine.packets import LEARNING_FRAMES

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.slow]

LOSS, ALTERED = 0.05, 0.02
BENCH = (
    """
nicbench: 1
title: Known faults
lab: {kind: memif}
dut: {kind: reflector, huge_pages: false, faults: {seed: 5, loss: 5 %, corrupt_payload: 2 %}}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 40 kpps
    loads: [100 %, 25 %]
    trial: {duration: 500 ms, drain: 200 ms, settle: 20 ms}
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    of: 10 kpps
    trial: {duration: 200 ms, drain: 200 ms, settle: 20 ms}
"""
    + TOLERANT
)


def test_a_known_share_that_is_lost_or_altered_is_what_does_not_come_back_intact(tmp_path: Path) -> None:
    summary, trials = run_bench(tmp_path, BENCH)
    sweep = [result for result in summary.results if result.method == "load-sweep"]
    loss = [result for result in summary.results if result.method == "frame-loss"]
    assert [result.parameters["load_percent"] for result in sweep] == [100.0, 25.0]
    assert len(loss) == 10  # it always loses, so that no load ends the sequence
    truth = 100.0 * (LOSS + ALTERED)
    for result in summary.results:
        offered = result.values["offered_frames"]
        assert isinstance(offered, int)
        slack = 6 * 100.0 * math.sqrt((LOSS + ALTERED) / offered)  # six standard deviations of what is drawn
        assert result.values["loss_percent"] == pytest.approx(truth, abs=slack), result.id
        assert result.values["returned_percent"] == pytest.approx(100.0 - truth, abs=slack), result.id
        print(f"{result.id}: {offered} offered, lost or altered {result.values['loss_percent']:.3f} % of {truth:g} %")
    for trial in trials:
        if trial.test in ("sweep", "loss"):
            own_count = sum(place.frames for place in trial.reading.ledger)
            assert 0 <= own_count - trial.reading.counts.lost <= 2 * LEARNING_FRAMES  # those pass it too
