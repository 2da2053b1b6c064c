"""A host by ssh, against a real sshd: what ``test_contract.py`` has not, and that nothing of it survives."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hosts.ending import machine_of, silence, until
from tests.hosts.sshd_server import Server

from nicbench.core.errors import HostError, NotReadyError
from nicbench.engine.binaries import deploy_file, find_binary
from nicbench.hosts import close_connections, host_from_spec
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.owner import start_ticks
from nicbench.monitor.running import NAME, MonitorClient
from nicbench.system.xdp.abilities import ask_flags, try_live_frames


async def test_a_signal_that_ended_a_command_is_a_negative_status(sshd: Server) -> None:
    assert (await sshd.host().run(("sh", "-c", "kill -TERM $$"), check=False)).status == -signal.SIGTERM


async def test_words_reach_the_command_as_they_are_and_so_does_its_environment(sshd: Server) -> None:
    words = ("a b", "$HOME", "'", '"', "\\", "*", "", "line\nline", "ä")
    environment = {"TOLD": "it's $HOME"}
    done = await sshd.host().run(
        ("sh", "-c", 'printf "%s|" "$TOLD" "$LC_ALL" "$@"', "x", *words), environment=environment
    )

    assert done.stdout.split("|")[:-1] == ["it's $HOME", "C", *words]


async def test_a_long_line_arrives_whole_and_output_that_nobody_reads_waits(sshd: Server) -> None:
    script = "head -c 20000000 /dev/zero | tr '\\0' x; echo; yes | head -n 10000000; echo end >&2"
    process = await sshd.host().start(("sh", "-c", script))

    assert len(await process.read_line(30.0) or "") == 20_000_000
    assert await process.read_line(30.0) == "y"
    assert process.stderr_tail() == "", "it has not been let write everything"
    await process.signal(signal.SIGKILL)
    assert await process.wait(10.0) < 0


async def test_a_process_ends_at_the_end_of_its_input(sshd: Server) -> None:
    process = await sshd.host().start(("cat",))
    await process.close_stdin()

    assert await process.wait(10.0) == 0


async def test_commands_beyond_what_one_connection_takes_run_over_another(sshd: Server) -> None:
    processes = await asyncio.gather(*(sshd.host().start(("cat",)) for _ in range(12)))
    for number, process in enumerate(processes):
        await process.write_line(str(number))

    assert [await process.read_line(60.0) for process in processes] == [str(number) for number in range(12)]
    await asyncio.gather(*(process.signal(signal.SIGTERM) for process in processes))
    assert {await process.wait(60.0) for process in processes} == {-signal.SIGTERM}


async def test_an_sshd_that_allows_few_sessions_gets_more_connections(sshd: Server) -> None:
    host = sshd.host(proxy_command=sshd.command("-o", "MaxSessions=4"))
    processes = [await host.start(("cat",)) for _ in range(5)]
    for process in processes:
        await process.close_stdin()

    assert [await process.wait(10.0) for process in processes] == [0] * 5


async def test_an_sshd_that_allows_one_session_is_told_of(sshd: Server) -> None:
    host = sshd.host(proxy_command=sshd.command("-o", "MaxSessions=1"))
    with pytest.raises(NotReadyError, match="MaxSessions"):
        await host.run(("true",))


async def test_files_of_the_kernel_are_read_and_a_folder_is_none(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    assert await host.read_file("/proc/self/no/such") is None
    assert (await host.read_file("/proc/sys/kernel/ostype")) == "Linux\n"
    with pytest.raises(HostError, match=r"client1: cannot read .*Is a directory"):
        await host.read_file(str(tmp_path))


async def test_a_host_is_made_again_from_its_spec_and_shares_the_connection(sshd: Server) -> None:
    host = sshd.host()
    pid = (await host.run(("sh", "-c", "echo $PPID"))).stdout
    again = host_from_spec(host.spec(), "again")

    assert isinstance(again, SshHost)
    assert (await again.run(("sh", "-c", "echo $PPID"))).stdout == pid


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
async def test_a_namespace_of_another_machine_is_a_host_too(sshd: Server) -> None:
    name = f"nb-ssh-{os.getpid()}"
    outer = sshd.host()
    await outer.run(("ip", "netns", "add", name))
    try:
        host = NetnsHost(outer, name)
        assert (await host.run(("ip", "-br", "link"))).stdout.split()[0] == "lo"
        assert await host.read_file("/sys/class/net/lo/mtu") == "65536\n"
        process = await host.start(("sleep", "60"))
        await close_connections()
        assert await process.wait(20.0) == -signal.SIGKILL
        assert process.pid is not None
        await until(lambda: start_ticks(process.pid or 0) is None)
    finally:
        await outer.run(("ip", "netns", "delete", name))


async def test_what_interfaces_can_do_with_xdp_is_asked_there_without_copying_a_file(sshd: Server) -> None:
    host = sshd.host()
    asked_here, asked_there = await ask_flags(LocalHost()), await ask_flags(host)
    assert asked_there == asked_here
    assert (await try_live_frames(host)).works == (await try_live_frames(LocalHost())).works


# The engine's own binaries on a host by ssh: copied over, talked to, and ended with the connection.


async def test_the_monitor_runs_on_a_host_by_ssh(sshd: Server, tmp_path: Path) -> None:
    try:
        binary = find_binary(NAME)
    except NotReadyError as error:
        pytest.skip(str(error))
    host = sshd.host()
    path = await deploy_file(host, binary, str(tmp_path / "cache"))
    client = MonitorClient(await host.start([path]), lambda _event: None, "monitor")

    assert (await client.greet())["engine"] == NAME
    await client.close()


# Nothing that runs on a host by ssh survives: not the controller's death, nor a connection that goes silent.

# It ignores what it can, and `timeout` puts its child into a process group of its own.
_STUBBORN = "trap '' HUP TERM INT PIPE; echo $$ >> PIDS; timeout 600 sleep 600 & echo $! >> PIDS; sleep 600"


def _stubborn(pids: Path) -> tuple[str, ...]:
    return ("sh", "-c", _STUBBORN.replace("PIDS", str(pids)))


async def test_closing_in_order_ends_everything_and_leaves_no_folder(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    await host.start(_stubborn(tmp_path / "pids"))
    folder = machine_of(host).connection.keeper.folder
    await until(lambda: _running(tmp_path / "pids") == 2)
    await close_connections()

    await until(lambda: _running(tmp_path / "pids") == 0)
    await until(lambda: not Path(folder).exists())


def test_everything_ends_when_the_controller_is_killed(sshd_folder: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, json, sys\n"
        "from nicbench.hosts import host_from_spec\n"
        "async def main():\n"
        "    host = host_from_spec(json.loads(sys.argv[1]))\n"
        "    await host.start(json.loads(sys.argv[2]))\n"
        "    await host.run(json.loads(sys.argv[2]), timeout_s=600)\n"
        "asyncio.run(main())\n"
    )
    pids, spec = tmp_path / "pids", Server(sshd_folder).host().spec()
    words = (json.dumps(spec), json.dumps(_stubborn(pids)))
    controller = subprocess.Popen([sys.executable, "-c", script, *words], env={**os.environ, "HOME": str(tmp_path)})
    asyncio.run(until(lambda: _running(pids) == 4))
    controller.kill()
    controller.wait()

    asyncio.run(until(lambda: _running(pids) == 0))


async def test_a_connection_that_goes_silent_ends_everything_on_both_sides(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host(lease=3.0)
    process = await host.start(_stubborn(tmp_path / "pids"))
    running = asyncio.create_task(host.run(("sleep", "600"), timeout_s=600.0))
    await until(lambda: _running(tmp_path / "pids") == 2)
    async with silence(host):
        with pytest.raises(HostError, match="client1: the ssh connection was lost: silent for") as caught:
            await process.read_line(60.0)
        assert "its settings are put back there" in caught.value.message
        assert caught.value.next_step is not None
        with pytest.raises(HostError, match="was lost"):
            await running
        await until(lambda: _running(tmp_path / "pids") == 0)
    with pytest.raises(HostError, match="was lost"):  # what was set there is no more: nothing may go on as if it were
        await host.run(("true",))
    await host.reconnect()  # the undo does that
    await host.run(("true",))


async def test_everything_ends_with_a_keeper_that_somebody_kills(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    process = await host.start(_stubborn(tmp_path / "pids"))
    await until(lambda: _running(tmp_path / "pids") == 2)
    keeper = machine_of(host).connection.keeper
    os.kill(keeper.pid, signal.SIGKILL)

    await until(lambda: _running(tmp_path / "pids") == 0)
    with pytest.raises(HostError, match="was lost"):
        await process.wait(20.0)
    shutil.rmtree(keeper.folder)  # it had no time for that


async def test_no_watcher_stays_behind_its_command(sshd: Server) -> None:
    host = sshd.host()
    await asyncio.gather(*(host.run(("true",)) for _ in range(20)))
    folder = machine_of(host).connection.keeper.folder

    def watchers() -> list[str]:
        arguments = (each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists())
        return [line.decode() for line in arguments if b"flock" in line and folder.encode() in line]

    await until(lambda: not watchers())


def _running(pids: Path) -> int:
    """How many of these are there. A process that was killed and not waited for is none."""
    text = pids.read_text() if pids.exists() else ""
    return sum(start_ticks(int(pid)) is not None for pid in text.split())
