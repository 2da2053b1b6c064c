"""What is said of cards: their slots, their nodes, their links, their clocks, and how DPDK gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.doctor.base import State
from nicbench.doctor.checks import adapters
from nicbench.doctor.checks._machine import Interface
from nicbench.system.adapters.ethtool import parse_link_settings, parse_time_stamping
from nicbench.system.adapters.pci import parse_pci

GOLDEN = Path(__file__).parents[1] / "system" / "adapters" / "golden"
ADDRESS = "0000:af:00.0"
SYSFS = (GOLDEN / "mlx5" / "sysfs.txt").read_text()
PORT = Interface("ens3f0np0", "mlx5_core", ADDRESS, reaches_others=False)
LISTED = f"/sys/class/net/ens3f0np0/device ../../../../bus/pci/drivers/mlx5_core /sys/devices/pci0000:ae/{ADDRESS}\n"


def card(driver: str = "mlx5_core", **facts: Any) -> dict[str, dict[str, Any]]:
    """The golden ConnectX-5, x8 in a slot of x8 where it could x16, at node 1; with other facts."""
    return {ADDRESS: {**parse_pci(SYSFS)[ADDRESS], "driver": driver, **facts}}


def test_a_card_in_a_narrow_slot_is_told_what_the_slot_costs() -> None:
    (check,) = adapters.judge_slots(card(), [PORT])
    assert check.state is State.WARNING
    assert check.name == f"PCI Express of ens3f0np0 ({ADDRESS})"
    assert "x8 at 8 GT/s (63.0 Gb/s each way), and the card could x16" in check.text
    assert "Its slot gives x8" in check.text


def test_a_link_that_came_up_slow_in_a_good_slot_is_reseated() -> None:
    possible = card()[ADDRESS]["link_possible"]
    (check,) = adapters.judge_slots(card(slot_possible=possible), [PORT])
    assert check.state is State.WARNING
    assert "Reseat it" in check.text
    (good,) = adapters.judge_slots(card(link=possible), [])
    assert good.state is State.OK
    assert good.name.endswith(ADDRESS)


def test_a_virtual_card_has_no_slot() -> None:
    (check,) = adapters.judge_slots(card(link=None), [PORT])
    assert check.state is State.OK


def test_a_card_at_another_node_is_told_with_the_cores_that_are_near() -> None:
    (check,) = adapters.judge_nearness(2, card(), [PORT], (0, 1))
    assert check.state is State.WARNING
    assert "at node 1 (CPUs 14-27,42-55), and nicbench would measure on 0-1" in check.text
    assert check.mend_command == "taskset --cpu-list 14-27,42-55 nicbench run BENCH.yaml"
    assert adapters.judge_nearness(2, card(), [PORT], (14, 15))[0].state is State.OK
    assert adapters.judge_nearness(1, card(), [PORT], (0, 1))[0].text.startswith("one node")
    assert adapters.judge_nearness(2, card(numa_node=None), [PORT], (0, 1))[0].state is State.OK


@pytest.mark.parametrize(
    ("driver", "loaded", "loadable", "state", "mend"),
    [
        ("vfio-pci", ["vfio-pci"], [], State.OK, None),
        ("mlx5_core", [], [], State.OK, None),
        ("ice", ["vfio-pci"], [], State.WARNING, f"dpdk-devbind.py --bind=vfio-pci {ADDRESS}"),
        ("ice", [], ["vfio-pci"], State.WARNING, f"modprobe vfio-pci && dpdk-devbind.py --bind=vfio-pci {ADDRESS}"),
        ("ice", [], [], State.WARNING, None),
    ],
)
def test_how_dpdk_gets_a_card(
    driver: str, loaded: list[str], loadable: list[str], state: State, mend: str | None
) -> None:
    check = adapters.judge_dpdk_drivers(card(driver), [PORT], loaded=loaded, loadable=loadable, iommu=True)
    assert (check.state, check.mend_command) == (state, mend)


def test_without_an_iommu_the_unsafe_way_is_called_so() -> None:
    new = adapters.judge_dpdk_drivers(card("ice"), [], loaded=[], loadable=["vfio-pci"], iommu=False)
    assert (new.mend_command or "").startswith("modprobe vfio enable_unsafe_noiommu_mode=1 && modprobe vfio-pci && ")
    old = adapters.judge_dpdk_drivers(card("ice"), [], loaded=["vfio-pci"], loadable=[], iommu=False)
    assert (old.mend_command or "").startswith("echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode && ")
    other = adapters.judge_dpdk_drivers(card("ice"), [], loaded=["uio_pci_generic"], loadable=[], iommu=False)
    assert other.mend_command == f"dpdk-devbind.py --bind=uio_pci_generic {ADDRESS}"


def link(name: str, **changed: Any) -> dict[str, Any]:
    return {**parse_link_settings((GOLDEN / name / "settings.txt").read_text()), **changed}


def test_a_link_at_its_ports_speed_is_well() -> None:
    assert adapters.judge_links("ens3f0np0", link("mlx5")).text == "100 Gb/s, full duplex"
    assert adapters.judge_links("eno1", link("igb")).state is State.OK


def test_a_link_below_its_ports_speed_says_which_end_to_change() -> None:
    ours = adapters.judge_links("eth0", link("i40e"))
    assert ours.state is State.WARNING
    assert "runs at 10 Gb/s and could at 25 Gb/s" in ours.text
    assert ours.mend_command == "ethtool --change eth0 autoneg on"
    theirs = adapters.judge_links("eno1", link("igb", speed_bits_per_s=10**8, partner_modes=["100baseT/Full"]))
    assert "The other end offers 100 Mb/s at most" in theirs.text
    assert theirs.mend_command is None
    neither = adapters.judge_links("eno1", link("igb", speed_bits_per_s=10**8))
    assert "Look at the other end" in neither.text


def test_half_duplex_is_no_port_to_measure() -> None:
    check = adapters.judge_links("eno1", link("igb", duplex="half"))
    assert check.state is State.WARNING
    assert "half duplex" in check.text


def test_a_port_without_a_cable_is_no_fault_but_is_said() -> None:
    check = adapters.judge_links("ens801f0", link("ice"))
    assert check.state is State.OK
    assert check.text.startswith("none (No cable)")
    assert "does not report a speed" in adapters.judge_links("eth0", link("virtio_net")).text


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("ice", "/dev/ptp0 stamps every frame"),
        ("ixgbe", "/dev/ptp1 stamps frames of PTP only"),
        ("veth", "none that stamps frames"),
    ],
)
def test_whose_clock_stamps_the_frames_of_a_test(card: str, said: str) -> None:
    stamping = parse_time_stamping((GOLDEN / card / "T.txt").read_text())
    assert adapters.judge_hardware_clocks("eth1", stamping).text.startswith(said)


async def test_a_server_with_one_card_is_examined_from_its_own_words() -> None:
    def read(command: tuple[str, ...]) -> str:
        if "thread_siblings" in command[2]:
            return ""  # no hyperthreads
        return SYSFS if "/sys/bus/pci" in command[2] else LISTED

    host = FakeHost()
    host.answer("sh -c", read)
    host.answer("ethtool ens3f0np0", (GOLDEN / "mlx5" / "settings.txt").read_text())
    host.answer("ethtool --show-time-stamping", "netlink error: Operation not supported\n")
    found = {}
    for examination in (adapters.Slots(), adapters.Links(), adapters.HardwareClocks(), adapters.Nearness()):
        found |= {check.name: check.text for check in await examination.examine(host)}
    assert "Its slot gives x8" in found[f"PCI Express of ens3f0np0 ({ADDRESS})"]
    assert found["link of ens3f0np0"] == "100 Gb/s, full duplex"
    assert found["hardware clock of ens3f0np0"].startswith("mlx5_core has none")


async def test_a_machine_without_a_card_has_nothing_to_mend() -> None:
    for examination in (
        adapters.Slots(),
        adapters.Links(),
        adapters.HardwareClocks(),
        adapters.Nearness(),
        adapters.DpdkDrivers(),
    ):
        (check,) = await examination.examine(FakeHost())
        assert (check.state, check.mend_command) == (State.OK, None)
