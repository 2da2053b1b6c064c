"""``nicbench prove`` on real ports: an honest cable is proven, twice the same, and each lie is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_tried
from tests.prove._liars import HONEST_CLOCK, LIES, NEAR, PORTS, Lie, cable

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
