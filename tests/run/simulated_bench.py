"""A small bench file on the simulated lab, and runs of it: whole, killed, resumed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from nicbench.bench_file import load
from nicbench.core.events import Bus, TrialFinished
from nicbench.run import run
from nicbench.store.folder import RunFolder

# Little traffic, so that a run takes well under a second; pauses, so that trials of the sweep are repeated.
BENCH = """
nicbench: 1
title: Killed and resumed
seed: 7
lab:
  kind: simulated
  capacity: 40 kpps
  queue_frames: 16
  delay: 20 us
  tester_ceiling: 120 kpps
  pause_every: 200 ms
  pause: 25 ms
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64, 512]
    search: {kind: mlr, precision: 4 %, maximum_trials: 8}
    trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}
  - name: latency
    method: latency
    at: throughput
    loads: [50 %]
    frame_bytes: [64]
    trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}
  - name: sweep
    method: load-sweep
    of: 115 kpps
    loads: [100 %, 95 %]
    frame_bytes: [64, 512]
    trial: {duration: 300 ms, drain: 20 ms, settle: 5 ms}
"""

# Two configurations, twice each: the second DUT loses frames at random at half the capacity.
COMPARED = """
nicbench: 1
title: Compared, killed and resumed
seed: 7
runs: 2
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us, pause_every: 350 ms, pause: 25 ms}
dut: {kind: simulated}
configurations:
  fast:
  slow:
    lab: {capacity: 20 kpps, loss: 0.01 %}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {PDR: 0.5 %}, precision: 10 %, maximum_trials: 4, trials_per_bound: 1}
    trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}
  - name: latency
    method: latency
    at: throughput
    of: PDR
    loads: [50 %]
    frame_bytes: [64]
    trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}
"""

# Two configurations, one run each to warm up, then as many as it takes: frames are lost at random, so the runs differ.
GROWING = """
nicbench: 1
title: Repeated until the mean is known
seed: 7
runs: {warm_up: 1, at_least: 2, at_most: 8, until: 0.8 %}
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16, delay: 20 us, loss: 1 %}
dut: {kind: simulated}
configurations:
  fast:
  slow:
    lab: {capacity: 20 kpps}
tests:
  - name: sweep
    method: load-sweep
    of: 30 kpps
    loads: [50 %]
    frame_bytes: [64]
    trial: {duration: 100 ms, drain: 20 ms, settle: 5 ms}
"""


async def nothing_told(*_: object, **__: object) -> dict[str, dict[str, object]]:
    """In the place of ``stages.plan.collect``, whose dozens of commands take longer than the rest of such a run."""
    return {"tester": {}, "dut": {}}


def make_folder(parent: Path, bench: str = BENCH) -> RunFolder:
    """A fresh run folder with the bench file."""
    return RunFolder.create(parent, bench, "Killed and resumed")


def run_whole(folder: RunFolder) -> None:
    """Runs, or resumes, to the end in this process."""
    bus = Bus()
    bus.subscribe(folder.journal.append)
    asyncio.run(run(load(folder.path / "bench.yaml"), folder, bus))


def run_in_child(folder: RunFolder, kill_at: str | None = None, kill_after_s: float | None = None) -> int:
    """Runs in a forked process that is killed at a journal write or after a time; its exit status, negative: signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if kill_at is not None:
                os.environ["NICBENCH_TEST_KILL_AT_JOURNAL_WRITE"] = kill_at
            if kill_after_s is not None:
                signal.setitimer(signal.ITIMER_REAL, kill_after_s)
                signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            run_whole(RunFolder.open(folder.path))
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Reference:
    """The run that nobody killed."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.summary = measured(folder)
        self.trials = trial_lines(folder)
        self.events = list(folder.journal.events())


def trial_lines(folder: RunFolder) -> list[str]:
    """The key of every trial line of the journal, in order."""
    return [event.trial.key for event in folder.journal.events() if isinstance(event, TrialFinished)]


def measured(folder: RunFolder) -> str:
    """summary.json to the last byte, but for the resampled intervals: their seed is of the run's own id."""
    summary = json.loads((folder.path / "summary.json").read_text(encoding="utf-8"))
    for result in summary.get("over_runs", ()):
        for value in result["values"].values():
            statistics = value.get("statistics", {}) if isinstance(value, dict) else {}
            for interval in ("median_interval", "mean_interval"):
                statistics.pop(interval, None)
    return json.dumps(summary)
