"""Files are copied whole or not at all: directly on this machine, and as text where a host has no better way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost


@pytest.mark.parametrize("how", [LocalHost, Host], ids=["directly", "as text"])
async def test_a_file_arrives_whole_with_its_mode_and_comes_back(how: type[Host], tmp_path: Path) -> None:
    host, content = LocalHost(), os.urandom(300_001)
    (tmp_path / "given").write_bytes(content)
    await how.put(host, tmp_path / "given", str(tmp_path / "there"), 0o750)
    await how.get(host, str(tmp_path / "there"), tmp_path / "back")

    assert (tmp_path / "there").read_bytes() == (tmp_path / "back").read_bytes() == content
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("how", [LocalHost, Host], ids=["directly", "as text"])
async def test_what_cannot_be_copied_leaves_nothing(how: type[Host], tmp_path: Path) -> None:
    (tmp_path / "given").write_text("text")
    with pytest.raises(HostError, match=r"cannot copy .*No such file or directory"):
        await how.put(LocalHost(), tmp_path / "given", str(tmp_path / "no" / "folder"))
    with pytest.raises(HostError, match=r"cannot copy .*No such file or directory"):
        await how.get(LocalHost(), str(tmp_path / "missing"), tmp_path / "never")

    assert [path.name for path in tmp_path.iterdir()] == ["given"]


async def test_a_namespace_has_the_files_of_its_machine(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("text")
    inner = FakeHost()
    await NetnsHost(inner, "lab").put(tmp_path / "given", "/there", 0o755)

    assert (inner.files, inner.modes) == ({"/there": "text"}, {"/there": 0o755})
