"""A run killed at any moment resumes to the same result, byte for byte, and repeats no trial that was journaled."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nicbench.cli.main import main
from nicbench.stages import plan as plan_stage
from nicbench.store.folder import RunFolder
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.labs.simulated import SimulatedLab
from nicbench.tuning.changes import Changes

from .simulated_bench import make_folder, nothing_told, run_in_child, run_whole, trial_lines

pytestmark = pytest.mark.slow

MOMENTS = ("before", "torn", "after")


class Reference:
    """The run that nobody killed."""

    def __init__(self, folder: RunFolder, seconds: float) -> None:
        self.summary = (folder.path / "summary.json").read_bytes()
        self.trials = trial_lines(folder)
        self.writes = (folder.path / "journal.ndjson").read_bytes().count(b"\n")
        self.seconds = seconds


@pytest.fixture
def calibrating(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated lab, in a run and its children, lets the DUT stand for the sink and the cable it has not."""

    @asynccontextmanager
    async def there_is_one(self: SimulatedLab, testbed: Testbed, changes: Changes) -> AsyncIterator[bool]:
        yield True

    for name in ("without_dut", "cable"):
        monkeypatch.setattr(SimulatedLab, name, there_is_one)
    for name in ("has_sink", "has_cable"):
        monkeypatch.setattr(SimulatedLab, name, True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    folder = make_folder(tmp_path_factory.mktemp("whole"))
    began = time.monotonic()
    run_whole(folder)
    return Reference(folder, time.monotonic() - began)


def check_resumed(folder: RunFolder, reference: Reference) -> None:
    before = trial_lines(folder)
    assert run_in_child(folder) == 0
    again = RunFolder.open(folder.path)
    assert (again.path / "summary.json").read_bytes() == reference.summary
    assert trial_lines(again) == reference.trials
    assert trial_lines(again)[: len(before)] == before


def test_killed_before_its_results_were_written_it_resumes_to_the_same_bytes_and_measures_nothing(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path)
    run_whole(folder)
    kept = {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}
    for name in ("MANIFEST.json", "summary.json", "trials.parquet", "latency.hlog"):
        (folder.path / name).unlink()
    assert main(["resume", str(folder.path), "--no-report"]) == 0
    assert {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()} == kept


def test_the_reference_has_repeats_and_a_ceiling_so_that_resuming_meets_them(reference: Reference) -> None:
    assert any(not key.endswith("/0") for key in reference.trials)


@pytest.fixture
def _machine_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a test and their children do not ask the machine what it is; other tests of this file do."""
    monkeypatch.setattr(plan_stage, "collect", nothing_told)


@pytest.mark.usefixtures("_machine_untold")
@pytest.mark.parametrize("each", [48, pytest.param(1, marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_each_journal_write_it_resumes_to_the_same_bytes(
    moment: str, each: int, reference: Reference, session_seed: int, tmp_path: Path
) -> None:
    """At every 48th write: before, in or after it, from the one that the seed has. In acceptance at every write."""
    first = 1 + (2 * MOMENTS.index(moment) + session_seed) % each
    for write in range(first, reference.writes + 1, each):
        folder = make_folder(tmp_path)
        assert run_in_child(folder, kill_at=f"{write}:{moment}") == -signal.SIGKILL
        if moment == "torn":
            notes = [event.text for event in folder.journal.events() if event.event == "note"]
            assert any("cut short" in text for text in notes)
        check_resumed(folder, reference)


@pytest.mark.parametrize("times", [1, pytest.param(50, marks=pytest.mark.acceptance)])
def test_killed_at_random_moments_it_resumes_to_the_same_bytes(
    times: int, reference: Reference, draw: random.Random, tmp_path: Path
) -> None:
    for _ in range(times):
        folder = make_folder(tmp_path)
        run_in_child(folder, kill_after_s=draw.uniform(0.01, max(0.02, reference.seconds)))
        check_resumed(folder, reference)


@pytest.mark.usefixtures("calibrating", "_machine_untold")
@pytest.mark.parametrize("kills", [1, pytest.param(15, marks=pytest.mark.acceptance)])
def test_killed_in_its_calibration_it_resumes_to_the_same_bytes(
    kills: int, draw: random.Random, tmp_path: Path
) -> None:
    whole = make_folder(tmp_path)
    run_whole(whole)
    reference = Reference(whole, 0.0)
    calibration = list(itertools.takewhile(lambda key: key.startswith(("ceiling/", "cable/")), reference.trials))
    ids = [f"t{number:04}" for number in range(1, len(reference.trials) + 1)]
    assert len(calibration) == 2 * 3 + 1, "three floods at each of two sizes, and one over the cable, before any test"
    assert [trial.id for trial in whole.journal.trials().values()] == ids
    for write in draw.sample(range(1, 2 * len(calibration)), kills):  # each of them begins or ends one of its trials
        folder = make_folder(tmp_path)
        assert run_in_child(folder, kill_at=f"{write}:after") == -signal.SIGKILL
        check_resumed(folder, reference)
        assert [trial.id for trial in RunFolder.open(folder.path).journal.trials().values()] == ids
