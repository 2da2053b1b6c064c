"""Every DUT kind with real frames: both directions, IPv4 and IPv6, the smallest and the largest frame."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from ipaddress import ip_address

import pytest
from lab import DUT_MACS, TESTER_MACS, Wires
from tests.commands import run_captured
from wire import frame_of

from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.bridge import Bridge, BridgeOptions
from nicbench.testbed.duts.external import External, ExternalOptions
from nicbench.testbed.duts.kernel_forward import KernelForward, KernelForwardOptions
from nicbench.testbed.duts.policer import Policer, PolicerOptions
from nicbench.testbed.duts.xdp import XdpForward, XdpForwardOptions
from nicbench.tuning.stack import UndoStack

pytestmark = pytest.mark.lab

DUTS = {
    "policer": lambda: Policer(PolicerOptions()),
    "kernel-forward": lambda: KernelForward(KernelForwardOptions()),
    "bridge": lambda: Bridge(BridgeOptions()),
    "xdp-forward": lambda: XdpForward(XdpForwardOptions()),
}
ROUTERS = ("kernel-forward", "xdp-forward")
FRAMES = 20
HOP_LIMIT_AT = {4: 22, 6: 21}
SIZES = {4: (64, 1518), 6: (82, 1518)}


def delivered(lab: Wires, addressing: Addressing, frame: bytes) -> list[bytes]:
    """Sends the frame some times and gives what came out at the other port, the kernel's own chatter left aside."""
    return lab.passed_this_way(addressing, frame, lambda got: len(got) == len(frame) and got[-8:] == frame[-8:], FRAMES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("kind", DUTS)
async def test_every_frame_comes_out_at_the_other_port(kind: str, ip: int, lab: Wires, changes: UndoStack) -> None:
    dut = DUTS[kind]()
    await dut.up(lab.testbed, changes)
    directions = dut.addressing(lab.testbed, ip)
    assert [(one.transmit, one.receive) for one in directions] == [(0, 1), (1, 0)]
    for addressing in directions:
        for size in SIZES[ip]:
            frame = frame_of(addressing, size)
            assert len(delivered(lab, addressing, frame)) == FRAMES, (addressing, size)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("kind", ROUTERS)
async def test_a_router_puts_in_its_own_macs_and_takes_one_hop(
    kind: str, ip: int, lab: Wires, changes: UndoStack
) -> None:
    router = DUTS[kind]()
    await router.up(lab.testbed, changes)
    for addressing in router.addressing(lab.testbed, ip):
        frame = frame_of(addressing, 128)
        got = delivered(lab, addressing, frame)[0]
        assert got[:6].hex(":") == TESTER_MACS[addressing.receive]
        assert got[6:12].hex(":") == DUT_MACS[addressing.receive]
        assert got[HOP_LIMIT_AT[ip]] == frame[HOP_LIMIT_AT[ip]] - 1


@pytest.mark.parametrize("kind", ["policer", "bridge"])
async def test_a_switch_and_a_policer_change_nothing_in_a_frame(kind: str, lab: Wires, changes: UndoStack) -> None:
    dut = DUTS[kind]()
    await dut.up(lab.testbed, changes)
    addressing = dut.addressing(lab.testbed, 4)[0]
    frame = frame_of(addressing, 512)
    assert delivered(lab, addressing, frame) == [frame] * FRAMES


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ip", [4, 6])
async def test_the_last_swept_address_passes_too(ip: int, lab: Wires, changes: UndoStack) -> None:
    router = KernelForward(KernelForwardOptions())
    await router.up(lab.testbed, changes)
    for addressing in router.addressing(lab.testbed, ip):
        last = replace(
            addressing,
            source_address=str(ip_address(addressing.source_address) + addressing.source_address_count - 1),
            destination_address=str(
                ip_address(addressing.destination_address) + addressing.destination_address_count - 1
            ),
        )
        assert len(delivered(lab, last, frame_of(last, 128))) == FRAMES


async def test_a_router_says_nothing_by_itself_once_it_is_up(lab: Wires, changes: UndoStack) -> None:
    """A frame of its own within a trial would be lost at the places where those of the test are."""

    def said() -> list[str]:
        command = ("ip", "netns", "exec", lab.dut, "cat", "/proc/net/snmp", "/proc/net/snmp6")
        counters = run_captured(command).stdout.splitlines()
        return [line for line in counters if "Out" in line or line.startswith("Ip")]

    await KernelForward(KernelForwardOptions()).up(lab.testbed, changes)
    await asyncio.sleep(0.1)
    before = said()
    await asyncio.sleep(1.5)
    assert said() == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", DUTS)
async def test_undoing_leaves_the_namespace_as_it_was(kind: str, lab: Wires, changes: UndoStack) -> None:
    before = picture(lab.dut)
    dut = DUTS[kind]()
    await dut.up(lab.testbed, changes)
    assert picture(lab.dut) != before
    assert await changes.undo_all() == []
    assert picture(lab.dut) == before


async def test_an_external_dut_is_addressed_by_its_macs_and_left_alone(lab: Wires, changes: UndoStack) -> None:
    """Somebody else made this router; nicbench only sends through it."""
    await KernelForward(KernelForwardOptions()).up(lab.testbed, changes)
    before = picture(lab.dut)
    dut = External(ExternalOptions(macs=DUT_MACS))
    await dut.up(lab.testbed, changes)
    for addressing in dut.addressing(lab.testbed, 4):
        assert len(delivered(lab, addressing, frame_of(addressing, 64))) == FRAMES
    assert picture(lab.dut) == before


def picture(namespace: str) -> dict[str, object]:
    """Links, addresses, routes, neighbours and settings, without what changes by itself."""

    def shown(*arguments: str) -> object:
        done = run_captured(("ip", "-n", namespace, "-j", *arguments))
        return json.loads(done.stdout or "[]")

    wanted = (
        "ip_forward$",
        "rp_filter",
        r"\.forwarding",
        "disable_ipv6",
        "accept_dad",
        "addr_gen_mode",
        "solicitations$",
        "unsolicited_report_interval$",
    )
    settings = run_captured(("ip", "netns", "exec", namespace, "sysctl", "-a", "--pattern", "|".join(wanted)))
    links = shown("-d", "link", "show")
    assert isinstance(links, list)
    return {
        "links": [(link["ifname"], link.get("master"), "xdp" in link and "prog" in link["xdp"]) for link in links],
        "addresses": [
            (one["ifname"], sorted(f"{a['local']}/{a['prefixlen']}" for a in one["addr_info"])) for one in shown("addr")
        ],
        "routes": [shown("-4", "route", "show", "table", "all"), shown("-6", "route", "show", "table", "all")],
        "neighbours": shown("neigh", "show", "nud", "permanent"),
        "settings": settings.stdout,
    }
