"""This machine and its network namespaces as hosts."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_checked
from tests.fakes import FakeHost
from tests.hosts.ending import until, wait_until

from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.hosts import host_from_spec
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.owner import MARK, owner_mark, start_ticks

# The local host, beyond ``test_contract.py``: it never outlives the controller.


async def test_what_it_starts_bears_the_mark_of_this_controller_and_so_do_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(MARK, "of another nicbench, in which this one runs")
    done = await LocalHost().run(("sh", "-c", f"sh -c 'echo ${MARK}'"))
    assert done.stdout == f"{owner_mark()}\n"


async def test_a_command_that_is_not_installed_points_at_doctor() -> None:
    with pytest.raises(NotReadyError) as caught:
        await LocalHost().run(("no-such-command",))

    assert "no-such-command: command not found" in str(caught.value)
    assert "nicbench doctor" in str(caught.value)


async def test_a_child_that_keeps_the_pipes_of_a_command_that_has_ended_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(HostError, match="did not end within"):
        await LocalHost().run(("sh", "-c", f"sleep 1000 & echo $! > {pid_file}"), timeout_s=0.5)

    await until(lambda: start_ticks(int(pid_file.read_text())) is None)


async def test_a_child_that_left_the_session_holds_nobody_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # It leaves by itself within seconds: nothing of ours can find it.
    script = f"setsid sh -c 'echo $$ > {pid_file}; exec sleep 15' & wait"
    async with asyncio.timeout(10.0):
        with pytest.raises(HostError, match="did not end within"):
            await LocalHost().run(("sh", "-c", script), timeout_s=1.0)

    os.kill(int(pid_file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("script", ["sleep 1000", "sleep 1000; true"])
async def test_a_silent_shell_is_ended_at_once(script: str) -> None:
    process = await LocalHost().start(("sh", "-c", script))
    with pytest.raises(HostError, match="silent for"):
        await process.read_line(0.1)
    await process.signal(signal.SIGKILL)
    assert await process.wait(10.0) == -signal.SIGKILL


async def test_a_process_has_a_session_of_its_own_so_that_ctrl_c_reaches_the_controller_alone() -> None:
    process = await LocalHost().start(("sleep", "60"))
    assert process.pid is not None

    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    await process.signal(signal.SIGKILL)
    await process.wait(10.0)


def test_a_process_dies_with_a_controller_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio\n"
        "from nicbench.hosts.kinds.local import LocalHost\n"
        "async def main():\n"
        "    process = await LocalHost().start(('sleep', '60'))\n"
        "    print(process.pid, flush=True)\n"
        "    await process.wait()\n"
        "asyncio.run(main())\n"
    )
    controller = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(controller.stdout.readline())
    # The signal is arranged by the first program that runs there, before it becomes `sleep`.
    wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    controller.kill()
    controller.wait()
    controller.stdout.close()

    wait_until(lambda: start_ticks(pid) is None)


# The namespace host wraps another one; what depends on the namespace goes through a process in it.

INSIDE = ("ip", "netns", "exec", "lab")


async def test_every_command_runs_inside_the_namespace() -> None:
    inner = FakeHost()
    host = NetnsHost(inner, "lab")
    await host.run(("ethtool", "d0"))
    await host.start(("engine",))

    assert inner.commands == [(*INSIDE, "ethtool", "d0"), (*INSIDE, "engine")]


async def test_settings_of_the_namespace_are_read_by_a_process_in_it_and_other_files_are_not() -> None:
    inner = FakeHost(files={"/proc/meminfo": "outer"})
    inner.answer((*INSIDE, "cat"), "1\n")
    host = NetnsHost(inner, "lab")

    assert await host.read_file("/proc/sys/net/ipv4/ip_forward") == "1\n"
    assert await host.read_file("/sys/class/net/d0/speed") == "1\n"
    assert await host.read_file("/proc/meminfo") == "outer"


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nbnetns{os.getpid()}"
    run_checked(("ip", "netns", "add", name))
    yield name
    run_checked(("ip", "netns", "delete", name))


TTL = "/proc/sys/net/ipv4/ip_default_ttl"


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
async def test_on_this_machine_settings_of_the_namespace_are_its_own_and_ours_stay(namespace: str) -> None:
    ours = Path(TTL).read_text()
    host = NetnsHost(LocalHost(), namespace)
    await host.write_file(TTL, "33")
    assert await host.read_file(TTL) == "33\n"
    assert (await host.run(("cat", TTL))).stdout == "33\n"
    assert Path(TTL).read_text() == ours != "33\n"
    assert await host.read_file("/proc/sys/net/ipv4/conf/d9/forwarding") is None
    with pytest.raises(HostError, match="Invalid argument") as raised:
        await host.write_file(TTL, "none")
    assert raised.value.place == namespace


async def test_a_namespace_of_this_machine_that_is_not_there_is_an_error() -> None:
    with pytest.raises(HostError, match="namespace"):
        await NetnsHost(LocalHost(), "nb-nowhere").read_file(TTL)


async def test_a_missing_file_is_none_but_a_missing_namespace_is_an_error() -> None:
    inner = FakeHost()
    host = NetnsHost(inner, "lab")
    inner.fail((*INSIDE, "cat"), "cat: /sys/class/net/d9/speed: No such file or directory")
    assert await host.read_file("/sys/class/net/d9/speed") is None

    inner.fail((*INSIDE, "cat"), 'Cannot open network namespace "lab": No such file or directory', status=255)
    with pytest.raises(HostError, match="network namespace"):
        await host.read_file("/sys/class/net/d9/speed")


async def test_a_refused_write_gives_the_kernels_reason() -> None:
    inner = FakeHost()
    inner.fail((*INSIDE, "tee"), "tee: /proc/sys/net/ipv4/ip_forward: Invalid argument")
    with pytest.raises(HostError, match="Invalid argument"):
        await NetnsHost(inner, "lab").write_file("/proc/sys/net/ipv4/ip_forward", "x")


def test_a_host_is_made_again_from_its_spec() -> None:
    host = NetnsHost(NetnsHost(LocalHost(), "outer"), "lab", "dut")

    again = host_from_spec(host.spec(), "dut")
    assert (type(again), again.name, again.spec()) == (NetnsHost, "dut", host.spec())


def test_a_wrapper_without_an_inner_host_is_on_this_machine() -> None:
    assert host_from_spec({"kind": "netns", "namespace": "lab"}).spec()["inner"] == {"kind": "local"}


def test_an_unknown_kind_of_host_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="local, netns"):
        host_from_spec({"kind": "moon"})


@pytest.mark.parametrize("name", ["", "../etc", "-x", "a b", "a/b"])
def test_a_name_that_is_no_namespace_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        NetnsHost(FakeHost(), name)


async def test_a_namespace_has_the_files_of_its_machine(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("text")
    inner = FakeHost()
    await NetnsHost(inner, "lab").put(tmp_path / "given", "/there", 0o755)

    assert (inner.files, inner.modes) == ({"/there": "text"}, {"/there": 0o755})
