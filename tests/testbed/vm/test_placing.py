"""Where a guest's processors and memory are on the machine: set, and read back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.options import VmOptions
from nicbench.testbed.vm import command as placing
from nicbench.testbed.vm.command import ask, pages_on_nodes, place, raise_pages

# As QEMU's memory-backend-memfd with 2 MiB pages is listed, between a library and its heap.
NUMA_MAPS = """\
7f0000000000 bind:0 file=/memfd:memory-backend-memfd\\040(deleted) huge dirty=256 N0=256 kernelpagesize_kB=2048
7f1000000000 default file=/usr/lib/x86_64-linux-gnu/libc.so.6 mapped=300 N0=300 kernelpagesize_kB=4
55d000000000 default heap anon=900 dirty=900 N0=600 N1=300 kernelpagesize_kB=4
"""


def _pages(node: str, total: int, free: int, kib: int = 1048576) -> dict[str, str]:
    folder = f"/sys/devices/system/node/{node}/hugepages/hugepages-{kib}kB"
    return {f"{folder}/nr_hugepages": str(total), f"{folder}/free_hugepages": str(free)}


async def test_only_what_a_node_lacks_is_reserved() -> None:
    machine = FakeHost("local", {**_pages("node0", 4, 3), **_pages("node1", 4, 1)})
    options = VmOptions(nodes=2, memory=4 * 2**30, huge_pages=2**30, memory_nodes=(0, 1))
    await raise_pages(NotedChanges(), machine, options, "guest")
    assert [(path.split("/")[5], text) for path, text in machine.writes] == [("node1", "5")]


async def test_a_node_that_the_machine_has_not_is_told() -> None:
    machine = FakeHost("local", {"/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 1 kB\n"})
    await raise_pages(NotedChanges(), machine, VmOptions(memory_nodes=(0,)), "guest")
    with pytest.raises(NotReadyError, match="this machine has no NUMA node 7"):
        await raise_pages(NotedChanges(), machine, VmOptions(memory_nodes=(7,)), "guest")


async def test_pages_that_the_machine_has_not_are_told() -> None:
    options = VmOptions(memory=2**30, huge_pages=2**30, memory_nodes=(1,))
    with pytest.raises(NotReadyError, match="no huge pages of 1024 MiB on node 1"):
        await raise_pages(NotedChanges(), FakeHost("local"), options, "guest")


def test_pages_are_counted_by_node_and_size() -> None:
    assert pages_on_nodes(NUMA_MAPS, 2048) == {0: {2048: 256}}
    assert pages_on_nodes(NUMA_MAPS, 1048576) == {}
    assert pages_on_nodes(NUMA_MAPS, None) == {0: {4: 600}, 1: {4: 300}}


async def test_memory_in_other_pages_than_asked_for_is_refused() -> None:
    machine = FakeHost("local", {"/proc/7/numa_maps": NUMA_MAPS})
    there = await place(machine, VmOptions(memory=2**29, huge_pages=2**21), 7, "", "guest")
    assert there == {"memory_pages": {"node 0": "256 pages of 2 MiB on node 0"}}
    with pytest.raises(NotReadyError, match="not where it should be: no such pages"):
        await place(machine, VmOptions(memory=2**30, huge_pages=2**30), 7, "", "guest")
    with pytest.raises(NotReadyError, match="not where it should be: 256 pages of 2 MiB on node 0"):
        await place(machine, VmOptions(memory=2**29, huge_pages=2**21, memory_nodes=(1,)), 7, "", "guest")


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_path: str, _command: str) -> object:
        return [{"cpu-index": 1, "thread-id": 12}, {"cpu-index": 0, "thread-id": 11}]

    monkeypatch.setattr(placing, "ask", answer)


@pytest.mark.usefixtures("threads")
async def test_processors_are_pinned_one_by_one_and_the_rest_of_qemu_beside_them() -> None:
    status = "Name:\tqemu\nCpus_allowed_list:\t{}\n"
    machine = FakeHost("local", {"/proc/self/status": status.format("0-4")})
    machine.files |= {f"/proc/7/task/{thread}/status": status.format(cpu) for thread, cpu in ((11, 2), (12, 3))}
    told = await place(machine, VmOptions(cpus=2, pin=(2, 3)), 7, "/run/qmp", "guest")
    assert told == {"pins": {"vCPU 0": "CPU 2", "vCPU 1": "CPU 3"}}
    assert [command[1:] for command in machine.commands] == [
        ("--all-tasks", "--cpu-list", "--pid", "0-1,4", "7"),
        ("--cpu-list", "--pid", "2", "11"),
        ("--cpu-list", "--pid", "3", "12"),
    ]


@pytest.mark.usefixtures("threads")
async def test_a_pin_that_the_kernel_does_not_show_is_no_pin() -> None:
    machine = FakeHost("local", {"/proc/self/status": "Cpus_allowed_list:\t0-3\n"})
    machine.files |= {"/proc/7/task/11/status": "Cpus_allowed_list:\t0-3\n"}
    with pytest.raises(HostError, match="CPU 0 of the guest should run only on CPU 2, but may run on 0-3"):
        await place(machine, VmOptions(cpus=2, pin=(2, 3)), 7, "/run/qmp", "guest")
    with pytest.raises(NotReadyError, match="nicbench may not use the CPU 9, only 0-3"):
        await place(machine, VmOptions(cpus=2, pin=(2, 9)), 7, "/run/qmp", "guest")


async def test_qemu_is_asked_after_its_greeting_and_between_its_events(tmp_path: Path) -> None:
    async def qemu(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'{"QMP": {"version": {}}}\n')
        for answer in ({"return": {}}, {"event": "RESUME"}, {"return": [{"cpu-index": 0}]}):
            if "event" not in answer:
                await reader.readline()
            writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    path = tmp_path / "qmp"
    async with await asyncio.start_unix_server(qemu, path):
        assert await ask(str(path), "query-cpus-fast") == [{"cpu-index": 0}]
    with pytest.raises(HostError, match="does not answer `query-cpus-fast`"):
        await ask(str(tmp_path / "nobody"), "query-cpus-fast")
