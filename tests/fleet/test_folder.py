"""The folder of a fleet: what is done, what goes on, and what is tried again, whenever a job was killed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from nicbench.core.errors import BusyError, HostError, NicbenchError, NotReadyError, UsageError
from nicbench.core.events import RunFinished
from nicbench.core.result import ResultVerdict, Summary
from nicbench.fleet import FleetFolder
from nicbench.fleet.folder import MANIFEST, Array, Bound, Manifest, Task
from nicbench.fleet.jobs import prepare, try_again
from nicbench.store.files import json_text
from nicbench.store.folder import RunFolder

BOUND = Bound(machines={"tester": "n1"}, job="7")


@pytest.fixture
def fleet(tmp_path: Path) -> FleetFolder:
    task = Task(number=0, values={"bench": "a"}, repeat=1, bench="benches/000.yaml", roles={"tester": ()}, estimate_s=1)
    array = Array(name="f.0", first=0, numbers=(0,), nodes=1, constraint="", limit_min=3)
    manifest = Manifest(
        format="1.0",
        fleet="f",
        nicbench="0",
        made=datetime.now(UTC),
        joined_by=None,
        options={},
        tasks=(task,),
        arrays=(array,),
    )
    (tmp_path / MANIFEST).write_text(json_text(manifest))
    return FleetFolder.open(tmp_path)


def make_run(fleet: FleetFolder, *, complete: bool) -> Path:
    run = RunFolder.create(fleet.work(0), "nicbench: 1\n", "A run")
    run.journal.append(RunFinished(verdict=ResultVerdict.VALID, complete=complete))
    run.finish(Summary(title="A run", verdict=ResultVerdict.VALID))
    return run.path


def test_a_finished_run_that_was_not_moved_is_moved_by_the_next_job_and_not_made_again(fleet: FleetFolder) -> None:
    run = make_run(fleet, complete=True)
    fleet.note(0, BOUND)
    assert fleet.finished_run(0) is None
    assert prepare(fleet, 0, {}) is None
    assert fleet.finished_run(0) == fleet.runs / run.name
    assert prepare(fleet, 0, {}) is None


def test_a_run_that_was_noted_and_not_moved_is_not_finished(fleet: FleetFolder) -> None:
    run = make_run(fleet, complete=True)
    fleet.note(0, BOUND.replace(run=run.name))
    (fleet.runs / run.name).mkdir(parents=True)
    assert fleet.finished_run(0) is None


def test_an_interrupted_run_is_not_finished(fleet: FleetFolder) -> None:
    make_run(fleet, complete=False)
    fleet.note(0, BOUND)
    with pytest.raises(UsageError, match="this is no job of Slurm"):
        prepare(fleet, 0, {})
    assert fleet.finished_run(0) is None


def test_a_run_that_is_not_in_the_manifest_is_refused(fleet: FleetFolder) -> None:
    with pytest.raises(UsageError, match="there is no run 1\n  next: they go from 0 to 0"):
        prepare(fleet, 1, {})


def test_what_is_no_folder_of_a_fleet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"it holds no manifest\.json"):
        FleetFolder.open(tmp_path)


def test_a_damaged_manifest_is_named(fleet: FleetFolder) -> None:
    (fleet.path / MANIFEST).write_text("{")
    with pytest.raises(HostError, match=r"manifest\.json.*is damaged"):
        _ = fleet.manifest


@pytest.mark.parametrize(
    ("error", "restarts", "status"),
    [
        (NotReadyError("no huge pages"), 0, 3),
        (BusyError("in use"), 19, 3),
        (BusyError("in use"), 100, 4),
        (HostError("the DUT is gone"), 2, 3),
        (HostError("the DUT is gone"), 3, 4),
        (UsageError("wrong"), 0, 2),
    ],
)
def test_what_may_pass_is_tried_again_so_often(error: NicbenchError, restarts: int, status: int) -> None:
    ended = try_again(error, {"SLURM_RESTART_COUNT": str(restarts)})
    assert ended.exit_status == status
    assert error.message in str(ended)
