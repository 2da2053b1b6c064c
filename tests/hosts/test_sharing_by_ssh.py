"""Leases and containers on a machine that is reached by a real ssh."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import BusyError, NotReadyError
from nicbench.hosts import close_connections
from nicbench.hosts.kinds.container import ContainerHost
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.ssh import machine
from nicbench.hosts.options import ContainerOptions
from nicbench.tuning.lease import HostLease

from .sshd_server import Server


async def test_a_lease_by_ssh_names_how_long_it_outlives_its_controller_and_ends_with_it(
    sshd: Server, tmp_path: Path
) -> None:
    first = HostLease(sshd.host(lease=7), "first", None, folder=tmp_path)
    await first.take()
    with pytest.raises(BusyError, match=r"run first of .* or 7 s after its controller was last heard of"):
        await HostLease(LocalHost(), "second", ["a"], folder=tmp_path).take()
    await first.release()

    second = HostLease(LocalHost(), "second", ["a"], folder=tmp_path)
    assert await second.take() == []
    await second.release()


async def test_a_lease_outlives_the_closing_of_its_host_between_two_turns(sshd: Server, tmp_path: Path) -> None:
    said = []
    first = HostLease(sshd.host(), "first", None, said.append, folder=tmp_path)
    await first.take()
    for _ in range(2):  # before what a turn changed is undone, the hosts of its testbed are closed
        host = sshd.host()
        await host.run(("true",))
        await host.close()
        with pytest.raises(BusyError, match="run first of "):
            await HostLease(LocalHost(), "second", None, folder=tmp_path).take()
    assert not said
    await first.release()

    second = HostLease(LocalHost(), "second", None, folder=tmp_path)
    assert await second.take() == []
    await second.release()


async def test_a_host_that_nobody_leases_any_more_is_closed(sshd: Server, tmp_path: Path) -> None:
    host = sshd.host()
    leases = [HostLease(host, run, [port], folder=tmp_path) for run, port in (("first", "a"), ("second", "b"))]
    for each in leases:
        await each.take()
    for each in leases:
        await host.close()
        assert machine(host.options)._connections
        await each.release()
        await each.release()  # again it changes nothing
    await host.close()
    assert not machine(host.options)._connections


async def test_a_controller_that_is_not_heard_of_loses_its_lease_and_the_next_is_told_whose_it_was(
    sshd: Server, tmp_path: Path
) -> None:
    said = []
    host = sshd.host(lease=3)
    first = HostLease(host, "first", None, said.append, folder=tmp_path)
    await first.take()
    (connection,) = machine(host.options)._connections
    connection._renewing.cancel()  # as if the network let nothing through
    second = HostLease(LocalHost("far"), "second", None, folder=tmp_path)
    told = await _taken(second)

    assert len(told) == 1
    assert told[0].startswith("far: run first of ")
    await _until(lambda: bool(said))
    assert "the lease was lost" in said[0]
    await second.release()
    await first.release()


@pytest.mark.skipif(shutil.which("podman") is None or os.geteuid() != 0, reason="needs podman and root")
async def test_a_container_on_a_host_by_ssh_runs_signals_and_ends_with_the_connection(sshd: Server) -> None:
    host = ContainerHost(sshd.host(), ContainerOptions(root="/", network="none"), "inside")
    try:
        done = await host.run(("sh", "-c", "cat; exit 3"), input_text="hello", check=False, timeout_s=60.0)
    except NotReadyError as error:
        pytest.skip(f"no container can be started here: {error.message}")
    assert (done.status, done.stdout) == (3, "hello")

    process = await host.start(("sh", "-c", "echo ready; exec sleep 1234"))
    assert await process.read_line(20.0) == "ready"
    await process.signal(signal.SIGTERM)
    assert await process.wait(20.0) == -signal.SIGTERM

    name = host._container
    assert name in await _containers()
    await close_connections()  # and the container was not closed
    await _until_async(name)


async def _taken(lease: HostLease) -> list[str]:
    end = time.monotonic() + 60
    while True:
        try:
            return await lease.take()
        except BusyError:
            assert time.monotonic() < end
            await asyncio.sleep(0.2)


async def _containers() -> list[str]:
    return (await LocalHost().run(("podman", "ps", "--all", "--format", "{{.Names}}"))).stdout.split()


async def _until_async(gone: str) -> None:
    end = time.monotonic() + 60
    while gone in await _containers():
        assert time.monotonic() < end
        await asyncio.sleep(0.2)


async def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
