"""Nothing that runs on a host by ssh survives: not the controller's death, nor a connection that goes silent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import HostError
from nicbench.hosts import close_connections
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.hosts.owner import start_ticks
from nicbench.hosts.ssh_lease import LeasedConnection, machine

from .sshd_server import Server

# It ignores what it can, and `timeout` puts its child into a process group of its own.
_STUBBORN = "trap '' HUP TERM INT PIPE; echo $$ >> PIDS; timeout 600 sleep 600 & echo $! >> PIDS; sleep 600"


def _stubborn(pids: Path) -> tuple[str, ...]:
    return ("sh", "-c", _STUBBORN.replace("PIDS", str(pids)))


async def test_closing_in_order_ends_everything_and_leaves_no_folder(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    await host.start(_stubborn(tmp_path / "pids"))
    folder = _connection(host).keeper.folder
    await _until(lambda: _running(tmp_path / "pids") == 2)
    await close_connections()

    await _until(lambda: _running(tmp_path / "pids") == 0)
    await _until(lambda: not Path(folder).exists())


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
    asyncio.run(_until(lambda: _running(pids) == 4))
    controller.kill()
    controller.wait()

    asyncio.run(_until(lambda: _running(pids) == 0))


async def test_a_connection_that_goes_silent_ends_everything_on_both_sides(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host(lease=3.0)
    process = await host.start(_stubborn(tmp_path / "pids"))
    running = asyncio.create_task(host.run(("sleep", "600"), timeout_s=600.0))
    await _until(lambda: _running(tmp_path / "pids") == 2)
    # What neither end hears of: sshd is still there, and so is every pipe.
    sshds = _sshds_above(_connection(host).keeper.pid)
    for pid in sshds:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(HostError, match="client1: the ssh connection was lost: silent for") as caught:
            await process.read_line(60.0)
        assert "its settings are put back there" in caught.value.message
        assert caught.value.next_step is not None
        with pytest.raises(HostError, match="was lost"):
            await running
        await _until(lambda: _running(tmp_path / "pids") == 0)
    finally:
        for pid in sshds:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    with pytest.raises(HostError, match="was lost"):  # what was set there is no more: nothing may go on as if it were
        await host.run(("true",))
    await host.reconnect()  # the undo does that
    await host.run(("true",))


async def test_everything_ends_with_a_keeper_that_somebody_kills(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    process = await host.start(_stubborn(tmp_path / "pids"))
    await _until(lambda: _running(tmp_path / "pids") == 2)
    keeper = _connection(host).keeper
    os.kill(keeper.pid, signal.SIGKILL)

    await _until(lambda: _running(tmp_path / "pids") == 0)
    with pytest.raises(HostError, match="was lost"):
        await process.wait(20.0)
    shutil.rmtree(keeper.folder)  # it had no time for that


async def test_no_watcher_stays_behind_its_command(sshd: Server) -> None:
    host = sshd.host()
    await asyncio.gather(*(host.run(("true",)) for _ in range(20)))
    folder = _connection(host).keeper.folder

    def watchers() -> list[str]:
        arguments = (each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists())
        return [line.decode() for line in arguments if b"flock" in line and folder.encode() in line]

    await _until(lambda: not watchers())


def _connection(host: SshHost) -> LeasedConnection:
    return machine(host.options)._connections[0]


def _sshds_above(pid: int) -> list[int]:
    found = []
    while pid > 1:
        fields = Path(f"/proc/{pid}/stat").read_text()
        if "(sshd" in fields:
            found.append(pid)
        pid = int(fields.rpartition(")")[2].split()[1])
    return found


def _running(pids: Path) -> int:
    """How many of these are there. A process that was killed and not waited for is none."""
    text = pids.read_text() if pids.exists() else ""
    return sum(start_ticks(int(pid)) is not None for pid in text.split())


async def _until(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.02)
