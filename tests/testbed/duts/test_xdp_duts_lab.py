"""The DUTs made of XDP with real frames: what they forward, what they leave to the kernel, and what an undo leaves."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from lab import DUT_MACS, TESTER_MACS, Wires
from tests.commands import run_checked
from wire import checksum, frame_of, mac_bytes, raw_socket, receive, udp_frame

from nicbench.testbed.duts.xdp import XdpDut, XdpForward, XdpForwardOptions, XdpTx, XdpTxOptions
from nicbench.testbed.labs.veth import VethLab, VethOptions
from nicbench.tuning import bpf
from nicbench.tuning.stack import UndoStack

pytestmark = [pytest.mark.lab, pytest.mark.sampled(4, of="XDP DUTs")]

FRAMES = 20
MAC_BYTES = 12
HOP_LIMIT_AT = {4: 22, 6: 21}
SOURCE, DESTINATION = "198.18.64.0", "198.19.64.0"
DUTS = {"xdp-forward": lambda: XdpForward(XdpForwardOptions()), "xdp-tx": lambda: XdpTx(XdpTxOptions())}


def frame_to(destination: str, source: str = SOURCE, mac: str = DUT_MACS[0], size: int = 128) -> bytes:
    return udp_frame(TESTER_MACS[0], mac, source, destination, size)


def with_hop_limit(frame: bytes, hop_limit: int) -> bytes:
    """An IPv4 frame with another hop limit, and the header checksum that goes with it."""
    header = bytearray(frame[14:34])
    header[8], header[10:12] = hop_limit, b"\0\0"
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    return frame[:14] + bytes(header) + frame[34:]


def with_tags(frame: bytes) -> bytes:
    """The frame behind two tags, the outer one of 802.1ad."""
    return frame[:MAC_BYTES] + bytes.fromhex("88a800c8") + bytes.fromhex("81000064") + frame[MAC_BYTES:]


def exchange(lab: Wires, frame: bytes, listen_at: str = "t1") -> list[bytes]:
    """What comes out at a port of frames into the first one."""
    return lab.passed(frame, lambda got: got[-8:] == frame[-8:], FRAMES, end=listen_at)


async def left(dut: XdpDut) -> dict[str, int]:
    """What the program of the first port left to the kernel, the kernel's own chatter aside."""
    counts = await dut.left_to_kernel()
    named = {name.removeprefix("d0 "): frames for name, frames in counts.items() if name.startswith("d0 ")}
    return {name: frames for name, frames in named.items() if frames >= FRAMES}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hop_limit", [2, 64, 255])
@pytest.mark.parametrize("tagged", [False, True], ids=["untagged", "tagged"])
async def test_a_forwarded_frame_differs_in_hop_limit_checksum_and_macs_alone(
    hop_limit: int, tagged: bool, lab: Wires, changes: UndoStack
) -> None:
    dut = XdpForward(XdpForwardOptions())
    await dut.up(lab.testbed, changes)
    frame = with_hop_limit(frame_to(DESTINATION), hop_limit)
    expected = mac_bytes(TESTER_MACS[1]) + mac_bytes(DUT_MACS[1]) + with_hop_limit(frame, hop_limit - 1)[MAC_BYTES:]
    if tagged:
        frame, expected = with_tags(frame), with_tags(expected)
    got = exchange(lab, frame)
    # A packet socket is given the outer tag apart from the frame.
    assert got == [expected[:MAC_BYTES] + expected[MAC_BYTES + 4 :] if tagged else expected] * FRAMES
    assert await left(dut) == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("hook", ["native", "generic"])
async def test_the_last_swept_address_passes_in_either_hook(hook: str, ip: int, lab: Wires, changes: UndoStack) -> None:
    dut = XdpForward(XdpForwardOptions.model_validate({"hook": hook}))
    await dut.up(lab.testbed, changes)
    forward = dut.addressing(lab.testbed, ip)[0]
    destination = str(ip_address(forward.destination_address) + forward.destination_address_count - 1)
    frame = frame_to(destination, forward.source_address)
    got = exchange(lab, frame)
    assert [one[HOP_LIMIT_AT[ip]] for one in got] == [63] * FRAMES


@pytest.mark.parametrize("hook", ["native", "generic"])
async def test_a_sink_in_the_place_of_a_dut_is_in_the_driver_whatever_the_hook_of_the_dut(
    hook: str, lab: Wires, changes: UndoStack
) -> None:
    """Behind it every frame would be copied first, and the tester's ceiling would be that of the copying."""
    dut = XdpForward(XdpForwardOptions.model_validate({"hook": hook}))
    await dut.up(lab.testbed, changes)

    def attached() -> dict[str, Any]:
        shown = subprocess.run(
            ("ip", "-n", lab.dut, "-j", "link", "show", "dev", "d0"), check=True, capture_output=True
        )
        link = json.loads(shown.stdout)[0]
        return {"mode": link["xdp"]["mode"], "id": bpf.program_of_link(link)}

    before = attached()
    async with VethLab(VethOptions()).without_dut(lab.testbed, changes):
        assert attached()["mode"] == 1
        assert exchange(lab, frame_to(DESTINATION)) == []
    assert attached() == before
    assert len(exchange(lab, frame_to(DESTINATION))) == FRAMES


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (frame_to("203.0.113.1"), "no route"),
        (frame_to("2001:db8::1", "2001:2:0:100::1"), "no route"),
        (frame_to("198.19.0.77"), "no neighbour"),
        (with_hop_limit(frame_to(DESTINATION), 1), "hop limit reached"),
        (frame_to(DESTINATION, mac=DUT_MACS[1]), "not for this port"),
        (mac_bytes(DUT_MACS[0]) + mac_bytes(TESTER_MACS[0]) + b"\x88\xb5" + b"\0" * 50, "not IP"),
        (frame_to(DESTINATION).replace(b"\x08\x00\x45", b"\x08\x00\x46", 1), "IP options"),
        (frame_to(DESTINATION).replace(b"\x08\x00\x45", b"\x08\x00\x65", 1), "malformed"),
        (frame_to("198.18.0.1"), "no route"),
    ],
    ids=["no route", "no IPv6 route", "neighbour", "hop limit", "MAC", "not IP", "options", "malformed", "its own"],
)
async def test_what_the_program_cannot_forward_is_left_to_the_kernel_and_counted(
    frame: bytes, reason: str, lab: Wires, changes: UndoStack
) -> None:
    dut = XdpForward(XdpForwardOptions())
    await dut.up(lab.testbed, changes)
    exchange(lab, frame)
    assert await left(dut) == {reason: FRAMES}
    assert await dut.drops() == {}


async def test_a_frame_larger_than_the_next_port_takes_is_left_to_the_kernel(lab: Wires, changes: UndoStack) -> None:
    run_checked(("ip", "-n", lab.dut, "link", "set", "d1", "mtu", "1300"))
    dut = XdpForward(XdpForwardOptions())
    await dut.up(lab.testbed, changes)
    exchange(lab, frame_to(DESTINATION, size=1400))
    assert await left(dut) == {"longer than the MTU": FRAMES}


@pytest.mark.parametrize("port", [0, 1])
async def test_a_mirror_swaps_macs_alone(port: int, lab: Wires, changes: UndoStack) -> None:
    dut = XdpTx(XdpTxOptions())
    await dut.up(lab.testbed, changes)
    way = dut.returning(lab.testbed, 4)[port]
    assert (way.transmit, way.receive) == (port, port)
    frame = frame_of(way, 512)
    with raw_socket(lab.tester, f"t{port}") as both:
        for _ in range(FRAMES):
            both.send(frame)
        got = receive(both, lambda got: got[-8:] == frame[-8:], enough=FRAMES)
    assert got == [frame[6:12] + frame[:6] + frame[MAC_BYTES:]] * FRAMES


async def test_a_mirror_leaves_frames_to_groups_to_the_kernel(lab: Wires, changes: UndoStack) -> None:
    dut = XdpTx(XdpTxOptions())
    await dut.up(lab.testbed, changes)
    assert exchange(lab, frame_to(DESTINATION, mac="01:00:5e:00:00:01"), listen_at="t0") == []
    assert await left(dut) == {"to a group of stations": FRAMES}


@pytest.mark.parametrize("kind", DUTS)
async def test_an_undo_leaves_neither_program_nor_polling_threads(kind: str, lab: Wires, changes: UndoStack) -> None:
    host = lab.testbed.dut
    dut = DUTS[kind]()
    apart = replace(lab.testbed, cores=replace(lab.testbed.cores, shared=False))
    await dut.up(apart, changes)
    assert set(dut.disclosure()["polling_threads"]) == {"d0", "d1"}
    assert dut.cpus(apart) == apart.cores.dut
    assert await host.read_file("/sys/class/net/d0/threaded") == "1\n"
    assert await changes.undo_all() == []
    assert [await bpf.attached_program(host, device) for device in ("d0", "d1")] == [None, None]
    assert await host.read_file("/sys/class/net/d0/threaded") == "0\n"


async def test_threads_end_also_where_the_program_was_taken_away_before(lab: Wires, changes: UndoStack) -> None:
    host = lab.testbed.dut
    assert host is not None
    await XdpForward(XdpForwardOptions(polling_threads=True)).up(lab.testbed, changes)
    await bpf.detach(host, "d0")
    assert await changes.undo_all() == []
    assert await host.read_file("/sys/class/net/d0/threaded") == "0\n"


async def test_frames_pass_where_threads_poll_the_ports(lab: Wires, changes: UndoStack) -> None:
    dut = XdpForward(XdpForwardOptions(polling_threads=True))
    await dut.up(lab.testbed, changes)
    assert len(exchange(lab, frame_to(DESTINATION))) == FRAMES


async def test_without_threads_the_senders_cpu_is_not_the_duts(lab: Wires, changes: UndoStack) -> None:
    dut = XdpForward(XdpForwardOptions(polling_threads=False))
    await dut.up(lab.testbed, changes)
    assert dut.cpus(replace(lab.testbed, cores=replace(lab.testbed.cores, shared=False))) == ()
