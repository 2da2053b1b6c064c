"""Folders of ours where frames are, on whichever clients see them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import HostError, NotReadyError
from nicbench.core.round import MOUNTS, OwnFolder
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_files import OwnFolders
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


@pytest.mark.parametrize(
    ("parent", "silent", "said", "step"),
    [
        ("/mnt/d1", False, "is gone", "mount it again"),
        ("/mnt/d1", True, "does not answer within 30 s", "mount it again"),
        (f"{MOUNTS}abc/1", False, "is gone", "the server of this share"),
    ],
)
async def test_a_directory_that_is_gone_is_told_with_its_host_and_what_failed_there(
    parent: str, silent: bool, said: str, step: str, tmp_path: Path
) -> None:
    own = OwnFolders(UndoStack("a-run", None, tmp_path / "runtime"))
    gone = folder("c0", Path(parent), 1)
    hosts = {"c0": Without("c0a", silent=silent)}
    with pytest.raises(HostError) as stopped:
        await own.require(hosts, [gone], "instance 1 on c0a: Input/output error")
    assert stopped.value.place == "c0a"
    assert stopped.value.message.startswith(f"the directory {gone.path} {said}")
    assert stopped.value.message.endswith("instance 1 on c0a: Input/output error")
    assert str(stopped.value.next_step).startswith(step)
    assert "nicbench resume" in str(stopped.value.next_step)


async def test_a_directory_that_does_not_answer_is_told_before_anything_is_made_in_it(tmp_path: Path) -> None:
    own = OwnFolders(UndoStack("a-run", None, tmp_path / "runtime"))
    with pytest.raises(NotReadyError, match=r"^c0a: the directory /mnt/d1 does not answer"):
        await own.make({"c0": Without("c0a", silent=True)}, [folder("c0", Path("/mnt/d1"), 1)])


class Without(LocalHost):
    """A host on which the directory is not there, or ``silent``: whoever asks for it waits."""

    def __init__(self, name: str, *, silent: bool) -> None:
        super().__init__(name)
        self._silent = silent

    async def run(self, command: Sequence[str], **options: Any) -> Completed:
        if self._silent:
            raise HostError(f"ip netns exec nb {' '.join(command)}: did not end within 30 s", place="local")
        return Completed(tuple(command), 1, "", "")
