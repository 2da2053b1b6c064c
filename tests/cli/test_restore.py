"""`nicbench restore`: which runs it knows, and the lock that a killed one leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.cli.commands import lab
from nicbench.hosts.owner import Owner, this_process
from nicbench.tuning.lock import LOCK_NAME, Holder
from nicbench.tuning.record import Record, record_path, save_record

RUN = "2020-01-01T000000Z-killed"


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """In the place of /run/nicbench."""
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setattr(lab, "RUNTIME_FOLDER", folder)
    return folder


def dead() -> Owner:
    me = this_process()
    return me.replace(start_ticks=me.start_ticks - 1)


def leave_lock(runtime: Path, run_id: str, owner: Owner) -> Path:
    path = runtime / LOCK_NAME
    path.write_text(Holder(run_id=run_id, owner=owner).model_dump_json())
    return path


@pytest.mark.parametrize("run", [RUN, f"runs/{RUN}", "./nothing/"])
def test_a_run_that_never_was_is_refused(run: str, nicbench: Any) -> None:
    ended = nicbench("restore", run)
    assert ended.status == 2
    assert "there is no such folder" in ended.stderr
    assert "nicbench list" in ended.stderr


def test_a_run_that_left_nothing_says_so(nicbench: Any, run_is: Callable[..., None], finished_run: Any) -> None:
    run_is(finished_run)
    nicbench("run", "bench.yaml")
    [folder] = Path("runs").iterdir()
    for reference in ("latest", folder.name, str(folder)):
        ended = nicbench("restore", reference)
        assert (ended.status, ended.stdout) == (0, f"{folder.name}: nothing to undo\n")


def test_a_run_is_known_by_its_record_where_its_folder_is_gone(runtime: Path, nicbench: Any) -> None:
    record = Record(run_id=RUN, owner=dead(), run_folder=None, started="now", entries=())
    save_record(record, record_path(runtime, RUN))
    assert nicbench("restore", RUN).status == 0
    assert not record_path(runtime, RUN).exists()


def test_the_lock_of_a_killed_run_is_removed(runtime: Path, nicbench: Any) -> None:
    leave_lock(runtime, RUN, dead())
    ended = nicbench("restore", RUN)
    assert ended.status == 0
    assert "lock of this machine was removed" in ended.stdout
    assert not runtime.exists()


@pytest.mark.parametrize("run_id", [RUN, "another-run"])
def test_the_lock_of_a_living_run_and_of_another_run_stay(run_id: str, runtime: Path, nicbench: Any) -> None:
    record = Record(run_id=RUN, owner=dead(), run_folder=None, started="now", entries=())
    save_record(record, record_path(runtime, RUN))
    lock = leave_lock(runtime, run_id, this_process() if run_id == RUN else dead())
    assert nicbench("restore", RUN).status == 0
    assert lock.exists()
