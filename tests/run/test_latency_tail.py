"""Latency from the bench file to the result: delays that the simulated DUT adds, and trials of a number of frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

BENCH = """
nicbench: 1
title: Tail
lab: {kind: simulated, link: 100 Mb/s, delay: 30 us, jitter: 40 us}
dut: {kind: simulated}
traffic: {bidirectional: true, streams: [{name: a, share: 70 %}, {name: b, share: 30 %}]}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {NDR: 0 %}, precision: 10 %, maximum_trials: 4, trials_per_bound: 1}
    trial: {duration: 50 ms, drain: 20 ms, settle: 1 ms}
  - name: latency
    method: latency
    at: throughput
    loads: [5 %, 1 %]
    frame_bytes: [64]
    bins: [37 us, 57 us, 91 us]
    frames: 5001
    trial: {duration: 1 s, drain: 20 ms, settle: 1 ms}
"""


def test_known_delays_fall_into_their_bins_and_so_many_frames_are_counted_as_were_asked_for(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH, "Tail")
    run_whole(folder)
    summary = folder.summary()
    full, little = (result for result in summary.results if result.method == "latency")
    assert full.values["sent_frames"] == full.values["timed_frames"] == 2 * 5_001  # of each port, to the last frame
    # On the wire a frame takes 6.7 us, twice that behind one of the other stream; the jitter is uniform.
    assert full.values["bin_to_37000_ns_frames"] == full.values["bin_over_91000_ns_frames"] == 0
    assert full.values["outside_57000_ns_per_100_million"] == pytest.approx(52e6, abs=4e6)
    # 1 % of the throughput is 1488 frames in the second that a trial takes at most.
    assert little.values["sent_frames"] == pytest.approx(2 * 1488, abs=20)
