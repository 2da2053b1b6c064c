"""The folder of a run that broke off before anything was finished: there where somebody needs it, else gone."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.store import folder as store
from nicbench.store.files import storage_error

ROUNDS = """\
nicbench: 1
title: Streams
lab: {kind: clients}
dut: {kind: server}
tests: [{name: all, method: stream}]
"""


def fails(error: NicbenchError, *, output: bool) -> Callable[..., Any]:
    async def fail(bench: Any, folder: Any, *_: Any) -> None:
        if output:
            (folder.raw / "r0001").mkdir(parents=True)
            (folder.raw / "r0001" / "1-iperf3.err").write_text("Connection refused")
        raise error

    return fail


def runs() -> list[Path]:
    return list(Path("runs").glob("*-*"))


def test_what_a_tool_wrote_is_kept_and_the_next_step_goes_on(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(HostError("the host is gone", place="c0"), output=True))
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert (path / "raw" / "r0001" / "1-iperf3.err").is_file()
    assert f"next: nicbench resume {path.resolve()}" in ended.stderr


@pytest.mark.parametrize(
    "error",
    [
        HostError("a job failed", next_step="mend it, `nicbench resume` goes on"),
        HostError("a job failed", next_step="what it wrote is kept in the run folder's raw"),
        storage_error(OSError(errno.ENOSPC, "No space left on device"), Path("plan.json")),
    ],
    ids=["to be resumed", "to be looked at", "full disk"],
)
def test_a_folder_that_the_message_sends_to_is_there(
    error: NicbenchError, nicbench: Any, run_is: Callable[..., None], finished_run: Any
) -> None:
    run_is(fails(error, output=False))
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert f"nicbench resume {path.resolve()}" in ended.stderr
    run_is(finished_run)
    assert nicbench("resume", str(path)).status == 0


def test_what_was_measured_before_an_error_is_shown_with_its_report(
    nicbench: Any, run_is: Callable[..., None], one_result: Callable[..., None]
) -> None:
    async def broken(bench: Any, folder: Any, bus: Any) -> None:
        one_result(bench, folder, bus)
        raise HostError("the host is gone", place="c0")

    run_is(broken)
    ended = nicbench("run", "bench.yaml")
    [path] = runs()
    assert ended.status == 4
    assert "incomplete" in ended.stdout
    assert "DUT" in ended.stdout
    assert f"report of what was measured: {path.resolve() / 'report.html'}" in ended.stderr
    assert (path / "report.html").is_file()


def test_a_run_that_was_refused_leaves_no_folder_and_speaks_of_none(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(NotReadyError("clang is missing", next_step="apt-get install clang"), output=False))
    ended = nicbench("run", "bench.yaml")
    assert not runs()
    assert "resume" not in ended.stderr


def test_resuming_never_removes_a_folder(nicbench: Any, run_is: Callable[..., None]) -> None:
    run_is(fails(HostError("a job failed", next_step="`nicbench resume` goes on"), output=False))
    nicbench("run", "bench.yaml")
    [path] = runs()
    run_is(fails(NotReadyError("clang is missing"), output=False))
    assert nicbench("resume", str(path)).status == 3
    assert path.is_dir()


def test_of_workloads_rounds_are_kept_be_they_none(nicbench: Any, run_is: Callable[..., None]) -> None:
    Path("bench.yaml").write_text(ROUNDS)
    run_is(fails(HostError("the host is gone", place="c0"), output=True))
    nicbench("run", "bench.yaml")
    [path] = runs()
    assert "0 rounds are kept" in nicbench("resume", str(path)).stderr


def test_a_disk_that_is_full_at_once_leaves_no_folder_and_says_what_to_do(
    nicbench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        error = OSError(errno.ENOSPC, "No space left on device")
        raise storage_error(error, path) from error

    monkeypatch.setattr(store, "write_atomically", full)
    ended = nicbench("run", "bench.yaml")
    assert ended.status == 4
    assert "a run folder cannot be made here: No space left on device" in ended.stderr
    assert "resume" not in ended.stderr
    assert not runs()
