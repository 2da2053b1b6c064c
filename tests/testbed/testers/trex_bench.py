"""Bench files for TRex's stand-in, and what comes of running them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from nicbench import report
from nicbench.cli.main import main
from nicbench.core.result import Bounded, Result
from nicbench.store.folder import RunFolder

FAKE = Path(__file__).parent / "fake_trex"
NICBENCH = Path(sys.executable).with_name("nicbench")
HEAD = f"""
nicbench: 1
title: TRex before a switch {os.getpid()} # runs of a second with one title would be one run
tester: {{{{kind: trex, client: {FAKE}, latency_rate: 500 pps, {{tester}}}}}}
dut: {{{{kind: external}}}}
thresholds: {{{{tester_overtime_share: 9}}}} # a machine of tests is busy, and trials are short
traffic: {{{{flows: 8, {{traffic}}}}}}
tests:
"""
THROUGHPUT = """
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{kind: {search}, precision: 5 %, maximum_trials: 30, validation: 0 s}}
    trial: {{duration: 50 ms, drain: 0 s, settle: 0 s}}
"""
HALF_A_SECOND = """
  - name: loss
    method: load-sweep
    loads: [10 %]
    frame_bytes: [64]
    trial: {duration: 500 ms, drain: 0 s, settle: 0 s}
"""
LATENCY = """
  - name: latency
    method: latency
    at: throughput
    loads: [50 %]
    frame_bytes: [64]
    trial: {duration: 200 ms, drain: 0 s, settle: 0 s}
"""
LOSS = """
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    trial: {duration: 50 ms, drain: 0 s, settle: 0 s}
"""


def bench(tests: str, *, tester: str = "ports: [0, 1]", traffic: str = "ip: 4", search: str = "mlr") -> str:
    return HEAD.format(tester=tester, traffic=traffic) + tests.replace("{search}", search).replace("{{", "{").replace(
        "}}", "}"
    )


def run(folder: Path, text: str, *, with_report: bool = False) -> tuple[int, RunFolder | None]:
    """The exit status, and the run folder if there is one; no report, which takes longer than the run, unless asked."""
    (folder / "bench.yaml").write_text(text)
    options = ["--no-progress"] if with_report else ["--no-progress", "--no-report"]
    status = main(["run", str(folder / "bench.yaml"), "--output", str(folder / "runs"), *options])
    kept = sorted((folder / "runs").glob("*/")) if (folder / "runs").exists() else []
    return status, RunFolder.open(kept[0]) if kept else None


def results(folder: RunFolder | None) -> tuple[Result, ...]:
    summary = folder.summary()
    return summary.results


def rate(result: Result, name: str = "ndr_frames_per_s") -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


def page(folder: RunFolder | None) -> str:
    path = folder.path / "report.html"
    return (path if path.exists() else report.build(folder.path)).read_text()


def owners(trex: Any) -> list[str]:
    return [port.owner for port in trex.SERVER.ports.values()]
