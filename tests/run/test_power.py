"""A run of power on a simulated machine whose power is known: by the engine's frames, also killed and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result
from nicbench.stages import plan as plan_stage

from .simulated_bench import make_folder, measured, nothing_told, run_in_child, run_whole

JOULES = 800.0  # 7.9 W at 10 Mb/s
BENCH = f"""
nicbench: 1
title: Power
seed: 7
lab:
  kind: simulated
  link: 10 Mb/s
  power: {{idle_watts: 120, joules_per_gigabit: {JOULES:g}, noise_watts: 0.5, drift_watts_per_hour: 2}}
dut: {{kind: simulated}}
tests:
  - name: power
    method: power
    frame_bytes: [1518]
    loads: [100 %, 50 %]
    passes: 4
    confidence: 99 %
    trial: {{duration: 60 s, drain: 20 ms, settle: 5 ms}}
"""


def test_what_a_gigabit_costs_is_found_again_and_a_killed_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_stage, "collect", nothing_told)
    whole, killed = make_folder(tmp_path / "whole", BENCH), make_folder(tmp_path / "killed", BENCH)
    run_whole(whole)
    assert run_in_child(killed, kill_at="20:after") < 0
    run_whole(killed)
    assert measured(killed) == measured(whole)
    results = [Result.model_validate(each) for each in json.loads(measured(whole))["results"]]
    found = [each.values.get("joules_per_gigabit_above_idle_interval") for each in results]
    intervals = [each for each in found if isinstance(each, Bounded)]
    assert len(intervals) == 4  # two loads by two meters
    for interval, true in zip(intervals, 2 * [JOULES, 0.6 * JOULES], strict=True):
        assert interval.lower is not None
        assert interval.upper is not None
        assert interval.lower <= true <= interval.upper
