"""What an interface and a kernel can do with XDP: asked, understood, and explained where it lacks something."""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_checked
from tests.fakes import FakeHost

from nicbench.hosts.base import Completed
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.xdp import live_frames_trial, netdev_query
from nicbench.system.xdp.abilities import (
    Attempt,
    Flags,
    Mode,
    abilities,
    abilities_of,
    ask_flags,
    count_queues,
    interface_lacks,
    judge_card_stamps,
    judge_kernel,
    kernel_lacks,
    missing_capabilities,
    parse_attempt,
    parse_flags,
    parse_kernel,
    parse_queues,
    parse_received,
    try_live_frames,
    xdp_lacks,
)

# What the kernel says of XDP: netlink's answers, the attempt to make a frame, and a host that says nothing.

# Netlink answers of Linux 6.18 to NETDEV_CMD_DEV_GET: lo, a virtio_net that can do without a copy, and a veth whose
# peer has GRO.
LO = "0101000008000100010000000c00030000000000000000000c00050000000000000000000c0006000000000000000000"
VIRTIO = (
    "0101000008000100040000000c0003002b000000000000000c00050000000000000000000c00060000000000000000000800040001000000"
)
VETH = "0101000008000100030000000c00030067000000000000000c00050007000000000000000c0006000000000000000000"
OLD = "0101000008000100040000000c0003002b00000000000000"


# And to NETDEV_CMD_QSTATS_GET by queue: a receive queue of that virtio_net, and its transmit queue.
RECEIVED = "0c01000008000100040000000800020000000000080003000000000008000800f5f605000c0009005d78384703000000"
SENT = (
    "0c01000008000100040000000800020001000000080003000000000008000a0003eb0300"
    "08000b0005ff7f0108002100000000000800220000000000"
)


def golden(name: str) -> str:
    return (Path(__file__).parent / "golden" / name).read_text()


@pytest.mark.skipif(sys.byteorder != "little", reason="the answers were recorded on such a machine")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (LO, (1, {"features": 0, "receive_metadata": 0, "socket": 0})),
        (VIRTIO, (4, {"features": 0b101011, "receive_metadata": 0, "socket": 0})),
        (VETH, (3, {"features": 0b1100111, "receive_metadata": 0b111, "socket": 0})),
        (OLD, (4, {"features": 0b101011})),
    ],
)
def test_the_kernels_word_is_read_from_its_answers(answer: str, expected: tuple[int, dict[str, int]]) -> None:
    assert netdev_query.flags_of(bytes.fromhex(answer)) == expected


@pytest.mark.skipif(sys.byteorder != "little", reason="the answers were recorded on such a machine")
def test_the_frames_of_receive_queues_are_read_from_the_kernels_answers() -> None:
    assert netdev_query.received_of(bytes.fromhex(RECEIVED)) == (4, 0, 390_901)
    assert netdev_query.received_of(bytes.fromhex(SENT)) is None
    assert all(netdev_query.received_of(bytes.fromhex(RECEIVED)[:length]) is None for length in range(36))


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ('{"eth0": {"0": 390901}}', {"eth0": (390_901,)}),
        ('{"eth0": {"1": 5, "0": 7}, "eth1": {"1": 5}}', {"eth0": (7, 5)}),  # a queue that is missing makes it unknown
        ('{"eth0": {"0": "x"}, "eth1": {}, "eth2": 3}', {}),
        ("netdev: the kernel does not say", {}),
    ],
)
def test_queues_are_those_that_the_kernel_says_all_of(text: str, queues: dict[str, tuple[int, ...]]) -> None:
    assert parse_received(text) == queues


def test_an_answer_that_is_cut_short_says_nothing_and_ends() -> None:
    whole = bytes.fromhex(VIRTIO)
    assert all(netdev_query.flags_of(whole[:length]) is None for length in range(20))
    message = netdev_query._HEADER.pack(netdev_query._HEADER.size + len(whole), 30, 2, 1, 0) + whole
    assert [payload for _, payload in netdev_query.messages(message * 2)] == [whole, whole]
    assert list(netdev_query.messages(message[:-1])) == []
    assert list(netdev_query.messages(b"\0" * 64)) == []


def test_flags_that_an_older_kernel_does_not_know_of_are_unknown_and_not_zero() -> None:
    flags = parse_flags(golden("flags.json"))
    assert flags["eth0"] == Flags(43, 0, 0)
    assert flags["enp3s0f1np1"] == Flags(15, None, None)


@pytest.mark.parametrize("text", ["", "no", "[1]", "null", '{"eth0": "x"}', '{"eth0": {"features": true}}'])
def test_a_kernel_that_does_not_say_leaves_the_table(text: str) -> None:
    assert parse_flags(text) == {}


def test_an_attempt_has_worked_or_has_a_reason_or_was_not_made() -> None:
    assert parse_attempt(golden("attempt_works.json")) == Attempt(True)
    assert parse_attempt(golden("attempt.json")) == Attempt(False, "Operation not permitted")
    assert parse_attempt("python3: not found") == Attempt(None)


def test_versions_of_kernels_in_several_spellings() -> None:
    assert parse_kernel("6.1.0-21-amd64\n") == (6, 1)
    assert parse_kernel("5.14.0-427.el9.x86_64") == (5, 14)
    assert parse_kernel("") is None


async def test_another_machine_is_asked_by_its_own_python_and_nothing_is_copied_to_it() -> None:
    host = FakeHost()
    host.local = False
    host.answer(("python3", "-I", "-"), golden("flags.json"))
    assert (await ask_flags(host))["nbdoc0"].features == 103
    assert host.commands == [("python3", "-I", "-")]
    assert host.writes == []


async def test_a_host_without_python_does_not_say() -> None:
    host = FakeHost()
    host.local = False
    host.fail("python3", "not found", status=127)
    assert await ask_flags(host) == {}
    assert (await try_live_frames(host)).works is None


def test_the_attempt_asks_for_one_frame_that_is_dropped() -> None:
    """The offsets of ``union bpf_attr`` in include/uapi/linux/bpf.h."""
    load = live_frames_trial.load_attribute(0x1111, 0x2222)
    assert struct.unpack_from("=IIQQ", load) == (6, 2, 0x1111, 0x2222)
    run = live_frames_trial.run_attribute(9, 0x3333)
    assert struct.unpack_from("=I", run) == (9,)
    assert struct.unpack_from("=II", run, 8) == (60, 0)  # data_size_in, data_size_out
    assert struct.unpack_from("=Q", run, 16) == (0x3333,)
    assert struct.unpack_from("=I", run, 32) == (1,)  # repeat
    assert struct.unpack_from("=III", run, 64) == (1 << 1, 0, 1)  # flags, cpu, batch_size
    assert live_frames_trial._PROGRAM[:8] == struct.pack("=BBhi", 0xB7, 0, 0, 1)


def test_a_processor_whose_system_calls_are_not_known_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    live_frames_trial.main()
    assert capsys.readouterr().out == ""


# What an interface can do with XDP: by the kernel's own word, and by driver and version where it has none.


@pytest.mark.parametrize(
    ("driver", "flags", "kernel", "expected"),
    [
        ("ice", Flags(0b1111), (6, 12), Mode.ZERO_COPY),
        ("veth", Flags(0b100011), (6, 12), Mode.NATIVE),
        ("ice", Flags(0), (6, 12), Mode.GENERIC),  # the kernel's word counts more than the table
        ("ice", None, (5, 10), Mode.ZERO_COPY),
        ("ice", None, (4, 19), Mode.GENERIC),
        ("mlx5_core", None, (4, 19), Mode.NATIVE),
        ("nfp", None, (5, 18), Mode.ZERO_COPY),
        ("virtio_net", None, (6, 1), Mode.NATIVE),
        ("r8169", None, (6, 1), Mode.GENERIC),
        ("ice", None, None, Mode.GENERIC),
        ("ixgbevf", Flags(0b1), (6, 12), Mode.GENERIC),  # native, but it redirects nothing
    ],
)
def test_how_af_xdp_works(driver: str, flags: Flags | None, kernel: tuple[int, int] | None, expected: Mode) -> None:
    assert abilities(driver, flags, kernel).mode is expected


@pytest.mark.parametrize(
    ("driver", "flags", "kernel", "is_target", "with_program"),
    [
        ("virtio_net", Flags(0b101011), (6, 18), True, True),  # it says so once a program is attached
        ("virtio_net", Flags(0b101111), (6, 18), True, False),
        ("mlx4_core", Flags(0b11), (6, 18), False, False),
        ("veth", Flags(0b100011), (6, 18), False, False),  # its peer has neither GRO nor a program
        ("veth", Flags(0b1100111), (6, 18), True, False),
        ("virtio_net", None, (6, 1), True, True),
        ("veth", None, (6, 1), True, False),
        ("mlx4_core", None, (6, 1), False, False),
        ("igb", None, (5, 9), False, False),
        ("i40e", Flags(0), (6, 18), False, False),
    ],
)
def test_who_takes_redirected_frames(
    driver: str, flags: Flags | None, kernel: tuple[int, int], is_target: bool, with_program: bool
) -> None:
    can = abilities(driver, flags, kernel)
    assert (can.redirect_target, can.needs_program_as_target) == (is_target, with_program)


def test_metadata_and_frames_of_several_buffers_are_named_where_the_kernel_tells() -> None:
    can = abilities("mlx5_core", Flags(0b1101111, 0b101, 0b011), (6, 18), queues=8)
    assert can.receive_metadata == ("time stamp", "VLAN tag")
    assert can.transmit_metadata == ("time stamp", "checksum")
    assert (can.multi_buffer_receive, can.multi_buffer_transmit, can.queues) == (True, True, 8)
    assert abilities("ice", Flags(0b11, 0, 0), (6, 18)).receive_metadata == ()


def test_what_an_old_kernel_does_not_tell_is_unknown() -> None:
    can = abilities("mlx5_core", None, (6, 1))
    assert (can.receive_metadata, can.transmit_metadata, can.multi_buffer_receive) == (None, None, None)
    assert can.native_since == "4.9"
    assert abilities("mlx5_core", Flags(0b11), (6, 5)).receive_metadata is None


def test_queues_are_counted_where_the_interface_exists() -> None:
    assert parse_queues("eth0 1\nenp3s0f1np1 16\n") == {"eth0": 1, "enp3s0f1np1": 16}
    assert parse_queues("eth0 many\n\n") == {}


async def test_an_interface_is_looked_up_in_the_hosts_own_network() -> None:
    host = FakeHost(files={"/proc/sys/kernel/osrelease": "6.1.0-21-amd64\n"})
    host.answer("ethtool -i", "driver: igb\nversion: 6.1\n")
    host.answer("sh -c", "eth1 4\n")
    can = await abilities_of(host, "eth1")
    assert (can.driver, can.native, can.redirect_target, can.queues) == ("igb", True, True, 4)
    assert await count_queues(host, ("eth1",)) == {"eth1": 4}


# Whether the tester inside the kernel can work on an interface, and the reason where it cannot.

TARGET, NO_TARGET = Flags(0b1100111), Flags(0b100011)


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
        assert lack.next_step.endswith("use `driver: net_af_xdp`")


def test_a_veth_needs_gro_at_its_other_end() -> None:
    lack = interface_lacks("t0", abilities("veth", NO_TARGET, (6, 18)))
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
    assert "r8169" in lack.reason


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nbxdp{os.getpid()}"
    make = f"ip -n {name} link add a0 type veth peer name b0; ip -n {name} link set a0 up; ip -n {name} link set b0 up"
    run_checked(("ip", "netns", "add", name))
    try:
        run_checked(("sh", "-ec", make))
        yield name
    finally:
        run_checked(("ip", "netns", "delete", name))


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
