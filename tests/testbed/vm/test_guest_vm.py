"""A guest: booted, used as any other machine, and gone without a trace."""

from __future__ import annotations

import os
import signal
from ipaddress import ip_interface
from pathlib import Path

import pytest

from nicbench.core.clocks import clock_warnings
from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts import compare_clocks, host_from_spec
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.hosts.kinds.vm import KNOWN_BY, VmHost
from nicbench.hosts.options import VmOptions
from nicbench.testbed.interfaces.base import Making, Port, VirtualFunctionOptions
from nicbench.testbed.interfaces.cards import bind_cards, make_virtual_functions
from nicbench.testbed.interfaces.namespaces import assign_addresses, make_namespaces, move_interfaces
from nicbench.testbed.vm.booting import boot
from nicbench.testbed.vm.programs import find_emulator, find_kernel
from nicbench.tuning.stack import UndoStack

pytestmark = [pytest.mark.vm, pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("guest")]


async def test_it_runs_the_fetched_kernel_over_this_machines_files(guest: VmHost) -> None:
    assert (await guest.run(("uname", "-r"))).stdout.strip() == find_kernel().version
    assert (await guest.run(("hostname",))).stdout.strip() == "guest"
    assert await guest.read_file(__file__) == Path(__file__).read_text()


async def test_its_clock_is_this_machines_so_that_no_run_warns_of_it(guest: VmHost) -> None:
    (clock,) = await compare_clocks([guest])
    assert not clock_warnings([clock])


async def test_what_it_writes_is_nowhere_else(guest: VmHost) -> None:
    await guest.write_file("/etc/nicbench-guest-was-here", "text\n")
    assert await guest.read_file("/etc/nicbench-guest-was-here") == "text\n"
    assert not Path("/etc/nicbench-guest-was-here").exists()
    assert await guest.read_file("/etc/nothing-of-that-name") is None
    with pytest.raises(HostError, match="cannot write"):
        await guest.write_file("/sys/kernel/nothing", "1")


async def test_cards_are_called_as_asked_on_the_node_that_was_asked_for(guest: VmHost) -> None:
    for name, node in (("n0", "0"), ("n1", "1")):
        assert (await guest.read_file(f"/sys/class/net/{name}/device/numa_node") or "").strip() == node


@pytest.mark.sampled(1, of="cards of a guest")
async def test_cards_are_moved_into_namespaces_of_the_guest_and_come_back(guest: VmHost, tmp_path: Path) -> None:
    changes = UndoStack("test-guest-ports", None, tmp_path)
    hosts = {name: NetnsHost(guest, name, name) for name in ("server", "client")}
    ports = {
        "s0": Port(host="server", device="n0", ip=ip_interface("198.18.0.1/24")),
        "c0": Port(host="client", device="n1", ip=ip_interface("198.18.0.2/24")),
    }
    making = Making(hosts, ports, changes, created=tuple(hosts.values()))
    try:
        for step in (make_namespaces, move_interfaces, assign_addresses):
            await step(making)
        pinged = await hosts["client"].run(("ping", "-qc1", "-W9", "198.18.0.1"), timeout_s=30.0, check=False)
        assert pinged.status == 0
        assert "n0" not in (await guest.run(("ip", "-br", "link"))).stdout
    finally:
        assert await changes.undo_all() == []
    listed = (await guest.run(("ip", "-br", "address"))).stdout
    assert "n0" in listed
    assert "n1" in listed
    assert "198.18" not in listed
    assert (await guest.run(("ip", "netns", "list"))).stdout == ""


@pytest.mark.sampled(1, of="cards of a guest")
async def test_a_virtual_function_is_made_for_a_namespace_or_for_dpdk_and_goes(guest: VmHost, tmp_path: Path) -> None:
    if not find_emulator().has_igb:
        pytest.skip("this QEMU has no card with virtual functions")
    hosts = {name: NetnsHost(guest, name, name) for name in ("server", "client")}
    function = VirtualFunctionOptions(of="n1", number=1, trust=True, spoof_check=False)
    client = Port(host="client", device="n0", ip=ip_interface("198.18.0.2/24"))
    kernels = Port(host="server", virtual_function=function, ip=ip_interface("198.18.0.1/24"))
    dpdks = Port(host="server", virtual_function=function, bind="vfio-pci")
    for name, port in (("kernel", kernels), ("dpdk", dpdks)):
        changes = UndoStack(f"test-guest-{name}", None, tmp_path)
        making = Making(hosts, {"s0": port, "c0": client}, changes, created=tuple(hosts.values()))
        try:
            for step in (make_virtual_functions, bind_cards, make_namespaces, move_interfaces, assign_addresses):
                await step(making)
            told = making.facts["virtual_functions"]["s0"]
            folder = f"/sys/bus/pci/devices/{told['address']}"
            driver = (await guest.run(("readlink", f"{folder}/driver"))).stdout.strip().rpartition("/")[2]
            assert driver == told["driver"] == ("igbvf" if name == "kernel" else "vfio-pci")
            if name == "kernel":
                ping = ("sh", "-c", "for i in $(seq 20); do ping -qc1 -W1 198.18.0.1 && exit; done; exit 1")
                assert (await hosts["client"].run(ping, timeout_s=60.0, check=False)).status == 0
        finally:
            assert await changes.undo_all() == []
        assert (await guest.read_file("/sys/class/net/n1/device/sriov_numvfs") or "").strip() == "0"
        assert (await guest.read_file("/sys/class/net/n1/device/sriov_drivers_autoprobe") or "").strip() == "1"
        assert "n1v1" not in (await guest.run(("ip", "-br", "link"))).stdout


@pytest.mark.sampled(1, of="cards of a guest")
async def test_a_card_is_given_to_dpdk_and_comes_back_to_its_driver(guest: VmHost, tmp_path: Path) -> None:
    if not find_emulator().has_igb:
        pytest.skip("without the card igb the guest has no IOMMU")
    changes = UndoStack("test-guest-card", None, tmp_path)
    making = Making({"dut": guest}, {"d0": Port(host="dut", device="n1", bind="vfio-pci")}, changes)
    try:
        await bind_cards(making)
        port = making.ports["d0"]
        assert port.device is None
        assert port.mac is not None
        driver = await guest.run(("readlink", f"/sys/bus/pci/devices/{port.address}/driver"))
        assert driver.stdout.strip().endswith("/vfio-pci")
    finally:
        assert await changes.undo_all() == []
    assert port.mac == (await guest.read_file("/sys/class/net/n1/address") or "").strip()


async def test_frames_go_from_card_to_card(guest: VmHost) -> None:
    script = (
        "ip netns add a; ip link set n1 netns a; ip address add 198.18.0.1/24 dev n0; ip link set n0 up; "
        "ip -n a address add 198.18.0.2/24 dev n1; ip -n a link set n1 up; "
        "for i in $(seq 40); do ping -qc1 -W1 198.18.0.2 && exit; done >/dev/null; exit 1"
    )
    assert (await guest.run(("sh", "-c", script), timeout_s=60.0, check=False)).status == 0


async def test_what_shells_open_by_number_is_there(guest: VmHost) -> None:
    assert (await guest.run(("bash", "-c", "cat <(echo given)"))).stdout == "given\n"


async def test_commands_end_as_elsewhere(guest: VmHost) -> None:
    done = await guest.run(("sh", "-c", "echo out; echo err >&2; exit 3"), check=False)
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(NotReadyError, match="command not found"):
        await guest.run(("no-such-program",))
    with pytest.raises(HostError, match="did not end within"):
        await guest.run(("sleep", "100"), timeout_s=0.5)
    assert (await guest.run(("sh", "-c", "pgrep -x sleep -a | grep -w 100"), check=False)).stdout == ""


async def test_much_that_is_read_late_comes_whole(guest: VmHost) -> None:
    process = await guest.start(("seq", "1", "300000"))
    count = 0
    while (line := await process.read_line(60.0)) is not None:
        count += 1
        assert line == str(count)
    assert count == 300_000
    assert await process.wait(30.0) == 0


async def test_a_process_reads_what_it_is_given_and_a_signal_ends_it(guest: VmHost) -> None:
    process = await guest.start(("cat",))
    await process.write_line("some words")
    assert await process.read_line(30.0) == "some words"
    await process.signal(signal.SIGTERM)
    assert await process.wait(30.0) == -signal.SIGTERM


async def test_files_go_there_and_back(guest: VmHost, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(bytes(range(256)) * 8000)
    await guest.put(tmp_path / "there", "/root/there", 0o755)
    await guest.get("/root/there", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes()


async def test_another_controller_takes_it_over(guest: VmHost) -> None:
    await guest.close()
    again = host_from_spec(guest.spec(), "again")
    assert (await again.run(("cat", "/proc/sys/kernel/hostname"))).stdout.strip() == "guest"


async def test_it_is_where_it_was_put_and_its_death_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    changes, cpu = UndoStack("test-guest-death", None, tmp_path), max(os.sched_getaffinity(0))
    pages = Path("/proc/sys/vm/nr_hugepages")
    before = pages.read_text()
    options = VmOptions(cpus=1, memory=2**29, pin=(cpu,), huge_pages=2**21, boot_parameters=("nicbench.test=1",))
    host = (await boot({"brief": options}, changes, LocalHost()))["brief"]
    told = host.disclosure()
    assert told["pins"] == {"vCPU 0": f"CPU {cpu}"}
    assert "256 pages of 2 MiB" in " ".join(told["memory_pages"].values())
    folder = Path(str(host.folder))
    await host.run(("sh", "-c", "ip netns add left"))
    await changes.set_file(host, "/proc/sys/net/ipv4/ip_forward", "1")
    pid = (folder / KNOWN_BY).read_text().split()[0]
    await LocalHost().run(("kill", "-KILL", pid))
    with pytest.raises(HostError, match="the virtual machine has died"):
        await host.run(("sleep", "10"))
    assert await changes.undo_all() == []
    assert not folder.exists()
    assert pages.read_text() == before
