"""QEMU's command line of a guest, to the last word."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.base import Completed
from nicbench.hosts.options import VmOptions
from nicbench.testbed.vm import command as placing
from nicbench.testbed.vm.command import (
    Guest,
    ask,
    give_cards,
    macs_of,
    pages_on_nodes,
    place,
    qemu_arguments,
    raise_pages,
    wires_of,
)
from nicbench.tuning.undo.adapters import RestoreDriver, RestoreFunctionMac
from nicbench.tuning.undo.base import undo_one

_GUEST = Guest("/run/v", Path("/k/vmlinuz"), Path("/k/modules"), "/run/v/initrd", "tcg")


def _words(given: dict[str, object], accelerator: str = "tcg", others: dict[str, VmOptions] | None = None) -> str:
    options = VmOptions.model_validate(given)
    guests = {"guest": options, **(others or {})}
    wires = wires_of(guests, {name: f"/run/{name}" for name in guests})
    guest = Guest(_GUEST.folder, _GUEST.kernel, _GUEST.modules, _GUEST.initrd, accelerator)
    return " ".join(qemu_arguments(options, guest, macs_of("guest", options), wires["guest"]))


def test_a_guest_without_cards_has_no_network_at_all() -> None:
    words = _words({})
    assert "-nodefaults" in words
    assert "netdev" not in words
    assert "-m 1024M" in words
    assert "-accel tcg,thread=multi -cpu max" in words
    assert "readonly=on,multidevs=remap" in words


def test_two_cards_of_one_network_are_on_one_hub_and_a_third_alone() -> None:
    words = _words({"cards": {"n0": {"network": "a"}, "n1": {"network": "a"}, "n2": {}}})
    assert "hubport,id=net0,hubid=0 " in words
    assert "hubport,id=net1,hubid=0 " in words
    assert "hubport,id=net2,hubid=3 " in words
    assert "virtio-net-pci,netdev=net0,id=card0" in words


def test_a_card_with_a_loop_plug_sends_to_the_socket_that_it_receives_from() -> None:
    words = _words({"cards": {"n0": {"loop": True}}})
    ends = "local.type=unix,local.path=/run/v/loop-n0,remote.type=unix,remote.path=/run/v/loop-n0"
    assert f"dgram,id=net0,{ends} -device virtio-net-pci,netdev=net0" in words


def test_a_network_between_guests_goes_through_a_socket_of_the_first() -> None:
    other = VmOptions.model_validate({"cards": {"m0": {"network": "a"}}})
    own = {"cards": {"n0": {"network": "a"}}}
    assert "stream,id=wire0-0,server=on,addr.type=unix,addr.path=/run/guest/wire-a-0" in _words(
        own, others={"z": other}
    )
    wires = wires_of({"guest": VmOptions.model_validate(own), "z": other}, {"guest": "/run/guest", "z": "/run/z"})
    assert wires["z"][0].goes_to == "/run/guest/wire-a-0"


def test_cards_of_two_nodes_are_behind_bridges_of_those_nodes() -> None:
    words = _words(
        {"nodes": 2, "memory": 2**30, "cards": {"n0": {"model": "igb", "node": 0}, "n1": {"model": "igb", "node": 1}}}
    )
    assert "memory-backend-ram,id=memory1,size=512M" in words
    assert "-numa node,nodeid=1,memdev=memory1,cpus=1" in words
    assert "-numa dist,src=0,dst=1,val=21" in words
    assert "pxb-pcie,id=node1,bus_nr=64,numa_node=1,bus=pcie.0" in words
    assert "pcie-root-port,id=slot1,bus=node1" in words
    assert "intel-iommu,intremap=on,caching-mode=on" in words
    assert "intel_iommu=on iommu=pt" in words


def test_on_kvm_the_guest_has_the_machines_processor() -> None:
    assert "-accel kvm -cpu host" in _words({}, "kvm")
    assert "kernel-irqchip=split" in _words({"cards": {"n0": {"model": "igb"}}}, "kvm")


def test_memory_in_huge_pages_is_there_before_the_guest_starts_and_locked_on_kvm() -> None:
    given = {"memory": 2**31, "huge_pages": 2**30, "memory_nodes": [1]}
    words = _words(given, "kvm")
    backend = "memory-backend-memfd,id=memory0,size=2048M,hugetlb=on,hugetlbsize=1024M,prealloc=on"
    assert f"-object {backend},host-nodes=1,policy=bind -numa node,nodeid=0,memdev=memory0" in words
    assert "-overcommit mem-lock=on" in words
    assert "mem-lock" not in _words(given)  # what is locked beside the pages is the emulator's own


def test_each_node_of_the_guest_is_on_the_node_of_the_machine_that_is_named() -> None:
    words = _words({"nodes": 2, "memory": 2**30, "memory_nodes": [1, 0]})
    assert "memory-backend-ram,id=memory0,size=512M,prealloc=on,host-nodes=1,policy=bind" in words
    assert "memory-backend-ram,id=memory1,size=512M,prealloc=on,host-nodes=0,policy=bind" in words


def test_a_card_of_the_machine_is_given_by_vfio_behind_an_iommu_of_the_guest() -> None:
    words = _words(
        {"cards": {"n0": {"pci": "0000:65:02.0", "mac": "02:00:00:00:00:01"}, "n1": {"network": "a"}}}, "kvm"
    )
    assert "-device vfio-pci,host=0000:65:02.0,id=card0,rombar=0,bus=slot0" in words
    assert "net0" not in words
    assert "hubport,id=net1,hubid=0" in words
    assert "intel-iommu,intremap=on,caching-mode=on" in words


# Where a guest's processors and memory are on the machine: set, and read back.


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


# Cards of the machine that a guest is given: bound, with an address, and as before afterwards.


CARD = "0000:65:02.1"
FOLDER = f"/sys/bus/pci/devices/{CARD}"
OLD, NEW = "02:00:00:00:00:0a", "02:00:00:00:01:00"


class _Machine(FakeHost):
    """With the virtual function 1 of e0, or with a whole card, at ``CARD``; iavf has it."""

    def __init__(self, *, function: bool = True) -> None:
        super().__init__("local", {f"{FOLDER}/modalias": "pci:v00008086d0000154C\n"})
        self.driver = "iavf"
        self.mac = OLD
        self.answer(f"ls {FOLDER}/iommu_group/devices", f"{CARD}\n")
        self.answer(f"readlink {FOLDER}/driver", lambda _: f"../../{self.driver}\n")
        self.answer("ip -d -j link show", json.dumps([{"ifname": "e0", "flags": []}, {"ifname": "e0v1", "flags": []}]))
        self.answer("ip -d -j link show dev e0", lambda _: json.dumps([self._link()]))
        self.answer("ip link set dev e0 vf 1 mac", self._set)
        self.answer(f"find {FOLDER}/", f"{FOLDER}/net/e0v1\n")
        self.answer("sh -c", lambda command: self._shell(command, function=function))

    async def write_file(self, path: str, text: str) -> None:
        if path == "/sys/bus/pci/drivers_probe":
            self.driver = self.files[f"{FOLDER}/driver_override"].strip() or "iavf"
        if path.endswith("/bind"):
            self.driver = path.split("/")[5]
        await super().write_file(path, text)

    def _link(self) -> dict[str, Any]:
        return {
            "ifname": "e0",
            "vfinfo_list": [{"vf": 0, "address": "02:00:00:00:00:09"}, {"vf": 1, "address": self.mac}],
        }

    def _set(self, command: tuple[str, ...]) -> str:
        self.mac = command[-1]
        return ""

    def _shell(self, command: tuple[str, ...], *, function: bool) -> Completed:
        if "net/*/address" in command[2]:
            return Completed(command, 0, f"{OLD}\n", "")
        owner = f"e0\nvirtfn0 ../0000:65:02.0\nvirtfn1 ../{CARD}\n" if function else ""
        return Completed(command, 0, owner, "")


def _options(**card: str) -> VmOptions:
    return VmOptions.model_validate({"cards": {"n0": {"network": "a"}, "f0": {"pci": CARD, **card}}})


async def test_a_function_gets_its_address_on_the_port_and_vfio_takes_it() -> None:
    machine, changes = _Machine(), NotedChanges()
    macs, aliases = await give_cards(changes, machine, _options(mac=NEW), "guest")
    assert (macs, aliases) == ({"f0": NEW}, ("pci:v00008086d0000154C",))
    assert (machine.mac, machine.driver) == (NEW, "vfio-pci")
    for undo in reversed(changes.undos):
        assert await undo_one(machine, undo) is None
    assert [type(undo) for undo in changes.undos] == [RestoreFunctionMac, RestoreDriver]
    assert (machine.mac, machine.driver) == (OLD, "iavf")


async def test_an_address_that_somebody_gave_since_is_left() -> None:
    machine = _Machine()
    machine.mac = "02:00:00:00:00:ff"
    undo = RestoreFunctionMac(device="e0", number=1, mac=OLD, asked=NEW)
    assert "was left with the address 02:00:00:00:00:ff" in str(await undo_one(machine, undo))


async def test_a_whole_card_keeps_its_address() -> None:
    machine, changes = _Machine(function=False), NotedChanges()
    macs, _ = await give_cards(changes, machine, _options(), "guest")
    assert macs == {"f0": OLD}
    with pytest.raises(NotReadyError, match="is not a virtual function"):
        await give_cards(changes, _Machine(function=False), _options(mac=NEW), "guest")


async def test_a_card_that_shares_its_group_is_refused() -> None:
    machine = _Machine()
    machine.answer(f"ls {FOLDER}/iommu_group/devices", f"{CARD}\n0000:65:00.0\n")
    machine.answer("readlink /sys/bus/pci/devices/0000:65:00.0/driver", "../../ixgbe\n")
    with pytest.raises(NotReadyError, match=r"shares its IOMMU group with 0000:65:00\.0, which ixgbe uses") as refused:
        await give_cards(NotedChanges(), machine, _options(), "guest")
    assert refused.value.place == "guest, card f0"
