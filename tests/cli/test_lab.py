"""``lab up`` and ``lab down``: a lab that stays for experiments by hand."""

from __future__ import annotations

import os
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
    assert "creates nothing that could be kept up" in ended.stderr


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


def test_where_no_lab_is_up_that_is_said_with_how_to_make_one(nicbench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nicbench.cli.commands.lab.find_kept_runs", list)
    for command in ("shell", "down"):
        ended = nicbench("lab", command)
        assert ended.status == 2
        assert "error: no lab is up" in ended.stderr
        assert "nicbench lab up" in ended.stderr
    ended = nicbench("lab", "list")
    assert (ended.status, ended.stdout) == (0, "")
    assert "no lab is up" in ended.stderr


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
    shown = nicbench("lab", "shell", "--lab", NAME, "--host", "dut", "--", "sh", "-c", "ls /sys/class/net; exit 7")
    assert (shown.status, "d0" in shown.stdout) == (7, True)
    assert "one of tester, dut" in nicbench("lab", "shell", "--lab", NAME, "true").stderr
    assert f"{NAME}  tester, dut\n" in nicbench("lab", "list").stdout
    ended = nicbench("lab", "down", NAME)
    assert (ended.status, f"{NAME} is down" in ended.stdout) == (0, True)
    assert not namespaces() - lab_is_up


@pytest.mark.lab
def test_a_lab_is_not_made_twice(lab_is_up: set[str], nicbench: Any) -> None:
    ended = nicbench("lab", "up", "lab.yaml")
    assert ended.status == 2
    assert f"nicbench lab down {NAME}" in ended.stderr


@pytest.mark.lab
@pytest.mark.alone
def test_ports_that_are_made_stay_until_they_are_taken_down(nicbench: Any) -> None:
    near, far = f"nbk{os.getpid()}a", f"nbk{os.getpid()}b"
    spaces = (f"nb-kept-{os.getpid()}-s", f"nb-kept-{os.getpid()}-c")
    Path("ports.yaml").write_text(f"""\
nicbench: 1
title: {TITLE}
hosts:
  server: {{kind: netns, namespace: {spaces[0]}, create: true}}
  client: {{kind: netns, namespace: {spaces[1]}, create: true}}
ports:
  s0: {{host: server, device: {near}, ip: 198.18.0.1/24}}
  c0: {{host: client, device: {far}, ip: 198.18.0.2/24}}
links: [c0 <-> s0]
dut: {{kind: server}}
tests: [{{name: a, method: stream}}]
""")
    before = namespaces()
    subprocess.run(["ip", "link", "add", near, "type", "veth", "peer", "name", far], check=True)
    try:
        ended = nicbench("lab", "up", "ports.yaml")
        assert ended.status == 0
        assert "addresses                s0 198.18.0.1, c0 198.18.0.2" in ended.stdout
        assert namespaces() - before == set(spaces)
        ping = ["ip", "netns", "exec", spaces[1], "ping", "-c1", "-W2", "198.18.0.1"]
        assert subprocess.run(ping, check=False, capture_output=True).returncode == 0
        assert nicbench("lab", "down", NAME).status == 0
        assert namespaces() == before
        listed = subprocess.run(["ip", "-br", "link"], check=True, capture_output=True, text=True).stdout
        assert f"{near}@{far}" in listed
    finally:
        nicbench("lab", "down", NAME)
        subprocess.run(["ip", "link", "delete", near], check=False, capture_output=True)
