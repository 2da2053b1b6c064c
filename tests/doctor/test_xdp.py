"""What the doctor says of XDP: one line for the kernel, for each interface, and for the veth pairs of a lab."""

from __future__ import annotations

from pathlib import Path

from tests.fakes import FakeHost

from nicbench.doctor.base import State
from nicbench.doctor.checks._machine import Interface, default_routes, default_routes_6, interfaces, parse_interfaces
from nicbench.doctor.checks.xdp import Xdp, judge, judge_kernel, judge_lab
from nicbench.system.xdp.abilities import abilities
from nicbench.system.xdp.asking import Flags
from nicbench.system.xdp.tester import Lack

GOLDEN = Path(__file__).parent / "golden"
ROUTES = (GOLDEN / "route.txt").read_text()
ROUTES_6 = (GOLDEN / "route_ipv6.txt").read_text()
DRIVERS = (GOLDEN / "interfaces.txt").read_text()
FLAGS = (GOLDEN / "../../system/xdp/golden/flags.json").read_text()

NATIVE, GENERIC = Flags(0b1100111, 0b001, 0), Flags(0)
OLD_KERNEL = Lack("Linux 5.10 cannot make frames by XDP", "boot Linux 5.18 or newer")


def card(name: str = "eth1", driver: str = "igc", *, reaches_others: bool = False) -> Interface:
    return Interface(name, driver, None, reaches_others=reaches_others)


def test_generic_is_worth_a_warning_only_where_something_could_be_measured() -> None:
    can = abilities("r8169", GENERIC, (6, 12))
    check = judge(card(driver="r8169"), can, None)
    assert check.state is State.WARNING
    assert "PCI address" in check.text
    assert "cannot carry `driver: xdp`: r8169 does not run XDP programs itself" in check.text
    way_out = judge(card("eth0", "r8169", reaches_others=True), can, None)
    assert way_out.state is State.OK
    assert "not for measuring" in way_out.text


def test_one_line_says_what_an_interface_can() -> None:
    check = judge(card(), abilities("igc", NATIVE, (6, 18), queues=4), None)
    assert check.state is State.OK
    assert check.text == (
        "can carry `driver: xdp` (igc runs XDP programs itself since Linux 5.13, 4 queues, stamps received frames); "
        "AF_XDP is native: the driver copies each frame to the tester once"
    )


def test_the_details_have_everything_by_name_and_the_reason_where_there_is_one() -> None:
    details = judge(card(), abilities("igc", NATIVE, (6, 18), queues=4), None).details
    assert details["can_carry_xdp_tester"] is True
    assert "no_xdp_tester_because" not in details
    assert details["receive_metadata"] == ("time stamp",)
    assert details["af_xdp"] == "native"
    details = judge(card(), abilities("igc", NATIVE, (6, 18)), OLD_KERNEL).details
    assert details["can_carry_xdp_tester"] is False
    assert "5.18" in details["no_xdp_tester_because"]


def test_an_interface_is_not_blamed_for_its_kernel() -> None:
    check = judge(card(), abilities("igc", None, (5, 15)), OLD_KERNEL)
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
