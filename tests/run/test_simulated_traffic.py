"""Every kind of traffic of a bench file, from the file to the results, on the simulated lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

BENCH = """
nicbench: 1
title: Traffic
lab: {{kind: simulated, capacity: 20 kpps, queue_frames: 64}}
dut: {{kind: simulated}}
traffic: {traffic}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [{size}]
    search: {{precision: 5 %, maximum_trials: 12, trials_per_bound: 1}}
    trial: {{duration: 100 ms, drain: 20 ms, settle: 5 ms}}
"""
MIX = "mixes: {small: [{frame_bytes: 128, weight: 3}, {frame_bytes: 256, weight: 1}]}"

KINDS = {
    "IMIX": ("{flows: 16}", "imix"),
    "a mix of one's own": (f"{{{MIX}}}", "small"),
    "QinQ and TCP": ("{vlan: [200, 100], protocol: tcp}", 128),
    "VXLAN over IPv6": ("{ip: 6, vxlan: {vni: 5}}", 256),
    "drawn fields": ("{fields: {source_port: {first: 1, count: 60000, seed: 3}, traffic_class: 8}}", 64),
    "a sweep over sizes": ("{mixes: {every: {smallest: 64, largest: 264, step: 3}}}", "every"),
    "streams with sizes of their own": (
        "{streams: [{name: a, share: 75 %, frame_bytes: 64}, {name: b, share: 25 %, frame_bytes: imix}]}",
        "streams",
    ),
    "a raw frame": ("{raw_frame: '020000000001 020000000000 88b5 0102030405060708'}", 64),
    "a stream with a rate of its own": (
        "{streams: [{name: a, share: 100 %}, {name: clock, rate: 2 kpps, flows: 1}]}",
        128,
    ),
    "two streams": (
        "{streams: [{name: a, share: 75 %}, {name: b, share: 25 %, vlan: 7, protocol: tcp}], bidirectional: true}",
        128,
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("traffic", "size"), KINDS.values(), ids=list(KINDS))
def test_the_known_capacity_is_found_with_every_kind_of_traffic(traffic: str, size: Any, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH.format(traffic=traffic, size=size), "Traffic")
    run_whole(folder)
    summary = folder.summary()
    (result,) = summary.results
    assert result.id == f"throughput/{size}"
    rate = result.values["ndr_frames_per_s"]
    assert rate.value == pytest.approx(20_000, rel=0.1)
    for trial in folder.journal.trials().values():
        counts = trial.reading.counts
        assert (counts.corrupted, counts.corrupted_unattributed, counts.foreign, counts.reordered) == (0, 0, 0, 0)
        assert (counts.stale, counts.corrupted_copies) == (0, 0)
        assert trial.reading.learning
        assert all(stream.silent == 0 for stream in trial.reading.learning)


def test_a_dut_that_loses_frames_now_and_then_learns_every_flow_all_the_same(tmp_path: Path) -> None:
    text = BENCH.format(traffic="{flows: 2048, learning: {rate: 20 kpps}}", size=64)
    text = text.replace("queue_frames: 64", "queue_frames: 64, loss: 5 %").replace(
        "search: {", "search: {goals: {PDR: 20 %}, "
    )
    folder = RunFolder.create(tmp_path, text, "Traffic")
    run_whole(folder)
    learnt = [each for trial in folder.journal.trials().values() for each in trial.reading.learning]
    assert {each.silent for each in learnt} == {0}
    assert max(each.frames_per_flow for each in learnt) > 1


def test_a_mix_is_one_size_with_its_name_and_its_mean(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH.format(traffic=f"{{{MIX}}}", size="small"), "Traffic")
    run_whole(folder)
    summary, plan = folder.summary(), folder.plan()
    (result,) = summary.results
    assert result.parameters == {"frame_bytes": 160.0, "mix": "small"}
    assert result.values["line_rate_frames_per_s"] == pytest.approx(10e9 / (180 * 8))
    assert plan.traffic["mixes"] == {"small": "3 x 128 + 1 x 256 bytes (mean 160.0)"}


def test_a_fixed_number_of_frames_ends_each_trial(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH.format(traffic="{frames: 300, bidirectional: true}", size=64), "Frames")
    run_whole(folder)
    trials = list(folder.journal.trials().values())
    assert trials
    for trial in trials:
        due = 2 * min(300, int((trial.request.load_frames_per_s or 0.0) * trial.request.duration_s))
        assert trial.reading.counts.sent == trial.reading.counts.intended == due
        assert trial.reading.transmit_ns <= trial.request.duration_s * 1e9


def test_a_stream_keeps_its_own_rate_at_every_load(tmp_path: Path) -> None:
    traffic = "{streams: [{name: a, share: 100 %}, {name: clock, rate: 3 kpps, flows: 1}]}"
    folder = RunFolder.create(tmp_path, BENCH.format(traffic=traffic, size=64), "Rates")
    run_whole(folder)
    trials = list(folder.journal.trials().values())
    assert len({trial.request.load_frames_per_s for trial in trials}) > 2
    assert {trial.reading.streams[1].counts.intended for trial in trials} == {300}


def test_streams_with_sizes_of_their_own_have_the_mean_of_their_shares(tmp_path: Path) -> None:
    traffic = "{streams: [{name: a, share: 75 %, frame_bytes: 64}, {name: b, share: 25 %, frame_bytes: 1264}]}"
    folder = RunFolder.create(tmp_path, BENCH.format(traffic=traffic, size="streams"), "Sizes")
    run_whole(folder)
    summary, plan = folder.summary(), folder.plan()
    (result,) = summary.results
    assert result.parameters == {"frame_bytes": 364.0, "mix": "streams"}
    assert result.values["line_rate_frames_per_s"] == pytest.approx(10e9 / (384 * 8))
    assert plan.traffic["mixes"] == {"streams": "the streams' own sizes (mean 364.0)"}
