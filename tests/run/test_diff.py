"""Whole runs on two settings, laid side by side: the setting that was changed is named first."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.main import main
from nicbench.compare.run_differences import find_differences
from nicbench.stages import plan as plan_stage
from nicbench.store.folder import RunFolder

from .simulated_bench import run_whole

BENCH = """
nicbench: 1
title: Compared
lab: {kind: simulated, capacity: 40 kpps, queue_frames: 16}
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {PDR: 0.5 %}, precision: 10 %, maximum_trials: 2, trials_per_bound: 1}
    trial: {duration: 50 ms, drain: 10 ms, settle: 1 ms}
"""


def real_run(parent: Path, governor: str, monkeypatch: pytest.MonkeyPatch, bench: str = BENCH) -> RunFolder:
    """A whole run on simulated ports; of the machine only the governor is reported, for other tests change the rest."""

    async def told(*_: Any) -> dict[str, Any]:
        facts = {"core_clock_policy": {"governor": [governor]}, "memory": {"available_bytes": time.monotonic_ns()}}
        return {"tester": facts, "dut": facts}

    monkeypatch.setattr(plan_stage, "collect", told)
    run = RunFolder.create(parent, bench, "Compared")
    run_whole(run)
    return run


def test_a_setting_that_only_the_inventory_tells_of_is_named_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [real_run(tmp_path, value, monkeypatch) for value in ("performance", "powersave")]
    assert main(["diff", *(str(run.path) for run in runs), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["differences"][0]["path"] == "inventory.core_clock_policy.governor"
    assert document["differences"][0]["values"] == [["performance"], ["powersave"]]
    assert document["equal"] is False


def test_equal_runs_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [real_run(tmp_path, "performance", monkeypatch) for _ in range(2)]
    assert find_differences(*runs).settings == ()
    assert main(["diff", *(str(run.path) for run in runs)]) == 0
    assert "were made the same way, with the same settings" in capsys.readouterr().out


def test_many_differences_are_folded_to_counts_within_80_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = BENCH.replace("queue_frames: 16", "queue_frames: 64, loss: 1 %, duplicate: 1 %, jitter: 5 us, reorder: 1 %")
    runs = [
        real_run(tmp_path, "performance", monkeypatch, bench=BENCH),
        real_run(tmp_path, "powersave", monkeypatch, bench=other),
    ]
    assert main(["diff", *(str(run.path) for run in runs)]) == 0
    brief = capsys.readouterr().out
    assert max(map(len, brief.splitlines())) <= 80
    assert "The testbed: what is wired, and which CPU does what" in brief
    assert re.search(r"^  and \d+ more$", brief, re.MULTILINE)
    assert "`--all`" in brief
    assert brief.index("The testbed") < brief.index("inventory.core_clock_policy.governor")
    assert main(["diff", *(str(run.path) for run in runs), "--all"]) == 0
    whole = capsys.readouterr().out
    assert {f"lab.{name}" for name in ("queue_frames", "loss", "duplicate", "jitter", "reorder")} <= set(whole.split())
    assert " more" not in whole
