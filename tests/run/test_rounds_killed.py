"""A run of workloads that is killed in the middle: nothing is left of it, and it goes on behind its rounds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.result import ResultVerdict
from nicbench.store.files import VARIABLE
from nicbench.store.folder import RunFolder

from .lab_bench import machine_state

pytestmark = pytest.mark.lab

BENCH = """
nicbench: 1
title: Killed
lab: {kind: clients, ports: 2, rate: 50 Mb/s}
dut: {kind: server}
monitor: off
tests: [{name: tcp, method: stream, at_once: [port], duration: 1 s}]
"""


def nicbench(*arguments: str, **environment: str) -> int:
    command = [sys.executable, "-m", "nicbench", *arguments, "--wait", "10min", "--no-report"]
    variables = {**os.environ, **environment}
    return subprocess.run(command, env=variables, check=False, capture_output=True).returncode


def test_a_killed_run_is_resumed_behind_its_rounds_and_leaves_nothing(tmp_path: Path) -> None:
    before = machine_state()
    bench = tmp_path / "bench.yaml"
    bench.write_text(BENCH)
    # run_started, testbed, test_started, the first round, its two results, and half of the second round
    assert nicbench("run", str(bench), "--output", str(tmp_path / "runs"), **{VARIABLE: "7:torn"}) == -9
    (path,) = (tmp_path / "runs").iterdir()
    kept = RunFolder.open(path).journal.rounds()
    assert len(kept) == 1
    assert nicbench("resume", str(path)) == 0
    folder = RunFolder.open(path)
    played = [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]
    assert [one.id for one in played] == ["r0001", "r0002"]
    assert [*kept.values()] == played[:1]
    summary = folder.summary()
    assert summary is not None
    assert summary.verdict in (ResultVerdict.VALID, ResultVerdict.DISTURBED)
    assert machine_state() == before
