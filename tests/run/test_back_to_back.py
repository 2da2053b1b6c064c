"""Bursts, from the bench file to the report: a buffer of a known size is found, simulated and with real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench import report
from nicbench.core.result import Result
from nicbench.store.folder import RunFolder

from .lab_bench import run_bench
from .simulated_bench import run_whole

LINE_FRAMES_PER_S = 10e6 / (84 * 8)  # of 64 bytes at 10 Mb/s
CAPACITY_FRAMES_PER_S = 10_000
QUEUE_FRAMES = 50

BENCH = f"""
nicbench: 1
title: Bursts
lab: {{kind: simulated, link: 10 Mb/s, capacity: {CAPACITY_FRAMES_PER_S} pps, queue_frames: {QUEUE_FRAMES}}}
dut: {{kind: simulated}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{goals: {{NDR: 0 %}}, precision: 1 %, maximum_trials: 12, trials_per_bound: 1}}
    trial: {{duration: 2 s, drain: 20 ms, settle: 5 ms}}
  - name: bursts
    method: back-to-back
    at: throughput
    frame_bytes: [64]
    repetitions: 2
    longest_burst: 100 ms
    trial: {{drain: 20 ms, settle: 5 ms}}
"""


def bursts_of(folder: RunFolder) -> Result:
    summary = folder.summary()
    return next(result for result in summary.results if result.method == "back-to-back")


def value_of(result: Result) -> float:
    value = result.values["back_to_back_frames"]
    assert value.value is not None
    return value.value


def longest_by_computation() -> int:
    """Frames come at the line rate and leave at the capacity; one is served in addition to those that wait."""
    served_until, frames = 0.0, 0
    while True:
        now = frames / LINE_FRAMES_PER_S
        if (served_until - now) * CAPACITY_FRAMES_PER_S > QUEUE_FRAMES:
            return frames
        served_until = max(now, served_until) + 1 / CAPACITY_FRAMES_PER_S
        frames += 1


def test_a_simulated_buffer_is_found_to_the_frame(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH, "Bursts")
    run_whole(folder)
    result = bursts_of(folder)
    assert value_of(result) == longest_by_computation()
    assert result.values["standard_deviation_frames"] == 0.0
    corrected = result.values["corrected_buffer_frames"]
    assert isinstance(corrected, float)
    assert corrected == pytest.approx(QUEUE_FRAMES, rel=0.05)
    bursts = [trial for trial in folder.journal.trials().values() if trial.request.purpose.value == "burst"]
    assert all(trial.reading.counts.sent == trial.request.frames for trial in bursts)
    text = report.build(folder.path).read_text(encoding="utf-8")
    assert "Back-to-back frames" in text
    assert "bursts: 2 repetitions, RFC 2544 section 26.4 asks for 50" in text


POLICER = """
nicbench: 1
title: Bursts through a token bucket
lab: {kind: veth}
dut: {kind: policer, rate: 100 kpps, burst: 3000}
tester: {catch_up: 10 ms}
thresholds: {dut_contended_share: 1.0, total_gap_share: 0.2}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {NDR: 0 %}, precision: 3 %, maximum_trials: 10, trials_per_bound: 1}
    trial: {duration: 500 ms, drain: 100 ms, settle: 50 ms}
  - name: bursts
    method: back-to-back
    at: throughput
    frame_bytes: [64]
    rate: 300 kpps
    repetitions: 2
    longest_burst: 40 ms
    loss_verification: 1
    trial: {drain: 50 ms, settle: 50 ms}
"""


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.acceptance
def test_the_burst_of_a_token_bucket_is_found_with_real_packets(tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, POLICER)
    result = next(result for result in summary.results if result.method == "back-to-back")
    truth = 3000 / (1 - 100e3 / 300e3)
    print(f"policer: {value_of(result):.1f} of {truth:.0f} frames, {result.values}")
    # A pause of the sender lets tokens in: what it makes good, at most 10 ms, is sent faster than the rate.
    assert truth * 0.98 <= value_of(result) <= truth + 100e3 * 0.010 * 1.5
    assert result.values["corrected_buffer_frames"] == pytest.approx(3000, rel=0.2)
