"""Open vSwitch in user space: real frames pass its flows; a flow that is gone is told; nothing stays."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from lab import Wires
from wire import raw_socket, receive, udp_frame

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.fake import FakeHost
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.ovs import BRIDGE, Ovs, OvsOptions
from nicbench.tuning.stack import UndoStack

FRAMES = 40


async def test_a_kernel_without_it_says_what_to_do() -> None:
    dut = Ovs(OvsOptions())
    dut._host = FakeHost()
    dut._host.fail(("ovs-dpctl",), "ovs-dpctl: opening datapath: Protocol family not supported", status=1)
    with pytest.raises(NotReadyError, match="the kernel has no Open vSwitch") as caught:
        await dut._require_no_datapath()
    assert "datapath: user" in (caught.value.next_step or "")


@pytest.mark.lab
@pytest.mark.skipif(not shutil.which("ovs-vswitchd"), reason="needs openvswitch-switch")
async def test_frames_pass_both_ways_and_are_counted(lab: Wires, changes: UndoStack) -> None:
    dut = Ovs(OvsOptions(datapath="user"))
    await dut.up(lab.testbed, changes)
    before = await dut._read_passed()
    await dut.mark_passage()
    for way in dut.addressing(lab.testbed, 4):
        assert sent_through(lab, way) == FRAMES
    await dut.check_passage()
    assert (await dut._read_passed()).through - before.through >= 2 * FRAMES
    assert "Open vSwitch" in dut.disclosure()["version"]
    subprocess.run(("ovs-ofctl", "del-flows", dut._management, "in_port=1"), check=True)
    assert sent_through(lab, dut.addressing(lab.testbed, 4)[0]) == 0
    with pytest.raises(HostError, match="are not those that were set"):
        await dut.check_passage()
    assert await changes.undo_all() == []
    links = subprocess.run(("ip", "-n", lab.dut, "link", "show"), capture_output=True, text=True, check=True).stdout
    assert "ovs" not in links
    assert "PROMISC" not in links
    assert BRIDGE not in links
    assert not Path(dut._folder).exists()


def sent_through(lab: Wires, way: Addressing) -> int:
    """How many of ``FRAMES`` come out at the other port as they were sent."""
    frame = udp_frame(way.source_mac, way.destination_mac, way.source_address, way.destination_address, 256)
    with raw_socket(lab.tester, f"t{way.receive}") as listening, raw_socket(lab.tester, f"t{way.transmit}") as sending:
        for _ in range(FRAMES):
            sending.send(frame)
        return len(receive(listening, lambda got: got == frame, enough=FRAMES))
