"""Real tools and a real stranger: it is distinguished and named, and the CPU time of the test itself is right."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.events import RoundFinished
from nicbench.core.result import ResultVerdict, Summary
from nicbench.core.round import MachineCpu, Placement, Round, RoundRequest
from nicbench.hosts.owner import MARK, owner_mark
from nicbench.measure.rounds import LiveRoundContext

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone]

BENCH = """
nicbench: 1
title: Streams beside a stranger
lab: {{kind: clients, reached_by: {reached_by}}}
dut: {{kind: server}}
thresholds: {{start_spread_share: 0.9, machine_steal_share: 0.9}}
tests:
  - {{name: throughput, method: stream, workload: {tool}, at_once: [port], duration: {duration_s} s}}
"""
STRANGER = "a-stranger"
ENGINE_S = 0.15
"""What `podman exec` takes for a command, which is counted as the test's."""
PLACES = ("server", "client", "both")
CPU_OF = {"server": 0, "client": 1}
# What the kernel accounts to the tool and all that it started (getrusage), a line for each process.
TIMED = """#!/bin/bash
TIMEFORMAT='%3U %3S'
{{ time {tool} "$@" 2>&3; }} 3>&2 2>>{folder}/times.$$
"""
# What the kernel's scheduler accounts to processes of this name and mark, until they end, wherever on this machine.
OBSERVER = """
import os, sys, time
name, mark, folder = sys.argv[1:]
seen, last = {}, 0.0
while not os.path.exists(folder + "/enough"):
    if time.monotonic() - last > 0.03:
        last = time.monotonic()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if pid not in seen and open(f"/proc/{pid}/comm").read().strip() == name:
                    if mark.encode() in open(f"/proc/{pid}/environ", "rb").read().split(bytes(1)):
                        seen[pid] = 0
            except OSError:
                pass
    for pid in seen:
        try:
            seen[pid] = max(seen[pid], int(open(f"/proc/{pid}/schedstat").read().split()[0]))
        except (OSError, IndexError):
            pass
    time.sleep(0.004)
print(sum(seen.values()))
"""


@contextmanager
def strangers(folder: Path, cpus: Sequence[int]) -> Iterator[None]:
    """A busy process on each of the CPUs that nobody of the test started: a child of the machine's first process."""
    program = folder / STRANGER
    shutil.copy("/bin/sh", program)
    loop = f"echo $$ >> {folder}/pids; exec {program} -c 'while :; do :; done'"
    # Before others of a busy machine, so that they are among the greatest.
    command = ["setsid", "--fork", "nice", "-n", "-20", "sh", "-c", loop]
    try:
        for cpu in cpus:
            bound = ["taskset", "-c", str(cpu), *command]
            subprocess.run(bound, check=True, env={"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while len(_pids(folder)) < len(cpus) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        for pid in _pids(folder):
            os.kill(pid, signal.SIGKILL)


def _pids(folder: Path) -> list[int]:
    found = folder / "pids"
    return [int(line) for line in found.read_text().split()] if found.exists() else []


def played(
    tmp_path: Path, tool: str = "iperf3", reached_by: str = "namespace", duration_s: int = 2
) -> tuple[Summary, list[Round]]:
    folder = make_folder(tmp_path, BENCH.format(tool=tool, reached_by=reached_by, duration_s=duration_s))
    summary = asyncio.run(run_async(folder))
    return summary, [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binds the server and the client of every job to a core each, as a bench file does on machines with NUMA nodes."""
    play = LiveRoundContext.play
    places = {f"{side}_placement": Placement(cpus=(cpu,)) for side, cpu in CPU_OF.items()}

    async def play_bound(context: LiveRoundContext, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        jobs = tuple(job.replace(**places) for job in request.jobs)
        return await play(context, point, request.replace(jobs=jobs))

    monkeypatch.setattr(LiveRoundContext, "play", play_bound)


@pytest.mark.skipif((os.cpu_count() or 1) < len(CPU_OF), reason="server and client need a core each")
@pytest.mark.usefixtures("bound")
@pytest.mark.parametrize("time_of_it", [0, *(pytest.param(n, marks=pytest.mark.acceptance) for n in range(1, 10))])
def test_a_round_beside_a_busy_stranger_is_not_valid_and_says_on_which_side_and_who_it_was(
    tmp_path: Path, time_of_it: int, draw: random.Random
) -> None:
    where = draw.choice(PLACES)
    sides = [side for side in CPU_OF if where in (side, "both")]
    with strangers(tmp_path, [CPU_OF[side] for side in sides]):
        summary, rounds = played(tmp_path, duration_s=1)
    assert all(result.verdict is ResultVerdict.DISTURBED for result in summary.results)
    for one in rounds:
        assert not one.verdict.valid
        of_sides = {
            side
            for side in CPU_OF
            for finding in one.verdict.findings
            if STRANGER in finding.text and f"to which the {side} is bound" in finding.text
        }
        assert of_sides == set(sides)


@contextmanager
def observed(tmp_path: Path, tool: str) -> Iterator[Callable[[], float]]:
    """Gives the CPU seconds that the kernel accounts to the tool's processes of this test, once it is over."""
    command = (sys.executable, "-c", OBSERVER, tool, f"{MARK}={owner_mark()}", str(tmp_path))
    observer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end() -> float:
        (tmp_path / "enough").touch()
        return int(observer.communicate(timeout=30)[0]) / 1e9

    try:
        yield end
    finally:
        observer.kill()
        observer.wait()


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("tool", "reached_by"),
    [
        ("iperf3", "namespace"),
        ("qperf", "namespace"),
        ("iperf3", "ssh"),
        ("iperf3", "container"),
        ("qperf", "container"),
    ],
)
def test_the_cpu_time_of_the_test_is_what_the_kernel_accounts_to_it_however_hosts_are_reached(
    tmp_path: Path, tool: str, reached_by: str, record_property: Callable[[str, object], None]
) -> None:
    if reached_by == "container" and shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    with observed(tmp_path, tool) as end:
        _, rounds = played(tmp_path, tool, reached_by)
        said_s = end()
    assert said_s > 0.2
    for machine, own_s in _own_s(
        rounds
    ).items():  # by ssh each host counts as a machine, and sees the whole of this one
        record_property("shown", f"{tool} by {reached_by}: {said_s:.3f} s by the kernel, {own_s:.3f} s by {machine}")
        assert own_s == pytest.approx(said_s, rel=0.05, abs=ENGINE_S * len(rounds) if reached_by == "container" else 0)


def _own_s(rounds: list[Round]) -> dict[str, float]:
    """CPU seconds of the test by machine."""
    sums = {}
    for one in rounds:
        for cpu in one.cpu:
            assert cpu.own is not None
            sums[cpu.machine] = sums.get(cpu.machine, 0.0) + cpu.own * (cpu.cpus or 0) * (cpu.counted_s or 0)
    return sums


QUIET = 0.01
"""Of the CPU time of a machine: with less that is neither the test's nor nicbench's a round is a quiet one."""
LEAST_QUIET = 20
QUIET_BENCH = """
nicbench: 1
title: Many short rounds
lab: {kind: clients, rate: 100 Mb/s}
dut: {kind: server}
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
tests:
  - {name: transfers, method: transfer, workload: nuttcp, transfer_bytes: [6 MB], write_bytes: [8 KiB],
     repetitions: 100}
"""


@pytest.mark.acceptance
def test_of_a_hundred_rounds_the_quiet_ones_stay_valid(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    folder = make_folder(tmp_path, QUIET_BENCH)
    asyncio.run(run_async(folder))
    rounds = [event.round for event in folder.journal.events() if isinstance(event, RoundFinished)]
    quiet = [one for one in rounds if _others(one.cpu[0]) < QUIET]
    false = [one for one in quiet if not one.verdict.valid]
    missed = [one for one in rounds if one.verdict.valid and _others(one.cpu[0]) > 0.10]
    words = f"{len(rounds)} rounds, {len(quiet)} quiet by /proc/stat, {len(false)} of them invalid"
    record_property("shown", f"{words}; {len(missed)} valid beside others that took more than 10 %")
    assert len(rounds) >= 100
    if len(quiet) < LEAST_QUIET:
        pytest.skip(f"{words}: the machine is too busy to tell")
    assert len(false) <= 0.05 * len(quiet), [finding.text for one in false for finding in one.verdict.findings]


def _others(cpu: MachineCpu) -> float:
    """Busy time by the monitor's samples of /proc/stat that is neither the test's nor nicbench's."""
    assert cpu.mean is not None
    assert cpu.nicbench is not None
    return cpu.mean - (cpu.of_test or 0.0) - cpu.nicbench


def test_the_cpu_time_of_the_test_is_what_the_kernel_accounts_to_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    tool = tmp_path / "bin" / "iperf3"
    tool.parent.mkdir()
    tool.write_text(TIMED.format(tool=shutil.which("iperf3"), folder=tmp_path))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    with strangers(tmp_path, [0]):
        _, rounds = played(tmp_path)
    said_s = sum(float(word) for file in tmp_path.glob("times.*") for word in file.read_text().split())
    (own_s,) = _own_s(rounds).values()
    record_property("shown", f"tools took {said_s:.3f} s by getrusage, {own_s:.3f} s by nicbench")
    assert said_s > 0.2
    assert own_s == pytest.approx(said_s, rel=0.05)
