"""Folders of ours where frames are, on whichever clients see them."""

from __future__ import annotations

from pathlib import Path

from nicbench.hosts.local import LocalHost
from nicbench.model.round import OwnFolder
from nicbench.rounds.folders import OwnFolders
from nicbench.tuning.stack import UndoStack


def folder(client: str, parent: Path, instance: int) -> OwnFolder:
    return OwnFolder(endpoint=client, parent=str(parent), name=f"nicbench-a-run/editors-{instance}", needed_bytes=1)


async def test_two_clients_may_work_in_one_directory_that_both_of_them_see(tmp_path: Path) -> None:
    changes = UndoStack("a-run", None, tmp_path / "runtime")
    shared = tmp_path / "shared"
    shared.mkdir()
    hosts = {name: LocalHost(name) for name in ("c0", "c1")}
    await OwnFolders(changes).make(hosts, [folder(name, shared, each) for each, name in enumerate(hosts)])
    assert sorted(path.name for path in (shared / "nicbench-a-run").iterdir()) == ["editors-0", "editors-1"]
    assert await changes.undo_all() == []
    assert list(shared.iterdir()) == []
