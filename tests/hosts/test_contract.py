"""What every host promises, of this machine and of one by ssh: bounded, killed in time, files whole or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Host, Process
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.owner import start_ticks

from .ending import until


class ByText(LocalHost):
    """It copies as a host without a better way does."""

    put, get = Host.put, Host.get


@pytest.fixture(params=["local", "ssh"])
def host(request: pytest.FixtureRequest) -> Host:
    return LocalHost() if request.param == "local" else request.getfixturevalue("sshd").host()


@pytest.fixture(params=["local", "text", "ssh"])
def copying_host(request: pytest.FixtureRequest) -> Host:
    kinds = {"local": LocalHost, "text": ByText}
    return kinds[request.param]() if request.param in kinds else request.getfixturevalue("sshd").host()


async def _write_much(process: Process) -> None:
    for _ in range(100):
        await process.write_line("x" * 100_000)


async def until_ended(pid: int | Path) -> None:
    number = int(pid.read_text()) if isinstance(pid, Path) else pid
    await until(lambda: start_ticks(number) is None)


async def test_a_command_gives_its_output_and_status(host: Host) -> None:
    done = await host.run(("sh", "-c", "cat; echo oops >&2; exit 3"), input_text="hello", check=False)

    assert (done.status, done.stdout, done.stderr) == (3, "hello", "oops\n")


async def test_a_failing_command_is_an_error_that_says_what_and_why(host: Host) -> None:
    with pytest.raises(HostError, match=r"sh -c .*exit status 3: oops"):
        await host.run(("sh", "-c", "echo oops >&2; exit 3"))


async def test_a_command_that_is_not_installed_is_named(host: Host) -> None:
    with pytest.raises(NotReadyError, match="no-such-command: command not found"):
        await host.run(("no-such-command",))


async def test_a_command_that_does_not_end_is_killed_with_what_it_started(host: Host, tmp_path: Path) -> None:
    # `timeout` puts its child into a process group of its own.
    child = "sleep 61" if isinstance(host, LocalHost) else "timeout 60 sleep 61"
    with pytest.raises(HostError, match="did not end within"):
        await host.run(("sh", "-c", f"{child} & echo $! > {tmp_path}/pid; wait"), timeout_s=2)

    await until_ended(tmp_path / "pid")


async def test_endless_output_is_cut_off_and_ended(host: Host, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="bytes of output"):
        await host.run(("sh", "-c", f"echo $$ > {tmp_path}/pid; exec yes"))

    await until_ended(tmp_path / "pid")


async def test_a_cancelled_command_is_killed(host: Host, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    task = asyncio.create_task(host.run(("sh", "-c", f"echo $$ > {pid_file}; exec sleep 60")))
    await until(lambda: pid_file.exists() and pid_file.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await until_ended(pid_file)


async def test_a_process_is_talked_to_line_by_line(host: Host) -> None:
    process = await host.start(("sh", "-c", "read x; echo got $x; echo last words >&2; exit 5"))
    await process.write_line("hello")

    assert await process.read_line(10.0) == "got hello"
    assert await process.read_line(10.0) is None
    assert await process.wait(10.0) == 5
    assert process.stderr_tail() == "last words"


async def test_writing_to_a_process_that_has_ended_is_an_error_with_its_last_words(host: Host) -> None:
    process = await host.start(("sh", "-c", "echo no more >&2; exit 1"))
    await process.wait(10.0)
    with pytest.raises(HostError, match="no more"):
        await _write_much(process)


async def test_a_silent_process_is_an_error_and_is_ended_with_its_children(host: Host) -> None:
    process = await host.start(("sh", "-c", "sleep 1000 & echo $!; wait"))
    child = int(await process.read_line(10.0) or "")
    with pytest.raises(HostError, match=r"sh -c .*: silent for"):
        await process.read_line(0.1)
    await process.signal(signal.SIGKILL)

    assert await process.wait(10.0) == -signal.SIGKILL
    await until_ended(child)
    await process.signal(signal.SIGKILL)  # nothing happens any more


async def test_the_child_of_a_process_that_was_killed_alone_is_killed_too(host: Host) -> None:
    process = await host.start(("sh", "-c", "sleep 1000 & echo $!; wait"))
    child = int(await process.read_line(10.0) or "")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)

    assert await process.wait(10.0) == -signal.SIGKILL
    await until_ended(child)


async def test_files_are_read_and_written_and_a_missing_one_is_none(host: Host, tmp_path: Path) -> None:
    await host.write_file(str(tmp_path / "file"), "text")

    assert await host.read_file(str(tmp_path / "file")) == "text"
    assert await host.read_file(str(tmp_path / "missing")) is None
    with pytest.raises(HostError, match=r"cannot write 'x' to .*No such file or directory"):
        await host.write_file(str(tmp_path / "no" / "folder"), "x")


async def test_a_file_arrives_whole_with_its_mode_and_comes_back(copying_host: Host, tmp_path: Path) -> None:
    content = os.urandom(1_000_001)
    (tmp_path / "given").write_bytes(content)
    await copying_host.put(tmp_path / "given", str(tmp_path / "there"), 0o750)
    await copying_host.get(str(tmp_path / "there"), tmp_path / "back")

    assert (tmp_path / "there").read_bytes() == (tmp_path / "back").read_bytes() == content
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o750


async def test_what_cannot_be_copied_leaves_nothing(copying_host: Host, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("text")
    with pytest.raises(HostError, match=r"cannot copy .*No such file or directory"):
        await copying_host.put(tmp_path / "given", str(tmp_path / "no" / "folder"))
    with pytest.raises(HostError, match=r"cannot copy .*No such file or directory"):
        await copying_host.get(str(tmp_path / "missing"), tmp_path / "never")

    assert [path.name for path in tmp_path.iterdir()] == ["given"]
