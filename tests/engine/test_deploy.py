"""A binary on another host: the same one, in a folder where nobody else could have put another."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.engine.binaries import deploy_file
from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost


class _Elsewhere(LocalHost):
    """A host that does not share our files, as far as it says; counts what is copied to it."""

    copies = 0

    @property
    def shares_files(self) -> bool:
        return False

    async def put(self, local: Path, remote: str, mode: int = 0o644) -> None:
        self.copies += 1
        await super().put(local, remote, mode)


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text("#!/bin/sh\necho runs\n")
    return path


async def test_on_this_machine_it_is_started_where_it_is(binary: Path) -> None:
    assert await deploy_file(LocalHost(), binary) == str(binary)


async def test_it_is_copied_once_and_again_only_when_it_has_changed(binary: Path, tmp_path: Path) -> None:
    host, folder = _Elsewhere(), str(tmp_path / "cache")
    first = await deploy_file(host, binary, folder)
    again = await deploy_file(host, binary, folder)
    binary.write_text("#!/bin/sh\necho other\n")
    other = await deploy_file(host, binary, folder)

    assert (first, host.copies) == (again, 2)
    assert [(await host.run((path,))).stdout for path in (first, other)] == ["runs\n", "other\n"]
    assert Path(first).stat().st_mode & 0o777 == 0o700


async def test_what_somebody_made_of_it_is_replaced(binary: Path, tmp_path: Path) -> None:
    host, folder = _Elsewhere(), str(tmp_path / "cache")
    path = Path(await deploy_file(host, binary, folder))
    path.write_text("planted")

    assert await deploy_file(host, binary, folder) == str(path)
    assert path.read_text() == binary.read_text()


async def test_a_folder_of_ours_that_others_may_only_read_becomes_ours_alone(binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o755)
    path = await deploy_file(_Elsewhere(), binary, str(folder))
    assert Path(path).read_text() == binary.read_text()
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("how", ["anybody may write to it", "it is a link", "it is a file"])
async def test_a_folder_in_which_somebody_else_may_write_is_refused(how: str, binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    if how == "it is a file":
        folder.write_text("")
    elif how == "it is a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(NotReadyError, match="is not ours alone"):
        await deploy_file(_Elsewhere(), binary, str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user needs root")
async def test_a_folder_of_somebody_else_is_refused(binary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(NotReadyError, match="owner 65534"):
        await deploy_file(_Elsewhere(), binary, str(folder))


async def test_a_host_that_changes_what_it_gets_is_told_of(binary: Path, tmp_path: Path) -> None:
    class Spoiling(_Elsewhere):
        async def run(
            self,
            command: Sequence[str],
            *,
            input_text: str | None = None,
            timeout_s: float = 30.0,
            check: bool = True,
            environment: Mapping[str, str] | None = None,
        ) -> Completed:
            for path in (tmp_path / "cache").glob("engine-*"):
                path.write_text("spoilt")
            return await super().run(command, check=check)

    with pytest.raises(NotReadyError, match="differs from what was copied"):
        await deploy_file(Spoiling(), binary, str(tmp_path / "cache"))
