"""VPP as a router: real frames pass it and are counted; a route that is gone is reported; nothing stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lab import DUT_MACS, Wires
from tests.commands import run_captured
from tests.fakes import FakeHost
from wire import frame_of

from nicbench.core.errors import HostError, NotReadyError
from nicbench.testbed.duts._dpdk import DutCores
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.vpp import (
    Vpp,
    VppOptions,
    own_mac,
    parse_errors,
    parse_interfaces,
    parse_runtime,
    startup_configuration,
    vppctl_beside,
)
from nicbench.tuning.stack import UndoStack

FRAMES = 40
REPORTS = 4
GOLDEN = Path(__file__).parent / "golden"
PROGRAM = shutil.which("vpp") or ""


async def test_a_command_that_vpp_refuses_ends_the_setup() -> None:
    dut, host = Vpp(VppOptions()), FakeHost()
    dut._host = host
    host.answer(("vppctl",), "create host-interface: unknown input `v2 name d0'\r\n")
    with pytest.raises(NotReadyError, match=r"VPP refused `create host-interface v2 name d0`: .* unknown input"):
        await dut._enter("create host-interface v2 name d0")
    host.answer(("vppctl",), "host-d0\r\n")
    await dut._enter("create host-interface v2 name d0")
    assert dut.disclosure()["commands"] == ["create host-interface v2 name d0"]


def test_workers_are_beside_the_main_thread_and_without_them_it_forwards() -> None:
    cores = DutCores(main=1, workers=(2, 3))
    assert "cpu { main-core 1 corelist-workers 2,3 }" in startup_configuration(VppOptions(workers=2), cores, "/tmp/x")
    assert "cpu { main-core 2 }" in startup_configuration(VppOptions(), cores, "/tmp/x")


def test_vpp_has_mac_addresses_of_its_own_and_the_client_beside_it() -> None:
    assert own_mac(DUT_MACS[0]) == "06:00:00:00:10:02"
    assert vppctl_beside("/opt/vpp/bin/vpp") == "/opt/vpp/bin/vppctl"
    assert vppctl_beside("vpp") == "vppctl"


def test_counters_are_read_as_vpp_shows_them() -> None:
    interfaces = parse_interfaces((GOLDEN / "vpp_show_interface.txt").read_text())
    assert interfaces["host-d0"]["rx packets"] == 40
    assert interfaces["host-d1"]["tx packets"] == 40
    assert interfaces["local0"] == {}
    assert parse_errors((GOLDEN / "vpp_show_errors.txt").read_text()) == {"ethernet-input: no error": 40}
    nodes = {node.name: node for node in parse_runtime((GOLDEN / "vpp_show_runtime.txt").read_text())}
    assert nodes["ip4-lookup"].vectors == 40
    assert nodes["ip4-lookup"].calls <= 40
    assert nodes["ip4-lookup"].cycles > 0


@pytest.mark.lab
@pytest.mark.skipif(not PROGRAM, reason="needs vpp in PATH")
@pytest.mark.parametrize("ip", [4, 6])
async def test_frames_are_routed_both_ways_and_are_counted(ip: int, lab: Wires, changes: UndoStack) -> None:
    dut = Vpp(VppOptions(program=PROGRAM))
    await dut.up(lab.testbed, changes)
    before = await dut._read_passed()
    await dut.mark_passage()
    for way in dut.addressing(lab.testbed, ip):
        assert sent_through(lab, way) == FRAMES
    await dut.check_passage()
    after = await dut._read_passed()
    # Of each interface VPP reports its multicast groups once, when it likes.
    for counted in (after.through - before.through, after.sent - before.sent):
        assert 2 * FRAMES <= counted <= 2 * FRAMES + REPORTS
    work = await dut.work()
    assert work.packets >= 2 * FRAMES
    assert work.packets_per_batch is not None
    assert 1 <= work.packets_per_batch <= FRAMES
    assert dut.disclosure()["version"].startswith("vpp v")

    forward = dut.addressing(lab.testbed, ip)[0]
    network = dut._ports[1].networks[0 if ip == 4 else 1]
    await dut._ask(f"ip route del {network}")
    await dut.mark_passage()
    assert sent_through(lab, forward) == 0
    assert sum((await dut.drops()).values()) >= FRAMES
    with pytest.raises(HostError, match=r"VPP took 4\d frames and gave (none|\d) back"):
        await dut.check_passage()

    assert await changes.undo_all() == []
    links = run_captured(("ip", "-n", lab.dut, "link", "show")).stdout
    assert "PROMISC" not in links
    assert not Path(dut._folder).exists()
    assert list(Path("/dev/shm").glob(f"{Path(dut._folder).name}*")) == []
    assert not Path(f"/proc/{dut._process.pid}").exists()


@pytest.mark.lab
async def test_without_vpp_the_run_says_where_to_get_it(lab: Wires, changes: UndoStack) -> None:
    with pytest.raises(NotReadyError, match="no program /nowhere/vpp") as caught:
        await Vpp(VppOptions(program="/nowhere/vpp")).up(lab.testbed, changes)
    assert "packagecloud.io/fdio" in (caught.value.next_step or "")


def sent_through(lab: Wires, way: Addressing) -> int:
    """How many of ``FRAMES`` come out at the other port, for its tester and with one hop less."""
    frame = frame_of(way, 256)
    hops = 22 if way.ip == 4 else 21
    return len(
        lab.passed_this_way(way, frame, lambda got: got[40:] == frame[40:] and got[hops] == frame[hops] - 1, FRAMES)
    )
