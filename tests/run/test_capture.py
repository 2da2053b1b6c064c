"""Captures and per-flow files of a run on the simulated lab: they lie in the run folder and the report names them."""

from __future__ import annotations

import asyncio
import json
import struct
from pathlib import Path

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.core.trial import Trial
from nicbench.report import build
from nicbench.run import run
from nicbench.store.folder import RunFolder

BENCH = """
nicbench: 1
title: Captured
seed: 3
lab: {{kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us}}
dut: {{kind: simulated}}
tester: {tester}
traffic: {{flows: 8}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [128]
    search: {{kind: mlr, precision: 10 %, maximum_trials: 4}}
    trial: {{duration: 50 ms, drain: 20 ms, settle: 5 ms}}
"""

ENHANCED_PACKET = 6


def packets(path: Path) -> list[int]:
    """The time stamp of each frame, in nanoseconds (draft-ietf-opsawg-pcapng: type, length, body, length)."""
    data, at, stamps = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == ENHANCED_PACKET:
            high, low, captured, original = struct.unpack_from("<IIII", data, at + 12)
            assert captured == original == 124
            stamps.append(high << 32 | low)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        at += length
    return stamps


def run_with(parent: Path, tester: str) -> tuple[RunFolder, list[Trial]]:
    text = BENCH.format(tester=tester)
    folder = RunFolder.create(parent, text, "Captured")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    trials = folder.journal.trials().values()
    return folder, [trial for trial in trials if trial.test == "throughput"]


def test_the_frames_around_each_loss_are_in_the_run_folder(tmp_path: Path) -> None:
    folder, trials = run_with(tmp_path, "{capture: {around_loss: 4}}")
    lossy = 0
    for trial in trials:
        capture = trial.reading.capture
        assert capture.error is None
        stamps = packets(folder.path / capture.name)
        assert len(stamps) == capture.frames
        assert stamps == sorted(stamps)
        assert (capture.jumps > 0) == (capture.frames > 0)
        lossy += trial.reading.counts.lost > 0 and capture.jumps > 0
    assert lossy > 0
    assert trials[0].reading.capture.name in build(folder.path).read_text()


def test_n_reordering_is_counted_as_far_as_is_asked_and_the_report_tells_it(tmp_path: Path) -> None:
    text = BENCH.format(tester="{reordering_n: 8}").replace("delay: 20 us", "reorder: 2 %, swap: 48")
    folder = RunFolder.create(tmp_path, text, "Reordered")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    trials = [trial for trial in folder.journal.trials().values() if trial.reading.streams[0].reordering]
    assert trials
    for trial in trials:
        found = trial.reading.streams[0].reordering
        counts = found.n_reordered
        assert (len(counts), counts[2]) == (8, found.by_three_or_more)
        assert sorted(counts, reverse=True) == list(counts)
        assert counts[0] <= found.measured
        assert counts[3] > 0, "48 frames of 8 flows overtake: about 6 of each frame's own flow"
        assert not any(counts[found.maximum_extent :]), "no frame is right behind more than came since it was overtaken"
    page = build(folder.path).read_text()
    assert "n-reordering, RFC 4737, 5.3), for n = 1 to 8: " in page


def test_the_first_frames_and_a_line_for_each_flow_are_in_the_run_folder(tmp_path: Path) -> None:
    folder, trials = run_with(tmp_path, "{capture: {frames: 10}, per_flow: histograms}")
    for trial in trials:
        assert len(packets(folder.path / trial.reading.capture.name)) == 10
        text = (folder.path / trial.reading.flow_report.name).read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        counts = trial.reading.counts
        assert len(lines) == 8
        assert sum(line["received"] for line in lines) == counts.received
        assert sum(line["lost"] for line in lines) == counts.lost + counts.late
        assert all(line["histogram"] for line in lines)
    names = {path.name for path in (folder.path / "raw").iterdir()}
    assert len(names) == 2 * len(trials)
