"""The whole diagnosis: on a machine where nothing works it still gives an answer, and it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.registry import find
from nicbench.doctor.base import Examination, State, diagnose


@pytest.fixture(autouse=True)
def _no_cache_and_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NICBENCH_ENGINE_DIR", str(tmp_path))


def machine() -> FakeHost:
    """Every command succeeds without a word."""
    return FakeHost()


async def test_a_machine_where_every_command_fails_is_still_diagnosed() -> None:
    host = FakeHost()
    for command in ("unshare", "dpkg-query", "ip"):
        host.fail(command, "Operation not permitted")
    checks = {check.name: check for check in await diagnose(host)}
    assert checks["network namespaces"].state is State.MISSING
    assert "Operation not permitted" in checks["network namespaces"].text
    assert checks["veth pairs"].mend_command == "modprobe veth"
    assert checks["XDP programs"].state is State.MISSING
    assert checks["privileges"].state is State.MISSING
    assert checks["Debian packages (runtime)"].state is State.MISSING


async def test_every_missing_thing_that_a_command_fixes_names_it() -> None:
    checks = await diagnose(machine())
    lacking = [check for check in checks if check.state is State.MISSING]
    assert lacking
    assert all(check.mend_command for check in lacking if check.name != "AF_XDP sockets")


async def test_diagnosing_writes_no_file_and_changes_no_setting() -> None:
    host = machine()
    await diagnose(host)
    assert host.writes == []
    # Devices are made only in a namespace without a name, which ends with its shell.
    assert all(command[0] == "unshare" for command in host.commands if "ip link" in " ".join(command))


def test_every_examination_is_found() -> None:
    found = set(find("nicbench.doctor.checks", Examination))
    assert {"packages", "privileges", "kernel", "engine", "cores", "clock_source", "hypervisor"} <= found
    assert {"huge_pages", "locked_memory"} <= found
