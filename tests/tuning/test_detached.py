"""Servers in the background and mounts: they outlive whoever started them, and are ended by what is on record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost
from nicbench.tuning.detached import end_server, is_alive, is_mounted, start_command
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RemovePath, Unmount
from nicbench.tuning.undo.processes import EndServer


async def start(folder: Path, *command: str) -> str:
    known_by = str(folder / "server.pid")
    await LocalHost().run(start_command(known_by, str(folder / "server.log"), command))
    return known_by


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def pid_in(known_by: str) -> int:
    return int(Path(known_by).read_text().split()[0])


async def test_a_server_runs_on_by_itself_and_is_ended_with_what_it_started(tmp_path: Path) -> None:
    known_by = await start(tmp_path, "sh", "-c", f"sleep 1000 & echo $! >{tmp_path}/child; wait")
    assert await is_alive(LocalHost(), known_by)
    child = tmp_path / "child"
    while not child.exists() or not child.read_text().strip():
        assert await is_alive(LocalHost(), known_by)
    await end_server(LocalHost(), known_by)
    assert not await is_alive(LocalHost(), known_by)
    while runs(int(child.read_text())):
        pass


async def test_what_it_says_is_kept(tmp_path: Path) -> None:
    known_by = await start(tmp_path, "sh", "-c", "echo said; echo complained >&2")
    while await is_alive(LocalHost(), known_by):
        pass
    assert (tmp_path / "server.log").read_text() == "said\ncomplained\n"
    await end_server(LocalHost(), known_by)


async def test_another_process_that_has_its_number_by_now_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "1000"])
    try:
        known_by = tmp_path / "server.pid"
        known_by.write_text(f"{other.pid} 1\n")
        await end_server(LocalHost(), str(known_by))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


async def test_one_that_was_never_started_is_no_trouble(tmp_path: Path) -> None:
    await end_server(LocalHost(), str(tmp_path / "nothing"))
    assert not await is_alive(LocalHost(), str(tmp_path / "nothing"))


async def test_the_record_ends_it(tmp_path: Path) -> None:
    changes = UndoStack("nb-test", None, tmp_path / "run")
    known_by = str(tmp_path / "server.pid")

    async def apply() -> None:
        await start(tmp_path, "sleep", "1000")

    await changes.make(LocalHost(), EndServer(known_by=known_by), apply)
    assert pid_in(known_by) > 1
    assert await changes.undo_all() == []
    assert not await is_alive(LocalHost(), known_by)


async def test_only_a_whole_path_is_mounted() -> None:
    assert await is_mounted(LocalHost(), "/proc")
    assert not await is_mounted(LocalHost(), "/pro")


async def test_what_is_not_mounted_is_unmounted_without_a_word(tmp_path: Path) -> None:
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(LocalHost(), Unmount(path=str(tmp_path)), _nothing)
    assert await changes.undo_all() == []


async def test_a_folder_on_a_mount_whose_server_is_gone_is_no_trouble_once_that_is_unmounted(tmp_path: Path) -> None:
    host, mounted = FakeHost("h"), True

    def unmount(command: tuple[str, ...]) -> Completed:
        nonlocal mounted
        mounted = False
        return Completed(command, 0, "", "")

    host.answer("sh -c", unmount)
    host.answer("grep", lambda command: Completed(command, 0 if mounted else 1, "", ""))
    host.answer(
        "rm",
        lambda command: Completed(command, 1 if mounted and "1/ours" in command[-1] else 0, "", "Transport endpoint"),
    )
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(host, Unmount(path="/run/mounts/1"), _nothing)
    await changes.make(host, RemovePath(path="/run/mounts/1/ours"), _nothing)
    assert await changes.undo_all() == []
    assert all(entry.done for entry in changes.entries)


async def test_what_does_not_let_itself_be_unmounted_is_told(tmp_path: Path) -> None:
    host = FakeHost("h")  # says that everything is mounted, whatever is done
    host.fail("sh -c", "target is busy")
    changes = UndoStack("nb-test", None, tmp_path / "run")
    await changes.make(host, Unmount(path="/run/mounts/1"), _nothing)
    (trouble,) = await changes.undo_all()
    assert "could not undo (unmount path=/run/mounts/1)" in trouble
    assert "target is busy" in trouble


async def test_a_server_that_does_not_die_is_told() -> None:
    host = FakeHost("h")
    host.fail("sh -c", "process 7 does not die")
    with pytest.raises(HostError, match="process 7 does not die"):
        await end_server(host, "/run/x.pid")


async def _nothing() -> None:
    """Made by nobody."""
