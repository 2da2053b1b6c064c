"""A run with real packets is watched: its trials are whole samples, and what is written to disk outlives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.commands import run_tried
from tests.run.lab_bench import make_folder, run_bench, short, trials_of

from nicbench.store import RunFolder, monitor_samples

pytestmark = pytest.mark.lab

_PATIENCE_S = 60.0


@pytest.mark.sampled(4, of="labs in turn")
def test_each_trial_is_made_of_whole_samples_of_both_namespaces(tmp_path: Path) -> None:
    _, trials = run_bench(tmp_path, short("kernel-forward", trials=2))
    (folder,) = tmp_path.iterdir()
    (monitor,) = json.loads((folder / "plan.json").read_text())["monitors"]
    table = pq.read_table(folder / monitor_samples.NAME)
    assert set(filter(None, table["trial"].to_pylist())) == {trial.id for trial in trials}
    if monitor["paused"]:
        whole = table.filter(table["trial"].is_valid())
        moments = set(zip(whole["trial"].to_pylist(), whole["time_ns"].to_pylist(), strict=True))
        assert len(moments) == len(trials)
        assert len(table) > len(whole)
    rows = table.to_pylist()
    received = {row["of"]: row["value"] for row in rows if row["metric"] == "receive_packets" and row["trial"]}
    assert {name.rpartition("/")[2] for name in received if "/" in name} >= {"t0", "t1", "d0", "d1"}
    processes = {row["of"].partition(" ")[2] for row in rows if row["metric"] == "process_user_ns"}
    assert "nicbench-packet" in processes


@pytest.mark.sampled(4, of="labs in turn")
def test_what_was_sampled_before_a_kill_is_kept(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, short("kernel-forward", trials=4))
    command = [sys.executable, "-m", "nicbench", "resume", str(folder.path), "--no-report"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        end = time.monotonic() + _PATIENCE_S
        while not trials_of(folder) and time.monotonic() < end and run.poll() is None:
            time.sleep(0.1)
        os.kill(run.pid, signal.SIGKILL)
    finally:
        run.kill()
        run.wait()
        run_tried([sys.executable, "-m", "nicbench", "restore", folder.run_id])
    assert (folder.path / monitor_samples.LOG_NAME).is_file()
    kept = monitor_samples.read(RunFolder.open(folder.path).path, ("context_switches",))
    assert kept.table.num_rows > 0
