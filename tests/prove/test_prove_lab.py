"""``nicbench prove`` on real ports: an honest cable is proven, twice the same, and each lie is found."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_tried
from tests.prove._liars import HONEST_CLOCK, LIES, NEAR, PORTS, Lie, cable
from tests.tuning.snapshot import differences, in_namespace

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def prove(environment: dict[str, str], *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The proof of the cable's ports: the outcome of each finding by its name."""
    command = ("ip", "netns", "exec", NEAR, sys.executable, "-m", "nicbench", "prove", *PORTS, "--json", *options)
    ended = run_tried((*command, "--wait", "10min"), timeout=600, env=environment)
    proof: dict[str, Any] = json.loads(ended.stdout)
    assert "findings" in proof, proof
    return ended, {each["name"]: each["outcome"] for each in proof["findings"]}


@pytest.mark.acceptance
def test_an_honest_cable_is_proven_twice_the_same(tmp_path: Path) -> None:
    with cable(None, tmp_path) as environment:
        ended, first = prove(environment)
        assert ended.returncode == 0, {name for name, outcome in first.items() if outcome == "failed"}
        _, second = prove(environment)
    assert first == second
    assert first["drivers.xdp"] == first["counts.received_xdp"] == first["restored.settings"] == "proven"


def kill_after(findings: int, inside: tuple[str, ...], environment: dict[str, str]) -> int:
    """Kills a proof a moment after it has printed this many findings, and returns how many it had printed."""
    command = (*inside, sys.executable, "-um", "nicbench", "prove", *PORTS, "--yes", "--wait", "10min")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as proving:
        assert proving.stdout is not None
        printed = list(itertools.islice(proving.stdout, findings))
        time.sleep(random.random())
        proving.kill()
        _, said = proving.communicate()
    assert "error" not in said
    return len(printed)


@pytest.mark.acceptance
def test_after_a_kill_at_any_step_and_one_restore_the_ports_are_what_they_were(tmp_path: Path) -> None:
    # The mounts of `ip netns exec` end with its command, and with them the namespaces that were made there.
    keep = ("ip", "netns", "exec", NEAR, "sh", "-c", "echo inside; exec sleep inf")
    with cable(None, tmp_path) as environment, subprocess.Popen(keep, stdout=subprocess.PIPE) as kept:
        inside = ("nsenter", "--net", "--mount", "--target", str(kept.pid))
        try:
            assert kept.stdout is not None
            assert kept.stdout.readline() == b"inside\n"
            # Addresses of IPv6 come and go by themselves after each change of a link.
            run_captured((*inside, "sysctl", "-w", "net.ipv6.conf.all.disable_ipv6=1"))
            before = in_namespace(NEAR)
            for findings in itertools.count(random.randrange(6), 6):
                printed = kill_after(findings, inside, environment)
                run_captured((*inside, sys.executable, "-m", "nicbench", "restore", "--all"))
                assert (findings, differences(before, in_namespace(NEAR))) == (findings, [])
                if printed < findings:
                    break
        finally:
            kept.kill()
    assert printed > 50


@pytest.mark.acceptance
def test_an_even_clock_of_a_card_is_proven(tmp_path: Path) -> None:
    with cable(HONEST_CLOCK, tmp_path) as environment:
        _, found = prove(environment, "--only", "clocks")
    assert found["clocks.ptp_first"] == found["clocks.ptp_second"] == "proven"


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie.name == "flips-a-bit"], ids=lambda lie: lie.name)
def test_a_lie_is_found(lie: Lie, tmp_path: Path) -> None:
    with cable(lie, tmp_path) as environment:
        ended, found = prove(environment, "--only", lie.abilities or "drivers")
    failures = {name for name, outcome in found.items() if outcome == "failed"}
    assert failures & set(lie.found_by), failures
    assert ended.returncode == 3


@pytest.mark.acceptance
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_every_lie_is_found(lie: Lie, tmp_path: Path) -> None:
    test_a_lie_is_found(lie, tmp_path)
