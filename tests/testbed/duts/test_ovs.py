"""Open vSwitch in user space and on DPDK: real frames pass its flows; a flow that is gone shows; nothing stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lab import Wires
from pydantic import ValidationError
from tests.commands import run_captured, run_checked
from tests.fakes import FakeHost
from wire import frame_of

from nicbench.core.errors import HostError, NotReadyError
from nicbench.testbed.duts._dpdk import file_prefix
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.ovs import BRIDGE, Ovs, OvsOptions, drops_of, find_program, parse_statistics, work_of
from nicbench.tuning.stack import UndoStack

FRAMES = 40
DEBIAN_DPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
STATISTICS = Path(__file__).parent / "golden/ovs_pmd_stats.txt"


async def test_a_kernel_without_it_says_what_to_do() -> None:
    dut = Ovs(OvsOptions())
    dut._host = FakeHost()
    dut._host.fail(("ovs-dpctl",), "ovs-dpctl: opening datapath: Protocol family not supported", status=1)
    with pytest.raises(NotReadyError, match="the kernel has no Open vSwitch") as caught:
        await dut._require_no_datapath()
    assert "datapath: user" in (caught.value.next_step or "")


async def test_a_switch_without_dpdk_says_what_to_do() -> None:
    host = FakeHost()
    host.answer(("ovs-vswitchd", "--version"), "ovs-vswitchd (Open vSwitch) 3.1.0")
    host.fail(("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk",), "No such file or directory", status=127)
    with pytest.raises(NotReadyError, match="built with DPDK") as caught:
        await find_program(host)
    assert "apt-get install openvswitch-switch-dpdk" in (caught.value.next_step or "")


def test_the_settings_of_dpdk_need_its_datapath() -> None:
    with pytest.raises(ValidationError, match="write `datapath: dpdk`"):
        OvsOptions.model_validate({"datapath": "user", "dpdk": {"cores": 1}})


def test_what_polling_threads_count_is_added_up() -> None:
    counted = parse_statistics(STATISTICS.read_text())
    assert drops_of(counted) == {"upcall failed": 7}
    work = work_of(counted)
    assert (work.packets, work.tsc_cycles) == (1007, 98514)


@pytest.mark.sampled(1)
@pytest.mark.lab
@pytest.mark.parametrize("datapath", ["user", "dpdk"])
async def test_frames_pass_both_ways_and_are_counted(datapath: str, lab: Wires, changes: UndoStack) -> None:
    if datapath == "dpdk" and not Path(DEBIAN_DPDK).exists():
        pytest.skip("needs openvswitch-switch-dpdk")
    if not shutil.which("ovs-vswitchd"):
        pytest.skip("needs openvswitch-switch")
    pages = Path("/proc/sys/vm/nr_hugepages").read_text()
    dut = Ovs(OvsOptions.model_validate({"datapath": datapath}))
    await dut.up(lab.testbed, changes)
    before = await dut._read_passed()
    await dut.mark_passage()
    for way in dut.addressing(lab.testbed, 4):
        assert sent_through(lab, way) == FRAMES
    await dut.check_passage()
    assert (await dut._read_passed()).through - before.through >= 2 * FRAMES
    assert "Open vSwitch" in dut.disclosure()["version"]
    work = await dut.work()
    assert (work is not None and work.packets >= 2 * FRAMES) == (datapath == "dpdk")
    run_checked(("ovs-ofctl", "del-flows", dut._management, "in_port=1"))
    # Flows that the datapath has cached go when its revalidators have next run.
    assert any(sent_through(lab, dut.addressing(lab.testbed, 4)[0]) == 0 for _ in range(10))
    with pytest.raises(HostError, match="are not those that were set"):
        await dut.check_passage()
    assert await changes.undo_all() == []
    links = run_captured(("ip", "-n", lab.dut, "link", "show")).stdout
    assert "ovs" not in links
    assert "PROMISC" not in links
    assert BRIDGE not in links
    assert not Path(dut._folder).exists()
    assert not Path("/run/dpdk", file_prefix(changes.run_id)).exists()
    assert Path("/proc/sys/vm/nr_hugepages").read_text() == pages


def sent_through(lab: Wires, way: Addressing) -> int:
    """How many of ``FRAMES`` come out at the other port as they were sent."""
    frame = frame_of(way, 256)
    return len(lab.passed_this_way(way, frame, lambda got: got == frame, FRAMES))
