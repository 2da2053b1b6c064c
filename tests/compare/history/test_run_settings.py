"""The settings of a run: where its configurations differ, a figure stands at its own and not at those of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.main import main
from nicbench.compare.history.figures import RunSettings, settings_from, settings_of
from nicbench.store.folder import RunFolder

BENCH = """
nicbench: 1
title: Two queues
lab: {kind: simulated, capacity: 500 kpps, queue_frames: 256}
dut: {kind: simulated}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 20 %, maximum_trials: 4}
    trial: {duration: 100 ms, drain: 50 ms, settle: 10 ms}
configurations:
  short: {lab: {queue_frames: 16}}
  long: {lab: {queue_frames: 1024}}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bench.yaml").write_text(BENCH)
    assert main(["run", "bench.yaml", "--no-progress", "--no-report"]) == 0
    (folder,) = (path for path in Path("runs").iterdir() if path.is_dir())
    return folder.absolute()


def test_each_configuration_has_its_own_settings_and_all_have_what_they_share(run: Path) -> None:
    found = settings_of(RunFolder.open(run))
    assert found.every["lab.queue_frames"] == "16 / 1024"
    assert {name: found.get("lab.queue_frames", name) for name in ("short", "long")} == {"short": "16", "long": "1024"}
    assert {found.get("lab.capacity", name) for name in ("short", "long", "default")} == {"500000"}
    assert found.get("lab.nothing", "short") is None
    assert settings_from(found.text) == found


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"configurations": []}', '{"configurations": {"a": {"b": 1}}}', "[" * 100_000]
)
def test_what_cannot_be_settings_is_none(text: str) -> None:
    assert settings_from(text) is None


@pytest.mark.parametrize(("own", "told"), [({}, "1024"), ({"rings": "256"}, "256"), ({"rings": None}, None)])
def test_a_configuration_has_its_own_value_or_none_before_that_of_all(own: Mapping[str, Any], told: str | None) -> None:
    assert RunSettings({"rings": "1024"}, {"small": own}).get("rings", "small") == told
