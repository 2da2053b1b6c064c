"""The packet filter in front of forwarding: its rules, its refusals, and its removal with real frames."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from lab import Wires, wires
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.testbed.duts.kernel_forward import (
    FILTER_TABLE,
    KernelForward,
    KernelForwardOptions,
    filter_ruleset,
    set_up_filter,
)
from nicbench.tuning.stack import UndoStack


def test_each_rule_names_a_source_that_no_frame_has() -> None:
    lines = filter_ruleset("ip", 300).splitlines()
    assert [line.strip() for line in lines if "drop" in line][::299] == [
        "ip saddr 240.0.0.1 drop",
        "ip saddr 240.0.1.44 drop",
    ]
    assert "    ip6 saddr 2001:db8::1 drop" in filter_ruleset("ip6", 1).splitlines()


async def test_a_host_without_nftables_says_what_to_install(tmp_path: Path) -> None:
    host = FakeHost()
    host.fail(("nft",), "nft: not found", status=127)
    with pytest.raises(NotReadyError, match="the packet filter cannot be set up") as caught:
        await set_up_filter(host, UndoStack("run", tmp_path, runtime=tmp_path / "runtime"), 10, ipv6=False)
    assert "apt-get install nftables" in (caught.value.next_step or "")


@pytest.mark.lab
async def test_the_rules_are_there_while_the_dut_is_up_and_gone_afterwards(tmp_path: Path) -> None:
    with wires() as lab:
        changes = UndoStack("filter-test", tmp_path, runtime=tmp_path / "runtime")
        dut = KernelForward(KernelForwardOptions(filter_rules=25))
        await dut.up(lab.testbed, changes)
        try:
            assert rules(lab, "ip").count("drop") == 25
            assert rules(lab, "ip6").count("drop") == 25
            assert dut.disclosure()["filter_rules"] == 25
        finally:
            await changes.undo_all()
        assert rules(lab, "ip") == ""


def rules(lab: Wires, family: str) -> str:
    """The table as the kernel has it; empty where there is none."""
    command = ("ip", "netns", "exec", lab.dut, "nft", "list", "table", family, FILTER_TABLE)
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
