"""A million flows: each is sent, received and judged, and neither results nor report name them one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.bench_file import load, parse
from nicbench.core.errors import BenchFileError
from nicbench.core.events import Bus
from nicbench.core.traffic import MOST_FLOWS
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.report import build
from nicbench.run import run
from nicbench.store.folder import RunFolder

from .one_trial import readings

SIMULATED = """
nicbench: 1
title: Many flows
lab: {{kind: simulated, capacity: 4 Mpps}}
dut: {{kind: simulated}}
traffic: {{flows: {flows}, learning: {{flows: few}}}}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 1050 kpps
    loads: [100 %]
    trial: {{duration: 1 s, drain: 20 ms, settle: 0 s}}
"""
VETH = """
nicbench: 1
title: Many flows
lab: {kind: veth}
dut: {kind: xdp-tx}
traffic: {flows: 1000000, pattern: same-port, learning: {flows: few}}
tester: {driver: xdp, catch_up: 500 ms}
tests:
  - {name: t, method: throughput, frame_bytes: [64]}
"""
LARGEST_FOLDER_BYTES = 2**20


def test_a_million_flows_are_one_figure_in_the_results_and_in_the_report(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, SIMULATED.format(flows=MOST_FLOWS), "Many flows")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))
    (trial,) = (trial for trial in folder.journal.trials().values() if trial.test == "sweep")
    assert trial.reading.counts.received == trial.reading.counts.sent > MOST_FLOWS
    build(folder.path)
    files = [path for path in folder.path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST_FOLDER_BYTES


def test_more_flows_than_there_may_be_are_refused_with_the_limit() -> None:
    with pytest.raises(BenchFileError, match="1000000"):
        parse(SIMULATED.format(flows=MOST_FLOWS + 1).encode(), Path("bench.yaml"))


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_a_million_flows_come_over_a_real_cable_each_judged_by_itself() -> None:
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=400_000, duration_s=3.0, drain_s=0.2, settle_s=0.05, purpose=Purpose.AVERAGE
    )
    (reading,) = asyncio.run(readings("nb-test-flows", VETH, [(request, None)]))
    counts = reading.counts
    assert counts.received + counts.lost == counts.sent
    assert counts.sent > MOST_FLOWS
    assert counts.received > 0.9 * counts.sent  # a busy machine may lose some
    assert (counts.duplicated, counts.corrupted, counts.reordered) == (0, 0, 0)
