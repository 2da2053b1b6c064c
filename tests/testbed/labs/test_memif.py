"""The lab of shared memory: what it gives tester and DUT, and that it goes away. No DPDK is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.pattern import Pattern
from nicbench.testbed.labs.memif import MemifLab, MemifOptions, socket_folder
from nicbench.tuning.stack import UndoStack

STATUS = {"/proc/self/status": "Cpus_allowed_list:\t0-1\n"}


def root_host() -> FakeHost:
    host = FakeHost(files=STATUS)
    host.answer("id -u", "0\n")
    return host


async def test_the_tester_is_the_client_of_servers_in_a_folder_of_its_own(tmp_path: Path) -> None:
    host, changes = root_host(), UndoStack("nb-test", None, tmp_path)
    testbed = await MemifLab(MemifOptions(ring_frames=4096)).up(changes, host)
    folder = socket_folder("nb-test")
    assert ("mkdir", "-m", "700", folder) in host.commands
    for number, (near, far) in enumerate(zip(testbed.tester_ports, testbed.dut_ports, strict=True)):
        for vdev, role in ((near.engine["vdev"], "client"), (far.vdev, "server")):
            assert vdev.startswith(f"net_memif{number},role={role},id={number},socket={folder}/memif.sock")
            assert ",rsize=12," in vdev
        assert near.engine["lossless"] is True
    assert testbed.cores.worker == 0
    assert testbed.cores.dut == (1,)
    assert testbed.eal == ()
    await changes.undo_all()
    assert ("rm", "-rf", "--one-file-system", "--", folder) in host.commands


async def test_one_port_gives_frames_back_where_they_came_in(tmp_path: Path) -> None:
    testbed = await MemifLab(MemifOptions(topology="same-port")).up(UndoStack("x", None, tmp_path), root_host())
    assert len(testbed.tester_ports) == len(testbed.dut_ports) == 1


@pytest.mark.parametrize("topology", ["crossed", "same-port"])
async def test_there_may_be_more_ports_each_with_a_ring_of_its_own(topology: str, tmp_path: Path) -> None:
    lab = MemifLab(MemifOptions.model_validate({"topology": topology, "ports": 4}))
    testbed = await lab.up(UndoStack("x", None, tmp_path), root_host())
    sockets = {str(port.vdev).partition(",rsize")[0] for port in testbed.dut_ports}
    assert len(sockets) == len(testbed.tester_ports) == 4
    assert testbed.same_port == (topology == "same-port")


async def test_zero_copy_shares_the_testers_memory_as_one_file(tmp_path: Path) -> None:
    lab = MemifLab(MemifOptions(zero_copy=True))
    testbed = await lab.up(UndoStack("x", None, tmp_path), root_host())
    assert testbed.tester_ports[0].engine["vdev"].endswith("zero-copy=yes")
    assert testbed.eal == ("--single-file-segments",)
    assert lab.objections(tester_has_huge_pages=True, pattern=Pattern.ONE_TO_ONE) == ()
    (objection,) = lab.objections(tester_has_huge_pages=False, pattern=Pattern.ONE_TO_ONE)
    assert objection.key == "zero_copy"


async def test_it_has_no_sink_and_no_cable_of_its_own(tmp_path: Path) -> None:
    lab, changes = MemifLab(MemifOptions()), UndoStack("x", None, tmp_path)
    testbed = await lab.up(changes, root_host())
    async with lab.without_dut(testbed, changes) as sink, lab.cable(testbed, changes) as cable:
        assert (sink, cable) == (lab.has_sink, lab.has_cable) == (False, False)


async def test_without_root_it_says_what_works_without(tmp_path: Path) -> None:
    host = FakeHost(files=STATUS)
    host.answer("id -u", "1000\n")
    with pytest.raises(NotReadyError, match="needs root"):
        await MemifLab(MemifOptions()).up(UndoStack("x", None, tmp_path), host)


def test_a_ring_of_another_length_than_a_power_of_two_is_refused_with_its_neighbours() -> None:
    with pytest.raises(ValidationError, match="write 1024 or 2048"):
        MemifOptions(ring_frames=1500)


def test_the_folders_of_runs_differ_and_leave_room_for_the_sockets_name() -> None:
    assert socket_folder("one") != socket_folder("other")
    assert len(socket_folder("x" * 300) + "/memif.sock") < 108
