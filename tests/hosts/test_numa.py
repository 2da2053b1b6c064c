"""NUMA as /sys and /proc tell it."""

from __future__ import annotations

import asyncio
import os

from tests.fakes import FakeHost

from nicbench.core.cpus import NumaNode
from nicbench.hosts.asking import count_pages, numa_nodes, read_placement
from nicbench.hosts.kinds.local import LocalHost

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
    assert found is not None
    assert set(found.cpus) == os.sched_getaffinity(0)
