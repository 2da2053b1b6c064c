"""NAT by nftables: its rules, its refusals, and real frames with another source address and port."""

from __future__ import annotations

import re
import subprocess
from ipaddress import ip_address
from pathlib import Path

import pytest
from lab import Wires
from pydantic import ValidationError
from tests.commands import run_tried
from tests.fakes import FakeHost
from wire import frame_of

from nicbench.core.errors import NotReadyError
from nicbench.testbed.duts._kernel import ForwardingPort
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.kernel_forward import (
    NAT_TABLE,
    Nat,
    NatOptions,
    nat_ruleset,
    pool_of,
    set_limit,
    set_up_rules,
)
from nicbench.tuning.stack import UndoStack

OUTSIDE = ForwardingPort("d1", "02:00:00:00:11:02", "02:00:00:00:11:01", ("198.19.0.1/24", "2001:2:0:8000::1/64"), ())
LIMIT = "/proc/sys/net/netfilter/nf_conntrack_max"


def translating(**options: object) -> list[str]:
    return re.findall(r'oifname "d1" (.*)', nat_ruleset(OUTSIDE, NatOptions.model_validate(options)))


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, ["masquerade"]),
        ({"ports": [1024, 65535]}, ["meta l4proto { tcp, udp } masquerade to :1024-65535"]),
        (
            {"addresses": 9, "random": True},
            [
                "meta nfproto ipv4 snat ip to 198.19.0.3-198.19.0.11 fully-random",
                "meta nfproto ipv6 snat ip6 to 2001:2:0:8000::3-2001:2:0:8000::b fully-random",
            ],
        ),
    ],
)
def test_the_rules_are_those_of_the_options(options: dict[str, object], rules: list[str]) -> None:
    assert translating(**options) == rules


def test_a_pool_that_does_not_fit_says_so() -> None:
    assert pool_of("192.0.2.1/29", 4) == ("192.0.2.3", "192.0.2.6")
    with pytest.raises(NotReadyError, match=r"5 outside addresses after 192\.0\.2\.2 do not fit into 192\.0\.2\.0/29"):
        pool_of("192.0.2.1/29", 5)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"ports": [2000, 1024]}, r"write \[1024, 2000\]"), ({"udp_timeout": 1.5}, "whole seconds")],
)
def test_what_the_kernel_could_not_take_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        NatOptions.model_validate(options)


async def test_a_table_that_would_be_too_small_for_the_machine_itself_is_refused(tmp_path: Path) -> None:
    host = FakeHost(files={LIMIT: "262144\n", LIMIT.replace("max", "count"): "600\n"})
    host.fail(("test", "-w"), "")
    changes = UndoStack("run", tmp_path, runtime=tmp_path / "runtime")
    with pytest.raises(NotReadyError, match="which tracks 600 connections itself") as caught:
        await set_limit(host, changes, 1000)
    assert "make it 1200 or more" in (caught.value.next_step or "")
    assert host.files[LIMIT] == "262144\n"


async def test_a_host_without_nftables_says_what_to_install(tmp_path: Path) -> None:
    host = FakeHost()
    host.fail(("nft",), "nft: not found", status=127)
    with pytest.raises(NotReadyError, match="the address translation cannot be set up") as caught:
        await set_up_rules(host, UndoStack("run", tmp_path, runtime=tmp_path / "runtime"), "")
    assert "apt-get install nftables" in (caught.value.next_step or "")


@pytest.mark.lab
@pytest.mark.parametrize("ip", [4, 6])
async def test_frames_leave_with_an_outside_address_and_port_and_nobody_comes_in_unasked(
    ip: int, lab: Wires, changes: UndoStack
) -> None:
    dut = Nat(NatOptions(addresses=3, ports=(2000, 2001), udp_timeout=2.0))
    await dut.up(lab.testbed, changes)
    out, back = dut.addressing(lab.testbed, ip)
    got = sent_through(lab, out, frame_of(out, 128))
    pool = {4: ["198.19.0.3", "198.19.0.4", "198.19.0.5"], 6: [f"2001:2:0:8000::{host}" for host in (3, 4, 5)]}
    assert {source_of(frame, ip)[0] for frame in got} <= set(pool[ip])
    assert {source_of(frame, ip)[1] for frame in got} <= {2000, 2001}
    assert len(got) == 1
    assert sent_through(lab, back, frame_of(back, 128)) == []
    assert dut.disclosure()["connection_tracking"]["udp_timeout_s"] == 2
    assert await changes.undo_all() == []
    assert in_dut(lab, "nft", "list", "table", "inet", NAT_TABLE).returncode != 0
    assert in_dut(lab, "cat", "/proc/sys/net/netfilter/nf_conntrack_udp_timeout").stdout == "30\n"


def sent_through(lab: Wires, way: Addressing, frame: bytes) -> list[bytes]:
    """What came out at the other port of one frame."""
    return lab.passed_this_way(way, frame, lambda got: len(got) == len(frame) and got[-8:] == frame[-8:], 1)


def source_of(frame: bytes, ip: int) -> tuple[str, int]:
    """The source address and port of a UDP frame without options."""
    begin, end, port = (26, 30, 34) if ip == 4 else (22, 38, 54)
    return str(ip_address(frame[begin:end])), int.from_bytes(frame[port : port + 2], "big")


def in_dut(lab: Wires, *command: str) -> subprocess.CompletedProcess[str]:
    return run_tried(("ip", "netns", "exec", lab.dut, *command))
