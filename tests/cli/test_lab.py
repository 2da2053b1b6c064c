"""``lab up`` and ``lab down``: a lab that stays for experiments by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TITLE = "A lab of the tests"
NAME = "lab-a-lab-of-the-tests"
BENCH = f"""\
nicbench: 1
title: {TITLE}
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tests: [{{name: throughput, method: throughput}}]
"""


def namespaces() -> set[str]:
    listed = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_a_simulated_lab_cannot_be_kept(nicbench: Any) -> None:
    ended = nicbench("lab", "up", "bench.yaml")
    assert ended.status == 2
    assert "no lab to keep" in ended.stderr


def test_a_lab_is_that_of_one_configuration(nicbench: Any) -> None:
    Path("two.yaml").write_text(BENCH + "configurations: {a: {}, b: {dut: {filter_rules: 9}}}\n")
    for arguments in ((), ("--configuration", "c")):
        ended = nicbench("lab", "up", "two.yaml", *arguments)
        assert ended.status == 2
        assert "--configuration and one of a, b" in ended.stderr
    Path("one.yaml").write_text(BENCH)
    assert "leave --configuration out" in nicbench("lab", "up", "one.yaml", "--configuration", "a").stderr


def test_a_lab_that_is_not_up_cannot_be_removed(nicbench: Any) -> None:
    ended = nicbench("lab", "down", "lab-nobody-made-this")
    assert ended.status == 2
    assert "lab-nobody-made-this" in ended.stderr


@pytest.fixture
def lab_is_up(nicbench: Any) -> Iterator[set[str]]:
    """Gives the namespaces there were before."""
    before = namespaces()
    Path("lab.yaml").write_text(BENCH)
    assert nicbench("lab", "up", "lab.yaml").status == 0
    yield before
    nicbench("lab", "down", NAME)


@pytest.mark.lab
def test_a_lab_stays_until_it_is_taken_down(lab_is_up: set[str], nicbench: Any) -> None:
    assert len(namespaces() - lab_is_up) == 2
    assert nicbench("lab", "down", NAME).status == 0
    assert not namespaces() - lab_is_up


@pytest.mark.lab
def test_a_lab_is_not_made_twice(lab_is_up: set[str], nicbench: Any) -> None:
    ended = nicbench("lab", "up", "lab.yaml")
    assert ended.status == 2
    assert f"nicbench lab down {NAME}" in ended.stderr
