"""IPsec between two gateways: what this kernel refuses is shown without a key. Frames pass it in test_layers_vm.py."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lab import Wires
from tests.commands import run_captured, run_checked, run_tried
from tests.fakes import FakeHost, NotedChanges
from wire import frame_of, raw_socket, receive

from nicbench.core.errors import HostError, NotReadyError
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.duts._kernel import Passed, check_passage
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.encrypting import MIDDLE, Ipsec, IpsecOptions, Wireguard, WireguardOptions, passage_ruleset
from nicbench.tuning.stack import UndoStack

CIPHERS = ("aes-128-gcm", "aes-256-gcm", "aes-128-cbc-sha256")


@pytest.mark.parametrize("cipher", CIPHERS)
async def test_keys_go_by_standard_input_and_into_no_message(cipher: str) -> None:
    dut, host = Ipsec(IpsecOptions.model_validate({"cipher": cipher})), FakeHost()
    keys = dut._make_keys()
    secrets = [word for word in keys if word.startswith("0x")]
    await dut._add_state(host, NotedChanges(), 0, 0, keys)
    assert not any(secret in " ".join(command) for command in host.commands for secret in secrets)
    assert not any(secret in " ".join(dut._made) for secret in secrets)
    host.fail(("ip", "-batch"), "RTNETLINK answers: Function not implemented", status=2)
    with pytest.raises(NotReadyError, match=f"no security association of {cipher}") as caught:
        await dut._add_state(host, NotedChanges(), 0, 1, keys)
    assert "0x" not in str(caught.value)


@pytest.mark.lab
async def test_what_a_real_kernel_refuses_is_told_without_a_key(lab: Wires, changes: UndoStack) -> None:
    dut = Ipsec(IpsecOptions(offload="crypto"))  # by the port of a lab, which offloads nothing
    host = NetnsHost(LocalHost(), lab.dut)
    with pytest.raises(NotReadyError, match="no security association of aes-128-gcm with offload crypto") as caught:
        await dut._add_state(host, changes, 0, 0, dut._make_keys())
    assert re.search("[0-9a-f]{16}", str(caught.value)) is None
    assert await changes.undo_all() == []


@pytest.mark.lab
def test_the_kernel_takes_the_counters_of_the_wire(lab: Wires) -> None:
    text = passage_ruleset("d0", Ipsec.carrier)
    in_dut = ("ip", "netns", "exec", lab.dut, "nft")
    run_checked((*in_dut, "-f", "-"), input=text, text=True)
    shown = run_captured((*in_dut, "list", "ruleset")).stdout
    assert "ip protocol esp counter name" in shown


# WireGuard between two gateways: real frames pass it encrypted and arrive intact; what is broken is reported.


has_wireguard = pytest.mark.skipif(
    not (shutil.which("wireguard-go") and shutil.which("wg")), reason="needs wireguard-go and wireguard-tools"
)
FRAMES = 40


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (Passed(into=100, through=100, sent=110), None),
        (Passed(into=100, through=0, sent=0), "took 100 frames and gave none back"),
        (Passed(into=0, through=0, sent=100), "the ports sent 100, and only 0 of them"),
        (Passed(into=100, through=100, sent=100, plain=100), "100 frames went plain between the ends of the layer"),
    ],
)
def test_the_counters_must_agree(after: Passed, said: str | None) -> None:
    if said is None:
        check_passage(Passed(0, 0, 0), after, "the layer", "dut")
        return
    with pytest.raises(HostError, match=said):
        check_passage(Passed(0, 0, 0), after, "the layer", "dut")


async def test_a_kernel_without_wireguard_says_what_to_do() -> None:
    host = FakeHost()
    host.fail(("ip", "link", "add"), "Error: Unknown device type.", status=2)
    with pytest.raises(NotReadyError, match="no interface of the type wireguard") as caught:
        await Wireguard(WireguardOptions())._make_link(host, NotedChanges(), "nicbench-wg0", host, "wireguard")
    assert "implementation: user" in (caught.value.next_step or "")


@pytest.mark.lab
@has_wireguard
async def test_frames_pass_encrypted_both_ways_and_nothing_stays(lab: Wires, changes: UndoStack) -> None:
    dut = Wireguard(WireguardOptions(implementation="user"))
    await dut.up(lab.testbed, changes)
    await dut.mark_passage()
    forward, back = dut.addressing(lab.testbed, 4)
    with raw_socket(f"{lab.dut}-far", MIDDLE[1]) as middle:
        assert sent_through(lab, forward) == FRAMES
        on_wire = receive(middle, lambda frame: True, enough=FRAMES)
    assert len(on_wire) >= FRAMES
    assert not any(frame_of(forward, 256)[42:90] in frame for frame in on_wire)
    assert sent_through(lab, back) == FRAMES
    await dut.check_passage()
    with raw_socket(lab.dut, MIDDLE[0]) as wire:  # as a policy would that lets packets leave as they are
        for _ in range(FRAMES):
            wire.send(frame_of(forward, 256))
    with pytest.raises(HostError, match=f"{FRAMES} frames went plain between the ends of WireGuard"):
        await dut.check_passage()
    told = dut.disclosure()
    assert told["implementation"] == "user"
    assert "private-key" not in " ".join(told["commands"])
    assert await changes.undo_all() == []
    left = ip("-n", lab.dut, "-o", "link", "show").stdout + ip("-n", lab.dut, "rule").stdout + ip("netns").stdout
    assert not any(word in left for word in ("nicbench", "5191", f"{lab.dut}-far"))
    assert not Path("/var/run/wireguard/nicbench-wg0.sock").exists()


@pytest.mark.lab
@has_wireguard
async def test_a_wrong_key_and_a_way_past_it_are_told(lab: Wires, changes: UndoStack) -> None:
    dut = Wireguard(WireguardOptions(implementation="user"))
    await dut.up(lab.testbed, changes)
    forward, _ = dut.addressing(lab.testbed, 4)
    await dut.mark_passage()
    ip("-n", lab.dut, "rule", "del", "pref", "5191")
    assert sent_through(lab, forward) == FRAMES
    with pytest.raises(HostError, match="frames go past WireGuard"):
        await dut.check_passage()
    ip("-n", lab.dut, "rule", "add", "iif", "d0", "lookup", "5191", "pref", "5191")
    await dut.mend()
    key = subprocess.run(("wg", "genkey"), check=True, capture_output=True).stdout
    run_checked(("wg", "set", "nicbench-wg0", "private-key", "/dev/stdin"), input=key)
    await dut.mark_passage()
    assert sent_through(lab, forward) == 0
    with pytest.raises(HostError, match=r"WireGuard took [0-9]+ frames and gave (none|[1-4]) back"):
        await dut.check_passage()


def sent_through(lab: Wires, way: Addressing) -> int:
    """How many of ``FRAMES`` come out at the other port with their payload intact."""
    frame = frame_of(way, 256)
    return len(lab.passed_this_way(way, frame, lambda got: got[42:] == frame[42:], FRAMES))


def ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_tried(("ip", *arguments))
