"""Given loads, from the bench file to the report: what the simulated DUT does to frames is what the tables say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nicbench import report
from nicbench.core.result import Result, ResultVerdict
from nicbench.report.gather import gather
from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

LINE_FRAMES_PER_S = 10e6 / (84 * 8)  # of 64 bytes at 10 Mb/s

BENCH = """
nicbench: 1
title: Loads
lab: {{kind: simulated, link: 10 Mb/s, {lab}}}
dut: {{kind: simulated}}
{more}
tests:
  - name: loads
    method: {method}
    frame_bytes: [64]
    trial: {{duration: 400 ms, drain: 20 ms, settle: 5 ms}}
"""
SWEEP = """\
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    trial: {duration: 400 ms, drain: 20 ms, settle: 5 ms}
"""


def folder_of(parent: Path, method: str, lab: str, more: str = "") -> RunFolder:
    return RunFolder.create(parent, BENCH.format(method=method, lab=lab, more=more), "Loads")


def results_of(folder: RunFolder) -> tuple[Result, ...]:
    run_whole(folder)
    summary = folder.summary()
    return summary.results


def column(results: tuple[Result, ...], name: str) -> list[Any]:
    return [result.values[name] for result in results]


def test_the_loss_of_a_known_capacity_falls_to_nothing_at_it(tmp_path: Path) -> None:
    capacity = 0.75 * LINE_FRAMES_PER_S
    folder = folder_of(tmp_path, "frame-loss", f"capacity: {capacity} pps, queue_frames: 4")
    results = results_of(folder)
    assert [result.parameters["load_percent"] for result in results] == [100.0, 90.0, 80.0, 70.0, 60.0]
    assert column(results, "loss_percent") == pytest.approx([25.0, 16.67, 6.25, 0.0, 0.0], abs=0.2)
    text = report.build(folder.path).read_text(encoding="utf-8")
    assert "Frame loss rate" in text
    assert "Frame loss rate [%]" in text
    assert [trial.request.purpose.value for trial in folder.journal.trials().values()] == ["loss"] * 5


def test_a_sweep_takes_altered_frames_for_what_they_are(tmp_path: Path) -> None:
    results = results_of(folder_of(tmp_path, "load-sweep", "corrupt: 5 %", "traffic: {bidirectional: true}"))
    assert len(results) == 10
    full = results[0].values
    offered, returned = full["offered_frames"], full["returned_frames"]
    assert isinstance(offered, int)
    assert isinstance(returned, int)
    assert full["lost_frames"] == 0
    assert full["altered_frames"] == offered - returned
    assert full["returned_percent"] == pytest.approx(95.0, abs=1.5)
    assert full["returned_by_way"] is not None
    assert results[0].parameters["mode"] == "10 Mb/s, both ways"
    assert all(value == 64 - 46 for value in column(results, "checked_bytes"))


def test_loads_beyond_the_tester_are_left_out_and_the_report_says_why(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "load-sweep", f"tester_ceiling: {0.6 * LINE_FRAMES_PER_S} pps")
    results = results_of(folder)
    assert [result.verdict for result in results] == [ResultVerdict.INCOMPLETE] * 2 + [ResultVerdict.VALID] * 8
    view = gather(RunFolder.open(folder.path))
    assert view.verdict_text.startswith("Everything planned was tried. 2 of 10 results have no value (the tester sent")


def test_a_sequence_that_ends_early_is_not_taken_for_a_run_that_broke_off(tmp_path: Path) -> None:
    """Two of ten planned loads suffice where nothing is lost; that the run is incomplete has another reason."""
    bench = BENCH.format(method="frame-loss", lab=f"tester_ceiling: {0.6 * LINE_FRAMES_PER_S} pps", more="") + SWEEP
    folder = RunFolder.create(tmp_path, bench, "Loads")
    losses = [result for result in results_of(folder) if result.method == "frame-loss"]
    assert [result.parameters["load_percent"] for result in losses] == [pytest.approx(60.6, abs=0.6), 60.0]
    text = gather(RunFolder.open(folder.path)).verdict_text
    assert text.startswith("Everything planned was tried. 2 of 12 results have no value")
