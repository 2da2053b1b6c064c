"""The kernel's packet work goes first on the DUT's CPUs, and gets its old place back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.tuning.preparation import prefer_softirq_work
from nicbench.tuning.stack import UndoStack

STAT = "22 (ksoftirqd/1) S 2 0 0 0 -1 69238848 0 0 0 0 5 7 0 0 20 {nice} 1 0 17 0 0 0"


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost(files={"/proc/22/stat": STAT.format(nice=0)})
    host.answer(("pgrep", "-x", "ksoftirqd/1"), "22\n")
    return host


@pytest.fixture
def changes(tmp_path: Path) -> UndoStack:
    return UndoStack("run", tmp_path / "folder", tmp_path / "runtime")


async def test_it_is_raised_and_put_back(host: FakeHost, changes: UndoStack) -> None:
    host.answer(("renice",), "")
    assert await prefer_softirq_work(changes, host, (1,)) == {"ksoftirqd/1": -20}
    host.files["/proc/22/stat"] = STAT.format(nice=-20)
    assert await changes.undo_all() == []
    assert [command for command in host.commands if command[0] == "renice"] == [
        ("renice", "-n", "-20", "-p", "22"),
        ("renice", "-n", "0", "-p", "22"),
    ]


async def test_what_somebody_changed_since_is_left_alone(host: FakeHost, changes: UndoStack) -> None:
    host.answer(("renice",), "")
    await prefer_softirq_work(changes, host, (1,))
    host.files["/proc/22/stat"] = STAT.format(nice=-5)
    (trouble,) = await changes.undo_all()
    assert "left at nice -5" in trouble


async def test_where_the_thread_cannot_be_seen_nothing_is_set(changes: UndoStack) -> None:
    host = FakeHost()
    host.fail(("pgrep",), "")
    assert await prefer_softirq_work(changes, host, (1,)) == {}
