"""What was changed on a host by ssh is put back there without nicbench, when nothing is heard of it any more."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from nicbench.hosts import close_connections
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.ssh import SshHost
from nicbench.testbed.interfaces.base import Making
from nicbench.testbed.interfaces.namespaces import make_namespaces, move_interfaces
from nicbench.testbed.interfaces.options import Port
from nicbench.tuning.guards import folder_of
from nicbench.tuning.items.kernel import Sysctls
from nicbench.tuning.items.link import Mtu
from nicbench.tuning.items.queues import TransmitQueue
from nicbench.tuning.restore import restore
from nicbench.tuning.setting import Place
from nicbench.tuning.stack import UndoStack

from .ending import machine_of, silence, until
from .sshd_server import Server


@pytest.fixture
def values(tmp_path: Path) -> list[Path]:
    files = [tmp_path / name for name in ("one", "two", "three")]
    for file in files:
        file.write_text("old\n")
    return files


async def _changed(host: SshHost, runtime: Path, values: list[Path]) -> UndoStack:
    changes = UndoStack("run", None, runtime)
    for file in values:
        await changes.set_file(host, str(file), "new")
    return changes


async def test_a_host_that_hears_nothing_puts_its_values_back_and_the_undo_says_so(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host(lease=3.0)
    changes = await _changed(host, tmp_path / "run", values)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host))
    record = json.loads((folder / "undo.json").read_text())
    assert [entry["host"] for entry in record["entries"]] == [{"kind": "local"}] * 3
    values[1].write_text("somebody's\n")
    async with silence(host):
        await until((folder / "undo.sh.done").exists)
        assert [file.read_text() for file in values] == ["old", "somebody's\n", "old"]
        await until(lambda: machine_of(host).lost is not None)
    said = await changes.undo_all()

    assert "was not in reach of nicbench for a while, and undid by itself: put back" in said[0]
    assert f"left alone, somebody changed it since: client1: {values[1]}, to 'old'" in said[0]
    assert "was left at" in said[1]
    assert not folder.exists()


async def test_a_host_that_is_closed_before_the_undo_leaves_the_undo_to_it(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    await host.close()

    assert await changes.undo_all() == []
    assert [file.read_text() for file in values] == ["old"] * 3


async def test_an_undo_in_order_leaves_nothing_to_the_script(sshd: Server, tmp_path: Path, values: list[Path]) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    assert await changes.undo_all() == []
    assert not (tmp_path / "run").exists()
    await close_connections()

    assert [file.read_text() for file in values] == ["old"] * 3


async def test_restore_takes_the_script_of_a_dead_run_away_and_undoes_the_rest(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    await _changed(host, tmp_path / "run", values)
    record = tmp_path / "run" / "run" / "undo.json"
    owned = json.loads(record.read_text())
    owned["owner"]["start_ticks"] += 1  # its process is gone
    record.write_text(json.dumps(owned))
    said = await restore("run", tmp_path / "run")

    assert said == ["run: undid 3 changes that it had left"]
    assert [file.read_text() for file in values] == ["old"] * 3
    assert not (tmp_path / "run").exists()


@pytest_asyncio.fixture
async def namespace() -> AsyncIterator[str]:
    name = f"nb-guard-{os.getpid()}"
    subprocess.run(("ip", "netns", "add", name), check=True)
    subprocess.run(("ip", "-n", name, "link", "add", "va", "type", "veth", "peer", "name", "vb"), check=True)
    # A new namespace has what the machine's own has, which others may have set.
    subprocess.run(("ip", "netns", "exec", name, "sysctl", "-q", "-w", "net.ipv4.ip_forward=0"), check=True)
    yield name
    with contextlib.suppress(subprocess.CalledProcessError):
        subprocess.run(("ip", "netns", "delete", name), check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
async def test_settings_that_tools_make_are_put_back_too(sshd: Server, namespace: str, tmp_path: Path) -> None:
    host = NetnsHost(sshd.host(lease=3.0), namespace, "dut")
    changes = UndoStack("run", None, tmp_path / "run")
    sysctls = Sysctls(Sysctls.Options.model_validate({"values": {"net.ipv4.ip_forward": "1"}}))
    for item, device in (
        (Mtu(Mtu.Options(bytes=9000)), "va"),
        (TransmitQueue(TransmitQueue.Options(frames=50)), "vb"),
        (sysctls, None),
    ):
        place = Place(host, device)
        before = await item.read_checked(place)
        asked = item.target_values(before)
        await item.apply(changes, place, {key: before[key] for key in asked}, asked)
    assert await _settings(namespace) == ["9000", "50", "1"]
    subprocess.run(("ip", "-n", namespace, "link", "set", "vb", "txqueuelen", "77"), check=True)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host.machine))
    # kill -9 of the controller is no other end of the connection than this.
    for pid in machine_of(host.machine).sshds:
        os.kill(pid, signal.SIGKILL)
    await until((folder / "undo.sh.done").exists)

    assert await _settings(namespace) == ["1500", "77", "0"]
    assert len(await changes.undo_all()) == 2


async def test_changes_that_are_kept_stay_when_the_connection_ends(
    sshd: Server, tmp_path: Path, values: list[Path]
) -> None:
    host = sshd.host()
    changes = await _changed(host, tmp_path / "run", values)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host))
    await changes.keep()
    assert not (folder / "undo.sh").exists()
    assert json.loads((folder / "undo.json").read_text())["kept"]
    await close_connections()

    assert [file.read_text() for file in values] == ["new"] * 3
    assert await restore("run", tmp_path / "run") == ["run: undid 3 changes"]
    assert [file.read_text() for file in values] == ["old"] * 3
    assert not (tmp_path / "run").exists()


@pytest.fixture
def port() -> Iterator[str]:
    """An interface of this machine, up, with an address."""
    name = f"nbg{os.getpid()}"
    subprocess.run(("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"), check=True)
    subprocess.run(("ip", "address", "add", "198.19.79.1/24", "dev", name), check=True)
    subprocess.run(("ip", "link", "set", name, "up"), check=True)
    yield name
    subprocess.run(("ip", "link", "delete", name), check=False)


@pytest.mark.acceptance  # twenty seconds of waiting
@pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
async def test_an_interface_that_was_moved_comes_back_by_itself(sshd: Server, port: str, tmp_path: Path) -> None:
    host = NetnsHost(sshd.host(lease=3.0), f"nb-moved-{os.getpid()}", "server")
    changes = UndoStack("run", None, tmp_path / "run")
    making = Making({"server": host}, {"s0": Port(host="server", device=port)}, changes, created=(host,))
    await make_namespaces(making)
    await move_interfaces(making)
    assert not _seen(port)
    folder = Path(folder_of(str(tmp_path / "run"), "run", host.machine))
    for pid in machine_of(host.machine).sshds:
        os.kill(pid, signal.SIGKILL)
    await until((folder / "undo.sh.done").exists)

    assert "198.19.79.1/24" in _seen(port)
    assert "UP" in _seen(port)
    assert not Path("/run/netns", host.namespace).exists()
    assert len(await changes.undo_all()) == 1


def _seen(device: str) -> str:
    shown = subprocess.run(("ip", "-o", "address", "show", "dev", device), capture_output=True, text=True, check=False)
    flags = subprocess.run(("ip", "-o", "link", "show", "dev", device), capture_output=True, text=True, check=False)
    return shown.stdout + flags.stdout


async def _settings(namespace: str) -> list[str]:
    script = "cat /sys/class/net/va/mtu /sys/class/net/vb/tx_queue_len /proc/sys/net/ipv4/ip_forward"
    command = ("ip", "netns", "exec", namespace, "sh", "-c", script)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode().split()
