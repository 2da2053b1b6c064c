"""``doctor`` tells what is missing, with the command that mends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nicbench.doctor.base import Check, missing, ok, warning

GOOD = ok("kernel", "6.1 has AF_XDP")
POOR = warning("governor", "powersave", "cpupower frequency-set -g performance")
BAD = missing("packages", "clang [14] is not installed", "apt-get install clang")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    def has(*checks: Check) -> None:
        async def diagnose() -> tuple[Check, ...]:
            return checks

        monkeypatch.setattr("nicbench.cli.commands.machine.diagnose_this_machine", diagnose)

    return has


def test_a_lack_ends_with_3_and_names_the_command(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR, BAD)
    ended = nicbench("doctor")
    assert ended.status == 3
    assert "clang [14] is not installed" in ended.stdout
    assert "fix: apt-get install clang" in ended.stdout


def test_the_verdict_and_what_is_worst_stand_first(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR, BAD)
    shown = nicbench("doctor").stdout
    assert shown.startswith("1 missing: nicbench cannot run yet; 1 warning\n")
    assert shown.index("clang") < shown.index("powersave") < shown.index("AF_XDP")


def test_a_warning_is_no_lack(machine: Any, nicbench: Any) -> None:
    machine(GOOD, POOR)
    ended = nicbench("doctor")
    assert ended.status == 0
    assert "this machine is ready; 1 warning\n" in ended.stdout


def test_the_checks_are_data(machine: Any, nicbench: Any) -> None:
    machine(GOOD, BAD)
    ended = nicbench("doctor", "--json")
    assert ended.status == 3
    document = json.loads(ended.stdout)
    assert document["ready"] is False
    assert [check["state"] for check in document["checks"]] == ["ok", "missing"]


def test_details_are_printed_for_those_who_ask(machine: Any, nicbench: Any) -> None:
    details = {"zero_copy": True, "redirect_target": False, "queues": None, "receive_metadata": ("hash", "VLAN tag")}
    machine(ok("XDP on eth1", "can carry it", details), GOOD)
    assert "zero copy" not in nicbench("doctor").stdout
    shown = nicbench("doctor", "--verbose").stdout
    assert "zero copy: yes\n" in shown
    assert "redirect target: no\n" in shown
    assert "queues: not known\n" in shown
    assert "receive metadata: hash, VLAN tag\n" in shown
    document = json.loads(nicbench("doctor", "--json").stdout)
    assert document["checks"][0]["details"]["receive_metadata"] == ["hash", "VLAN tag"]
    assert document["checks"][1]["details"] == {}
