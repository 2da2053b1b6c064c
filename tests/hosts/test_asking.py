"""What hosts are asked for: files, clocks, NUMA nodes; and the options of virtual machines."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, FakeProcess
from tests.hosts.sshd_server import Server

from nicbench.core.errors import HostError
from nicbench.core.machine import NumaNode
from nicbench.hosts import compare_clocks, host_from_spec
from nicbench.hosts.asking import count_pages, numa_nodes, paths_and_values, read_placement, values_of
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.vm import VmHost, last_words
from nicbench.hosts.options import VmOptions

# Small files of a host, read by path or pattern in one command.

DEBUGFS = "/sys/kernel/debug/mlx5/0000:af:00.0/cc_params"


async def test_a_folder_may_have_colons() -> None:
    host = FakeHost()
    host.answer(("sh", "-c"), f"{DEBUGFS}/rp_ai_rate:5\n{DEBUGFS}/np_cnp_dscp:0x30:1\n")
    found = await values_of(host, [f"{DEBUGFS}/*"])
    assert found == {f"{DEBUGFS}/rp_ai_rate": "5", f"{DEBUGFS}/np_cnp_dscp": "0x30:1"}


def test_a_path_ends_where_it_fits_what_was_asked_for() -> None:
    text = "/sys/a:0/b:1/name:x/y: z\n/sys/net/e:0/mac:02:00:00:00:00:01\n/sys/other:v:w\nno value\n"
    patterns = ("/sys/a:*/b:[0-9]/name", "/sys/net/'e:0'/mac")
    assert paths_and_values(text, patterns) == {
        "/sys/a:0/b:1/name": "x/y: z",
        "/sys/net/e:0/mac": "02:00:00:00:00:01",
        "/sys/other": "v:w",
    }


def test_many_files_by_name_are_each_found() -> None:
    paths = [f"/proc/irq/{number}/smp_affinity_list" for number in range(20_000)]
    assert len(paths_and_values("\n".join(f"{path}:0-3" for path in paths), paths)) == len(paths)


# Clocks of hosts are compared by asking them.


async def test_a_host_by_ssh_that_has_our_clock_is_found_to_have_it(sshd: Server) -> None:
    (found,) = await compare_clocks([sshd.host()])

    assert (found.host, found.exchanges) == ("client1", 10)
    assert abs(found.offset_s) <= found.uncertainty_s + 1e-6  # it tells whole microseconds


async def test_what_is_on_this_machine_is_not_asked() -> None:
    found = await compare_clocks([LocalHost("tester"), NetnsHost(LocalHost(), "lab")])

    assert [(each.host, each.offset_s, each.exchanges) for each in found] == [("tester", 0.0, 0), ("lab", 0.0, 0)]


async def test_a_host_that_does_not_tell_the_time_is_an_error() -> None:
    host = FakeHost("odd")
    host.process(("sh", "-c"), FakeProcess(["%s.%N"]))
    with pytest.raises(HostError, match="odd: it does not tell the time"):
        await compare_clocks([host])


# NUMA as /sys and /proc tell it.

NODE = "/sys/devices/system/node"
# Of a process bound to node 1, on a machine with two; the first line is of its program's file.
MAPS = """\
00400000 bind:1 file=/usr/bin/iperf3 mapped=12 N0=12 kernelpagesize_kB=4
7f1c2c000000 bind:1 anon=33 dirty=33 N1=33 kernelpagesize_kB=4
7ffd0f7a1000 bind:1 stack anon=5 dirty=5 N0=2 N1=3 kernelpagesize_kB=4
"""


def test_nodes_with_cpus_are_told_and_those_of_memory_alone_left_out() -> None:
    files = {
        f"{NODE}/online": "0-2\n",
        f"{NODE}/node0/cpulist": "0-1,4\n",
        f"{NODE}/node1/cpulist": "2-3\n",
        f"{NODE}/node2/cpulist": "\n",
    }
    assert asyncio.run(numa_nodes(FakeHost("server", files))) == (
        NumaNode(number=0, cpus=(0, 1, 4)),
        NumaNode(number=1, cpus=(2, 3)),
    )
    assert asyncio.run(numa_nodes(FakeHost("server"))) == ()


def test_pages_of_a_process_are_its_own_and_not_those_of_files() -> None:
    assert count_pages(MAPS) == {0: 2, 1: 36}


def test_a_process_of_this_machine_tells_where_it_may_run() -> None:
    found = asyncio.run(read_placement(LocalHost("local"), os.getpid()))
    assert set(found.cpus) == os.sched_getaffinity(0)


# What a bench file may say of a virtual machine.


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cpus": 3, "nodes": 2}, "3 CPUs cannot be divided among 2 nodes"),
        ({"cards": {"n0": {"node": 1}}}, "the card `n0` is on node 1"),
        ({"cards": {"eth0": {}}}, "a name that the guest's kernel gives"),
        ({"cards": {"n0": {"mac": "01:00:00:00:00:01"}}}, "not a unicast MAC address"),
        ({"cards": {"n0": {"mac": "02:00:00:00:00:01"}, "n1": {"mac": "02:00:00:00:00:01"}}}, "the same MAC address"),
        ({"memory": 2**20}, "greater than or equal to"),
        ({"cpus": 2, "pin": (2,)}, "write 2 different ones"),
        ({"cpus": 2, "pin": (2, 2)}, "write 2 different ones"),
        ({"huge_pages": 2**22}, "have 2 MiB or 1 GiB"),
        ({"huge_pages": 2**30, "memory": 3 * 2**29}, "whole pages of 1024 MiB"),
        ({"nodes": 2, "memory_nodes": (0,)}, "for each of the guest's: write 2"),
        ({"cards": {"n0": {"pci": "0000:65:02.0", "network": "a"}}}, "has no `model` and no `network`"),
        ({"cards": {"n0": {"loop": True, "network": "a"}}}, "remove `network` or `pci`"),
        ({"cards": {"n0": {"pci": "65:02.0"}}}, "pattern"),
        ({"cards": {n: {"pci": "0000:65:02.0"} for n in ("n0", "n1")}}, "the same card of the machine"),
        ({"cards": {"n0": {"mac": "00:00:00:00:00:00"}}}, "not a unicast MAC address"),
        ({"boot_parameters": ("a b",)}, "pattern"),
    ],
)
def test_what_no_guest_can_have_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        VmOptions.model_validate(given)


async def test_a_guest_that_does_not_run_is_gone_and_what_was_in_it_too() -> None:
    host = host_from_spec({"kind": "vm", "folder": "/run/nicbench-vm-that-never-was"})
    assert isinstance(host, VmHost)
    assert await host.is_gone()


def test_a_guest_is_made_again_from_what_is_kept_of_it() -> None:
    spec = {"kind": "vm", "cpus": 4, "cards": {"n0": {"model": "igb"}}, "folder": "/run/nicbench-vm-1"}
    assert host_from_spec(spec, "guest").spec() == spec


def test_what_ended_a_guest_is_told_by_its_console_or_else_by_qemu(tmp_path: Path) -> None:
    assert last_words(str(tmp_path)) == ""
    (tmp_path / "console.log").write_text("nicbench: ready after 5 s\n")
    assert last_words(str(tmp_path)) == ""
    (tmp_path / "qemu.log").write_text("qemu: -device x: no such thing\n")
    assert last_words(str(tmp_path)) == "; QEMU says: qemu: -device x: no such thing"
    (tmp_path / "console.log").write_text("booting\nKernel panic - not syncing\nmore\n")
    assert last_words(str(tmp_path)) == "; its console says: Kernel panic - not syncing"
