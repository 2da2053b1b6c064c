"""``nicbench init`` with real ports: it finds the two that a switch joins, and the file that it writes runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_checked, run_tried

pytestmark = [pytest.mark.lab, pytest.mark.slow]

NEAR, FAR = f"nb-init-near-{os.getpid()}", f"nb-init-far-{os.getpid()}"


@pytest.fixture
def switch() -> Iterator[None]:
    """Three ports in a namespace: the first and the last lead to one bridge in another, the second to nothing."""
    try:
        for name in (NEAR, FAR):
            ip("netns", "add", name)
            quiet = "for kind in all default; do echo 1 >/proc/sys/net/ipv6/conf/$kind/disable_ipv6; done"
            inside(name, "sh", "-c", quiet)
        inside(FAR, "ip", "link", "add", "br0", "up", "type", "bridge")
        for port in "012":
            inside(NEAR, "ip", "link", "add", f"t{port}", "type", "veth", "peer", "name", f"d{port}", "netns", FAR)
            inside(FAR, "ethtool", "-K", f"d{port}", "gro", "on")
            inside(FAR, "ip", "link", "set", f"d{port}", "up", *(() if port == "1" else ("master", "br0")))
            inside(NEAR, "ip", "link", "set", f"t{port}", "up")
        yield
    finally:
        for name in (NEAR, FAR):
            run_tried(("ip", "netns", "delete", name))


@pytest.mark.sampled(4, of="labs in turn")
def test_the_two_ports_are_found_and_the_file_runs(switch: None, tmp_path: Path) -> None:
    bench = tmp_path / "mine.yaml"
    ended = nicbench("init", "rfc2544", "--probe", "--out", str(bench))
    assert ended.returncode == 0, ended.stderr
    assert "t0 <-> t2: through a switch" in ended.stderr
    text = bench.read_text()
    assert "device: t0" in text
    assert "device: t2" in text
    text = text.replace("duration: 1 s", "duration: 200 ms").replace("maximum_trials: 20", "maximum_trials: 3")
    bench.write_text(re.sub(r"frame_bytes: .*", "frame_bytes: [512]", text))
    ended = nicbench(
        "run", str(bench), "--runs", str(tmp_path / "runs"), "--no-progress", "--no-report", "--wait", "10min"
    )
    assert ended.returncode == 0, ended.stderr


def ip(*words: str) -> None:
    run_checked(("ip", *words))


def inside(name: str, *command: str) -> None:
    run_checked(("ip", "netns", "exec", name, *command))


def nicbench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ("ip", "netns", "exec", NEAR, sys.executable, "-m", "nicbench", *arguments)
    return run_tried(command, timeout=600)
