"""A study with axes from end to end: every combination is measured, and the page has its rate where it belongs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.report import build
from nicbench.run import run
from nicbench.store.folder import RunFolder

CAPACITIES = {"20k": 20_000, "40k": 40_000}
BENCH = """
nicbench: 1
title: A study
lab: {kind: simulated, queue_frames: 16}
dut: {kind: simulated}
axes:
  capacity: {20k: {lab: {capacity: 20 kpps}}, 40k: {lab: {capacity: 40 kpps}}}
tests:
  - name: loss
    method: load-sweep
    frame_bytes: [64]
    of: 100 kpps
    loads: [100 %]
    trial: {duration: 50 ms, drain: 10 ms, settle: 5 ms}
"""


def test_every_combination_is_measured_and_stands_in_its_field(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, BENCH, "A study")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    summary = asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    found = {result.configuration: result.values["returned_percent"] for result in summary.results}
    assert set(found) == {f"capacity-{name}" for name in CAPACITIES}
    for name, capacity in CAPACITIES.items():
        returned = found[f"capacity-{name}"]
        assert isinstance(returned, float)
        assert abs(returned - capacity / 1000) < 1.5
    plan = folder.plan()
    assert plan.axes == {"capacity": ("20k", "40k")}
    page = build(folder.path).read_text()
    assert "Over the axes of the study" in page
    assert re.search(r"over capacity, with 64-byte frames", page)
