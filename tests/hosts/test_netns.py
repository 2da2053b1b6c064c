"""The namespace host wraps another one; what depends on the namespace goes through a process in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError, UsageError
from nicbench.hosts import host_from_spec
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost

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
    subprocess.run(("ip", "netns", "add", name), check=True)
    yield name
    subprocess.run(("ip", "netns", "delete", name), check=True)


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
