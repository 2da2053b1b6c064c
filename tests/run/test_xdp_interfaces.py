"""Interfaces that cannot carry a tester inside the kernel say why; one whose controller was killed is unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_checked, run_tried
from tests.xdp_source import compile_xdp

pytestmark = pytest.mark.lab

PATIENCE_S = 120.0
BENCH = """
nicbench: 1
title: Interfaces
hosts: {{tester: {{kind: netns, namespace: {near}}}, router: {{kind: netns, namespace: {far}}}}}
ports:
  t0: {{host: tester, device: {device}}}
  t1: {{host: tester, device: t1}}
  d0: {{host: router, device: d0}}
  d1: {{host: router, device: d1}}
links: [t0 <-> d0, t1 <-> d1]
dut: {{kind: bridge}}
tester: {{driver: xdp}}
monitor: off
thresholds: {{dut_contended_share: 1.0, dut_foreign_cpu_share: 0.99, longest_gap_ms: 500, total_gap_share: 0.9}}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 5 kpps
    loads: [100 %]
    trial: {{duration: 60 s, drain: 50 ms, settle: 50 ms}}
"""
# Counts nothing, passes everything: somebody's.
PROGRAM = """
#include <linux/bpf.h>
__attribute__((section("xdp"), used)) int pass(struct xdp_md *context) { return XDP_PASS; }
"""


@dataclass
class Network:
    """Two namespaces of this test's own, joined by two pairs, which outlive the runs."""

    near: str
    far: str
    folder: Path

    def inside(self, *command: str) -> str:
        there = ("ip", "netns", "exec", self.near, *command)
        return run_captured(there).stdout

    def start(self, device: str) -> subprocess.Popen[str]:
        bench = self.folder / "bench.yaml"
        bench.write_text(BENCH.format(near=self.near, far=self.far, device=device))
        words = ("run", str(bench), "--output", str(self.folder / "runs"), "--no-progress", "--no-report")
        return subprocess.Popen(nicbench(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def refusal(self, device: str, status: int = 3) -> str:
        """What a run says that does not begin; with status 3 the machine is not ready, with 4 the engine refused."""
        process = self.start(device)
        said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == status, said
        return " ".join(said[1].split())

    def state(self) -> tuple[dict[str, Any], str, str]:
        """What a tester changes at its interface: program, promiscuity, features, queues."""
        (link,) = json.loads(self.inside("ip", "-d", "-j", "link", "show", "dev", "t0"))
        seen = {key: link.get(key) for key in ("flags", "promiscuity", "xdp", "mtu")}
        return seen, self.inside("ethtool", "-k", "t0"), self.inside("ethtool", "-l", "t0")


def nicbench(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nicbench", *arguments]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(f"nbxdpifst{os.getpid()}", f"nbxdpifsd{os.getpid()}", tmp_path)
    try:
        for name in (made.near, made.far):
            run_checked(["ip", "netns", "add", name])
            quiet = "for kind in all default; do echo 1 >/proc/sys/net/ipv6/conf/$kind/disable_ipv6; done"
            run_checked(["ip", "netns", "exec", name, "sh", "-c", quiet])
        for pair in "01":
            ends = ("link", "add", f"t{pair}", "type", "veth", "peer", "name", f"d{pair}", "netns", made.far)
            made.inside("ip", *ends)
            run_checked(["ip", "netns", "exec", made.far, "ethtool", "-K", f"d{pair}", "gro", "on"])
            run_checked(["ip", "-n", made.far, "link", "set", f"d{pair}", "up"])
            made.inside("ip", "link", "set", f"t{pair}", "up")
        yield made
    finally:
        for name in (made.near, made.far):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.mark.sampled(4, of="labs in turn")
def test_what_cannot_carry_it_is_refused_with_the_reason_and_the_next_step(network: Network) -> None:
    program = compile_xdp(PROGRAM, network.folder)
    network.inside("ip", "link", "set", "dev", "t0", "xdpdrv", "obj", str(program), "sec", "xdp")
    before = network.state()
    said = network.refusal("t0")
    assert "XDP program" in said
    assert "next:" in said
    assert network.state() == before  # somebody's program is there yet
    network.inside("ip", "link", "set", "dev", "t0", "xdp", "off")

    # What may come to a veth is as long as its peer sends.
    run_checked(["ip", "-n", network.far, "link", "set", "dev", "d0", "mtu", "9000"])
    said = network.refusal("t0", status=4)
    assert "lower its MTU, and that of a veth's peer, below 3500 bytes" in said
    run_checked(["ip", "-n", network.far, "link", "set", "dev", "d0", "mtu", "1500"])

    network.inside("ip", "link", "add", "br0", "type", "bridge")
    network.inside("ip", "link", "set", "br0", "up")
    said = network.refusal("br0")
    assert "does not run XDP programs itself on br0" in said
    assert "use `driver: net_af_xdp`" in said


@pytest.mark.sampled(4, of="labs in turn")
def test_after_a_kill_of_the_controller_the_interface_is_as_it_was(network: Network) -> None:
    before = network.state()
    process = network.start("t0")
    try:
        wait_until(lambda: network.state()[0]["xdp"] is not None and sent_frames(network) > 1000, process)
        assert network.state() != before
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    (run,) = (network.folder / "runs").iterdir()
    restored = run_tried(nicbench("restore", str(run)), timeout=PATIENCE_S)
    assert restored.returncode == 0, restored
    wait_until(lambda: network.state() == before)
    assert network.inside("ip", "-d", "-j", "link", "show", "dev", "t1").count('"xdp"') == 0
    again = run_tried(nicbench("restore", str(run)))
    assert (again.returncode, again.stdout.strip()) == (0, f"{run.name}: nothing to undo")


def sent_frames(network: Network) -> int:
    """By the interface's own counter: the tester's frames leave by its driver, too."""
    (link,) = json.loads(network.inside("ip", "-s", "-j", "link", "show", "dev", "t0"))
    return int(link["stats64"]["tx"]["packets"])


def wait_until(holds: Any, process: subprocess.Popen[str] | None = None) -> None:
    began = time.monotonic()
    while not holds():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.1)
