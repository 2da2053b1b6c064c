"""What is said of AF_XDP on an interface: by the kernel's own word, and by driver and version where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.doctor import _netdev
from nicbench.doctor.base import State
from nicbench.doctor.checks._interfaces import Interface, default_routes, default_routes_6, interfaces, parse_interfaces
from nicbench.doctor.checks.af_xdp import AfXdp, Mode, judge, judge_lab, kernel_version, mode, parse_features
from nicbench.hosts.fake import FakeHost


def golden(name: str) -> str:
    return (Path(__file__).parent / "golden" / name).read_text()


# Netlink answers of Linux 6.18 to NETDEV_CMD_DEV_GET: lo, and a virtio_net that can do without a copy.
LO = "0101000008000100010000000c00030000000000000000000c00050000000000000000000c0006000000000000000000"
VIRTIO = (
    "0101000008000100040000000c0003002b000000000000000c00050000000000000000000c00060000000000000000000800040001000000"
)
ROUTES = golden("route.txt")
ROUTES_6 = golden("route_ipv6.txt")
DRIVERS = golden("interfaces.txt")


def test_the_kernels_word_is_read_from_its_answers() -> None:
    assert _netdev.features_of(bytes.fromhex(LO)) == (1, 0)
    assert _netdev.features_of(bytes.fromhex(VIRTIO)) == (4, 0b101011)


def test_an_answer_that_is_cut_short_says_nothing_and_ends() -> None:
    whole = bytes.fromhex(VIRTIO)
    assert all(_netdev.features_of(whole[:length]) is None for length in range(20))
    message = _netdev._HEADER.pack(_netdev._HEADER.size + len(whole), 30, 2, 1, 0) + whole
    assert [payload for _, payload in _netdev.messages(message * 2)] == [whole, whole]
    assert list(_netdev.messages(message[:-1])) == []
    assert list(_netdev.messages(b"\0" * 64)) == []


@pytest.mark.parametrize(
    ("driver", "features", "kernel", "expected"),
    [
        ("ice", 0b1111, (6, 12), Mode.ZERO_COPY),
        ("veth", 0b100011, (6, 12), Mode.NATIVE),
        ("ice", 0, (6, 12), Mode.GENERIC),  # the kernel's word counts more than the table
        ("ice", None, (5, 10), Mode.ZERO_COPY),
        ("ice", None, (4, 19), Mode.GENERIC),
        ("mlx5_core", None, (4, 19), Mode.NATIVE),
        ("virtio_net", None, (6, 1), Mode.NATIVE),
        ("r8169", None, (6, 1), Mode.GENERIC),
        ("ice", None, None, Mode.GENERIC),
    ],
)
def test_the_mode_of_an_interface(
    driver: str, features: int | None, kernel: tuple[int, int] | None, expected: Mode
) -> None:
    assert mode(driver, features, kernel) is expected


def test_generic_is_worth_a_warning_only_where_something_could_be_measured() -> None:
    card = judge(Interface("eth1", "r8169", None, reaches_others=False), Mode.GENERIC)
    assert card.state is State.WARNING
    assert "PCI address" in card.text
    way_out = judge(Interface("eth0", "r8169", None, reaches_others=True), Mode.GENERIC)
    assert way_out.state is State.OK
    assert "not for measuring" in way_out.text
    assert judge_lab(Mode.NATIVE).state is State.OK
    assert judge_lab(Mode.GENERIC).state is State.WARNING


@pytest.mark.parametrize("text", ["", "no", "[1]", "null", '{"eth0": "x"}'])
def test_a_kernel_that_does_not_say_leaves_the_table(text: str) -> None:
    assert parse_features(text) == {}


def test_versions_of_kernels_in_several_spellings() -> None:
    assert kernel_version("6.1.0-21-amd64\n") == (6, 1)
    assert kernel_version("5.14.0-427.el9.x86_64") == (5, 14)
    assert kernel_version("") is None


def test_interfaces_have_a_device_and_those_with_a_default_route_are_marked() -> None:
    assert parse_interfaces(DRIVERS) == [
        ("eth0", "virtio_net", "0000:00:04.0"),
        ("enp3s0f1np1", "ice", "0000:03:00.1"),
        ("usb0", "cdc_ether", None),
    ]
    assert default_routes(ROUTES) == {"eth0"}
    assert default_routes_6(ROUTES_6) == {"eth2"}


async def test_a_machine_is_looked_at_interface_by_interface() -> None:
    files = {"/proc/net/route": ROUTES, "/proc/sys/kernel/osrelease": "5.10.0-28-amd64\n"}
    host = FakeHost(files=files)
    host.answer("sh -c", DRIVERS)
    found = await interfaces(host)
    assert [(one.name, one.reaches_others) for one in found] == [
        ("enp3s0f1np1", False),
        ("eth0", True),
        ("usb0", False),
    ]
    checks = {check.name: check for check in await AfXdp().examine(host)}
    assert checks["AF_XDP on enp3s0f1np1"].text.startswith("zero-copy (ice)")
    assert checks["AF_XDP on eth0"].text.startswith("native (virtio_net)")
    assert checks["AF_XDP in a lab"].text.startswith("native on veth pairs")
