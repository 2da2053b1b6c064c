"""Files for transfers: room first, the removal written down before the file is there, nothing overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_files import RoundFiles
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.undo.files import RemovePath


def stack(folder: Path) -> UndoStack:
    return UndoStack("r1", None, folder / "runtime")


async def test_a_source_is_filled_and_gone_after_the_undo(tmp_path: Path) -> None:
    changes = stack(tmp_path)
    path = Path(await RoundFiles(changes).make(LocalHost("local"), str(tmp_path), "c0-source", 100_000, filled=True))
    assert path == tmp_path / "nicbench-r1-c0-source"
    assert path.stat().st_size == 100_000
    assert len(set(path.read_bytes())) == 256  # random: a file system cannot make it smaller
    assert await changes.undo_all() == []
    assert not path.exists()


async def test_a_sink_is_empty_and_may_be_made_again_after_its_removal(tmp_path: Path) -> None:
    changes, host = stack(tmp_path), LocalHost("local")
    files = RoundFiles(changes)
    for _ in range(2):
        path = await files.make(host, str(tmp_path), "s0-sink", 100_000, filled=False)
        assert Path(path).stat().st_size == 0
        await files.remove(host, path)
        assert not Path(path).exists()
    assert [entry.undo for entry in changes.entries] == [RemovePath(path=path)]
    await changes.undo_all()


async def test_a_file_that_is_there_already_is_never_written_over(tmp_path: Path) -> None:
    changes = stack(tmp_path)
    theirs = tmp_path / "nicbench-r1-c0-source"
    theirs.write_text("kept")
    with pytest.raises(NotReadyError, match="is there already and is left alone"):
        await RoundFiles(changes).make(LocalHost("local"), str(tmp_path), "c0-source", 10, filled=True)
    await changes.undo_all()
    assert theirs.read_text() == "kept"


async def test_without_the_folder_the_next_step_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match="there is no folder /nowhere/x") as told:
        await RoundFiles(stack(tmp_path)).make(LocalHost("local"), "/nowhere/x", "a", 10, filled=True)
    assert "mkdir -p /nowhere/x" in str(told.value.next_step)


async def test_without_room_nothing_is_written(tmp_path: Path) -> None:
    host, changes = FakeHost("h"), stack(tmp_path)
    host.answer("sh -c", "1000000\n")
    with pytest.raises(NotReadyError, match="1000000 bytes free"):
        await RoundFiles(changes).make(host, "/data", "a", 1_000_000, filled=True)
    assert changes.entries == ()
    assert len(host.commands) == 1
