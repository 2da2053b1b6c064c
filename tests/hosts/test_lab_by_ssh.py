"""A lab on another machine (``on``): made, measured and removed by ssh; frames and workloads. Nothing is left there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import run_captured

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.core.result import Summary
from nicbench.run import run
from nicbench.store.folder import RunFolder

from .sshd_server import Server

pytestmark = pytest.mark.lab

FRAMES = """\
nicbench: 1
title: Frames on another machine
hosts: {rack: RACK}
lab: {kind: veth, on: rack}
dut: {kind: policer, rate: 5 kpps, burst: 100}
tester: {capture: {frames: 5}, per_flow: counts}
thresholds:
  {longest_gap_ms: 500, total_gap_share: 0.9, unsent_share: 0.2, dut_foreign_cpu_share: 0.99, dut_contended_share: 1.0,
   dut_pause_ms: 500}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [256]
    search: {goals: {NDR: 0 %}, precision: 20 %, maximum_trials: 3, trials_per_bound: 1}
    trial: {duration: 300 ms, drain: 100 ms, settle: 50 ms}
"""
RINGS = FRAMES.replace("kind: veth", "kind: memif").replace(
    "{kind: policer, rate: 5 kpps, burst: 100}", "{kind: reflector, huge_pages: false, memory: 128 MiB}"
)
ROUTER = RINGS.replace(
    "{kind: reflector, huge_pages: false, memory: 128 MiB}",
    "{kind: l3fwd, queues: 2, huge_pages: false, memory: 256 MiB}",
)
STREAMS = """\
nicbench: 1
title: Streams on another machine
hosts: {rack: RACK}
lab: {kind: clients, on: rack}
dut: {kind: server}
tests: [{name: stream, method: stream, workload: iperf3, at_once: [port], duration: 1 s}]
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "bench",
    [FRAMES, *(pytest.param(each, marks=pytest.mark.acceptance) for each in (RINGS, ROUTER)), STREAMS],
    ids=["frames", "rings", "l3fwd", "streams"],
)
async def test_a_lab_on_a_host_by_ssh_measures_and_leaves_nothing(sshd: Server, tmp_path: Path, bench: str) -> None:
    rack = {"kind": "ssh", **sshd.options().model_dump(mode="json", exclude_defaults=True)}
    before = _namespaces()
    folder = RunFolder.create(tmp_path, bench.replace("RACK", json.dumps(rack)), "lab")
    summary = await _run(folder)

    assert summary.results
    plan = folder.plan()
    assert plan.lab["on"] == "rack"
    assert any("the machine rack" in statement for statement in plan.statements)
    assert {monitor.host for monitor in plan.monitors} == {"rack"}
    assert _namespaces() == before
    written = {path.suffix for path in (folder.path / "raw").iterdir()}
    assert bench == STREAMS or written == {".pcapng", ".ndjson"}
    assert not list(Path("/run").glob("nicbench-files-*"))


async def _run(folder: RunFolder) -> Summary:
    bus = Bus()
    bus.subscribe(folder.journal.append)
    return await run(load(folder.path / "bench.yaml"), folder, bus)


def _namespaces() -> str:
    return run_captured(("ip", "netns", "list")).stdout
