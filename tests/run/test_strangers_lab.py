"""Real tools beside a real stranger: it is told apart and named, and the CPU time of the test itself is right."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.result import ResultVerdict, Summary
from nicbench.core.round import Round

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone]

BENCH = """
nicbench: 1
title: Streams beside a stranger
lab: {kind: clients}
dut: {kind: server}
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
tests:
  - {name: throughput, method: stream, workload: iperf3, duration: 2 s}
"""
STRANGER = "a-stranger"
# What the kernel accounts to the tool and all that it started (getrusage), a line for each process.
TIMED = """#!/bin/bash
TIMEFORMAT='%3U %3S'
{{ time {tool} "$@" 2>&3; }} 3>&2 2>>{folder}/times.$$
"""


@contextmanager
def strangers(folder: Path, count: int) -> Iterator[None]:
    """Busy processes that nobody of the test started: children of the machine's first process, with no mark."""
    program = folder / STRANGER
    shutil.copy("/bin/sh", program)
    loop = f"echo $$ >> {folder}/pids; exec {program} -c 'while :; do :; done'"
    # Before others of a busy machine, so that they are among the greatest.
    command = ["setsid", "--fork", "nice", "-n", "-20", "sh", "-c", loop]
    try:
        for _ in range(count):
            subprocess.run(command, check=True, env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while len(_pids(folder)) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        for pid in _pids(folder):
            os.kill(pid, signal.SIGKILL)


def _pids(folder: Path) -> list[int]:
    found = folder / "pids"
    return [int(line) for line in found.read_text().split()] if found.exists() else []


def played(tmp_path: Path) -> tuple[Summary, list[Round]]:
    folder = make_folder(tmp_path, BENCH)
    summary = asyncio.run(run_async(folder))
    return summary, [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]


@pytest.mark.parametrize("time_of_it", [0, *(pytest.param(n, marks=pytest.mark.acceptance) for n in range(1, 10))])
def test_a_round_beside_a_busy_stranger_is_not_valid_and_says_who_it_was(tmp_path: Path, time_of_it: int) -> None:
    with strangers(tmp_path, os.cpu_count() or 1):
        summary, rounds = played(tmp_path)
    assert all(result.verdict is ResultVerdict.DISTURBED for result in summary.results)
    for one in rounds:
        (cpu,) = one.cpu
        assert not one.verdict.valid
        assert any("of the CPU time of local" in finding.text for finding in one.verdict.findings)
        assert STRANGER in {row.name for row in cpu.processes if row.user == "stranger"}


def test_the_cpu_time_of_the_test_is_what_the_kernel_accounts_to_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    tool = tmp_path / "bin" / "iperf3"
    tool.parent.mkdir()
    tool.write_text(TIMED.format(tool=shutil.which("iperf3"), folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    with strangers(tmp_path, 1):
        _, rounds = played(tmp_path)
    said_s = sum(float(word) for file in tmp_path.glob("times.*") for word in file.read_text().split())
    own_s = sum(cpu.own * cpu.cpus * cpu.counted_s for one in rounds for cpu in one.cpu if cpu.own)  # type: ignore[operator]
    record_property("shown", f"tools took {said_s:.3f} s by getrusage, {own_s:.3f} s by nicbench")
    assert said_s > 0.2
    assert own_s == pytest.approx(said_s, rel=0.05)
