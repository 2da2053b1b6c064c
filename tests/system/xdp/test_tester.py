"""Whether the tester inside the kernel can work on an interface, and the reason where it cannot."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.xdp.abilities import abilities
from nicbench.system.xdp.asking import Attempt, Flags
from nicbench.system.xdp.tester import (
    interface_lacks,
    judge_card_stamps,
    judge_kernel,
    kernel_lacks,
    missing_capabilities,
    xdp_lacks,
)

TARGET, NO_TARGET = Flags(0b1100111), Flags(0b100011)


def golden(name: str) -> str:
    return (Path(__file__).parent / "golden" / name).read_text()


@pytest.mark.parametrize(
    ("kernel", "attempt", "word"),
    [
        ((6, 18), Attempt(True), None),
        ((5, 14), Attempt(True), None),  # a distribution that added it to an old kernel
        ((5, 18), Attempt(None), None),  # nobody could try: by version
        ((5, 17), Attempt(None), "5.18"),
        ((5, 17), Attempt(False, "Invalid argument"), "5.18"),
        ((6, 18), Attempt(False, "Operation not permitted"), "Operation not permitted"),
        (None, Attempt(None), "cannot make frames"),
        (None, Attempt(True), None),
    ],
)
def test_a_kernel_makes_frames_or_there_is_a_reason(
    kernel: tuple[int, int] | None, attempt: Attempt, word: str | None
) -> None:
    lack = judge_kernel(kernel, attempt)
    assert (lack is None) if word is None else (lack is not None and word in str(lack))


def test_every_reason_ends_with_what_to_do() -> None:
    lacks = [
        judge_kernel((5, 10), Attempt(None)),
        judge_kernel((6, 18), Attempt(False)),
        interface_lacks("eth1", abilities("r8169", Flags(0), (6, 18))),
        interface_lacks("eth1", abilities("mlx4_core", Flags(0b11), (6, 18))),
        interface_lacks("eth1", abilities("", None, (6, 18))),
        interface_lacks("t0", abilities("veth", NO_TARGET, (6, 18))),
    ]
    for lack in lacks:
        assert lack is not None
        assert lack.next_step.endswith("use `driver: net_af_xdp`")


def test_a_veth_needs_gro_at_its_other_end() -> None:
    lack = interface_lacks("t0", abilities("veth", NO_TARGET, (6, 18)))
    assert lack is not None
    assert "gro on" in lack.next_step
    assert interface_lacks("t0", abilities("veth", TARGET, (6, 18))) is None


def test_a_card_that_takes_redirected_frames_once_a_program_is_attached_can_carry_it() -> None:
    assert interface_lacks("eth0", abilities("virtio_net", Flags(0b101011), (6, 18))) is None


@pytest.mark.parametrize(
    ("link", "metadata", "words"),
    [
        ({}, 1, "no card stands behind p0"),
        ({"parentbus": "netdevsim", "parentdev": "netdevsim1"}, 1, "no card stands behind p0"),
        ({"parentbus": "pci", "parentdev": "0000:03:00.0"}, 2, "igb gives XDP no time stamps"),
        ({"parentbus": "pci", "parentdev": "0000:03:00.0"}, None, "does not say"),
    ],
    ids=["virtual", "simulated", "a driver without stamps", "an old kernel"],
)
def test_a_port_without_a_card_s_stamps_is_refused_with_the_reason(
    link: dict[str, str], metadata: int | None, words: str
) -> None:
    flags = None if metadata is None else Flags(0b111, receive_metadata=metadata)
    lack = judge_card_stamps("p0", link, abilities("igb", flags, (6, 12)))
    assert lack is not None
    assert words in lack.reason
    assert "`timestamps: tsc`" in lack.next_step


def test_a_card_whose_driver_gives_its_stamps_to_xdp_may_stamp() -> None:
    link = {"parentbus": "pci", "parentdev": "0000:03:00.0"}
    assert judge_card_stamps("p0", link, abilities("igc", Flags(0b111, receive_metadata=1), (6, 12))) is None


def test_rights_are_those_of_the_process() -> None:
    assert missing_capabilities(golden("status_root.txt")) == ()
    assert missing_capabilities(golden("status_container.txt")) == ("CAP_NET_ADMIN", "CAP_PERFMON", "CAP_BPF")
    # CAP_NET_ADMIN and CAP_SYS_ADMIN alone, as before Linux 5.8
    assert missing_capabilities("CapEff:\t0000000000201000\n") == ()
    assert missing_capabilities("") == ()


async def test_a_container_without_the_rights_is_told_so_and_nothing_is_tried() -> None:
    host = FakeHost(files={"/proc/self/status": golden("status_container.txt")})
    lack = await xdp_lacks(host, "eth1")
    assert lack is not None
    assert "CAP_BPF" in lack.reason
    assert host.commands == []


async def test_an_interface_of_a_host_that_has_no_python_is_judged_by_driver_and_version() -> None:
    host = FakeHost(files={"/proc/sys/kernel/osrelease": "6.1.0-21-amd64\n"})
    host.local = False
    host.answer("python3", Completed(("python3",), 127, "", "not found"))
    host.answer("ethtool -i", "driver: igb\n")
    assert await xdp_lacks(host, "eth1") is None
    host.answer("ethtool -i", "driver: r8169\n")
    lack = await xdp_lacks(host, "eth1")
    assert lack is not None
    assert "r8169" in lack.reason


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nbxdp{os.getpid()}"
    make = f"ip -n {name} link add a0 type veth peer name b0; ip -n {name} link set a0 up; ip -n {name} link set b0 up"
    subprocess.run(("ip", "netns", "add", name), check=True)
    try:
        subprocess.run(("sh", "-ec", make), check=True)
        yield name
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=True)


@pytest.mark.lab
async def test_a_real_veth_carries_it_once_its_other_end_has_gro(namespace: str) -> None:
    host = NetnsHost(LocalHost(), namespace)
    lack = await kernel_lacks(host)
    if lack is not None:
        pytest.skip(str(lack))
    before = await xdp_lacks(host, "a0")
    await host.run(("ethtool", "-K", "b0", "gro", "on"))
    assert await xdp_lacks(host, "a0") is None
    assert before is None or "gro on" in before.next_step  # before Linux 6.3 nobody says
    missing = await xdp_lacks(host, "c0")
    assert missing is not None
