"""What the kernel says of XDP: netlink's answers, the attempt to make a frame, and a host that says nothing."""

from __future__ import annotations

import platform
import struct
import sys
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.system.xdp import live_frames_trial, netdev_query
from nicbench.system.xdp.asking import (
    Attempt,
    Flags,
    ask_flags,
    parse_attempt,
    parse_flags,
    parse_kernel,
    parse_received,
    try_live_frames,
)

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
