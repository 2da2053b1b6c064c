"""What is said of cards: their slots, their nodes, their links, their clocks, and how DPDK gets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.doctor.base import Interface, State, default_routes, default_routes_6, interfaces, parse_interfaces
from nicbench.doctor.checks import adapters
from nicbench.doctor.checks.xdp import Xdp, judge, judge_kernel, judge_lab
from nicbench.system.adapters.ethtool import parse_link_settings, parse_time_stamping
from nicbench.system.adapters.pci import parse_pci
from nicbench.system.xdp.abilities import Flags, Lack, abilities

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


# What the doctor says of XDP: one line for the kernel, for each interface, and for the veth pairs of a lab.

XDP_GOLDEN = Path(__file__).parent / "golden"
ROUTES = (XDP_GOLDEN / "route.txt").read_text()
ROUTES_6 = (XDP_GOLDEN / "route_ipv6.txt").read_text()
DRIVERS = (XDP_GOLDEN / "interfaces.txt").read_text()
FLAGS = (XDP_GOLDEN / "../../system/xdp/golden/flags.json").read_text()

NATIVE, GENERIC = Flags(0b1100111, 0b001, 0), Flags(0)
OLD_KERNEL = Lack("Linux 5.10 cannot make frames by XDP", "boot Linux 5.18 or newer")


def xdp_card(name: str = "eth1", driver: str = "igc", *, reaches_others: bool = False) -> Interface:
    return Interface(name, driver, None, reaches_others=reaches_others)


def test_generic_is_worth_a_warning_only_where_something_could_be_measured() -> None:
    can = abilities("r8169", GENERIC, (6, 12))
    check = judge(xdp_card(driver="r8169"), can, None)
    assert check.state is State.WARNING
    assert "PCI address" in check.text
    assert "cannot carry `driver: xdp`: r8169 does not run XDP programs itself" in check.text
    way_out = judge(xdp_card("eth0", "r8169", reaches_others=True), can, None)
    assert way_out.state is State.OK
    assert "not for measuring" in way_out.text


def test_one_line_says_what_an_interface_can() -> None:
    check = judge(xdp_card(), abilities("igc", NATIVE, (6, 18), queues=4), None)
    assert check.state is State.OK
    assert check.text == (
        "can carry `driver: xdp` (igc runs XDP programs itself since Linux 5.13, 4 queues, stamps received frames); "
        "AF_XDP is native: the driver copies each frame to the tester once"
    )


def test_the_details_have_everything_by_name_and_the_reason_where_there_is_one() -> None:
    details = judge(xdp_card(), abilities("igc", NATIVE, (6, 18), queues=4), None).details
    assert details["can_carry_xdp_tester"] is True
    assert "no_xdp_tester_because" not in details
    assert details["receive_metadata"] == ("time stamp",)
    assert details["af_xdp"] == "native"
    details = judge(xdp_card(), abilities("igc", NATIVE, (6, 18)), OLD_KERNEL).details
    assert details["can_carry_xdp_tester"] is False
    assert "5.18" in details["no_xdp_tester_because"]


def test_an_interface_is_not_blamed_for_its_kernel() -> None:
    check = judge(xdp_card(), abilities("igc", None, (5, 15)), OLD_KERNEL)
    assert check.state is State.OK
    assert check.text.startswith("could carry `driver: xdp` on another kernel (igc")
    assert judge_kernel(OLD_KERNEL).state is State.WARNING
    assert judge_kernel(None).state is State.OK


def test_a_lab_is_warned_of_where_veth_pairs_are_generic() -> None:
    assert judge_lab(abilities("veth", NATIVE, (6, 12)), None).state is State.OK
    assert judge_lab(abilities("veth", None, (4, 15)), None).state is State.WARNING
    # The stamp of a veth is no card's.
    assert "stamps" not in judge_lab(abilities("veth", NATIVE, (6, 12)), None).text


def test_interfaces_have_a_device_and_those_with_a_default_route_are_marked() -> None:
    assert parse_interfaces(DRIVERS) == [
        ("eth0", "virtio_net", "0000:00:04.0"),
        ("enp3s0f1np1", "ice", "0000:03:00.1"),
        ("usb0", "cdc_ether", None),
    ]
    assert default_routes(ROUTES) == {"eth0"}
    assert default_routes_6(ROUTES_6) == {"eth2"}


def machine(release: str) -> FakeHost:
    host = FakeHost(files={"/proc/net/route": ROUTES, "/proc/sys/kernel/osrelease": release})
    host.answer("sh -c", lambda command: DRIVERS if "readlink" in command[2] else "enp3s0f1np1 16\n")
    return host


async def test_a_machine_is_looked_at_interface_by_interface() -> None:
    host = machine("5.10.0-28-amd64\n")
    found = await interfaces(host)
    assert [(one.name, one.reaches_others) for one in found] == [
        ("enp3s0f1np1", False),
        ("eth0", True),
        ("usb0", False),
    ]
    checks = {check.name: check for check in await Xdp().examine(host)}
    assert "AF_XDP is zero-copy" in checks["XDP on enp3s0f1np1"].text
    assert "16 queues" in checks["XDP on enp3s0f1np1"].text
    assert "AF_XDP is native" in checks["XDP on eth0"].text
    assert checks["XDP on usb0"].state is State.WARNING
    assert "AF_XDP is native" in checks["XDP in a lab"].text
    assert "5.18" in checks["frames made by XDP"].text


async def test_the_kernels_own_word_counts_where_it_has_one() -> None:
    host = machine("6.18.0\n")
    host.local = False
    host.answer("python3 -I -", lambda _command: FLAGS)
    checks = {check.name: check for check in await Xdp().examine(host)}
    assert checks["XDP on eth0"].details["multi_buffer_receive"] is True
    assert checks["XDP on enp3s0f1np1"].details["receive_metadata"] is None
    assert all(not command[0].startswith("/") for command in host.commands)
