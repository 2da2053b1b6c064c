"""`nicbench tune` and `run --dry-run`: what would be set and what cannot be, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BENCH = """\
nicbench: 1
title: t
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tuning: {tuning}
tests: [{{name: a, method: throughput, frame_bytes: [64]}}]
"""
SWAPPINESS = Path("/proc/sys/vm/swappiness")


def bench(tuning: str) -> str:
    Path("tuned.yaml").write_text(BENCH.format(tuning=tuning))
    return "tuned.yaml"


@pytest.mark.parametrize("command", [("tune",), ("run", "--dry-run")])
def test_the_plan_is_printed_and_nothing_is_changed(nicbench: Any, command: tuple[str, ...]) -> None:
    before = Path("/proc/sys/kernel/timer_migration").read_text()
    other = "false" if before.strip() == "1" else "true"
    written = bench(f"{{all: {{timer_migration: {other}}}, dut: {{mtu: 9000}}}}")
    ended = nicbench(*command, written)
    assert ended.status == 0
    assert "would be changed" in ended.stdout
    assert "mtu (dut): for the lab's own ports: known once the lab is created" in ended.stdout
    assert "nothing was changed" in ended.stdout
    assert Path("/proc/sys/kernel/timer_migration").read_text() == before
    assert not list(Path().glob("runs/*"))


def test_what_cannot_be_set_is_told_with_the_status_of_a_refused_run(nicbench: Any) -> None:
    ended = nicbench("tune", bench("{all: {huge_pages: {pages: 1, node: 1000}}}"))
    assert ended.status == 3
    assert "huge_pages (local): this machine has no huge pages of 2048 KiB on a NUMA node 1000" in ended.stdout
    assert "1 cannot be set; a run would be refused" in ended.stdout


def test_a_profile_is_planned_with_its_reasons(nicbench: Any) -> None:
    ended = nicbench("tune", bench("{profile: low-latency}"), "--json")
    assert ended.status == 0
    rows = json.loads(ended.stdout)["settings"]
    assert {row["source"] for row in rows} == {"profile low-latency"}
    assert all(row["reason"] for row in rows if row["outcome"] in (None, "skipped"))


def test_a_bench_file_without_tuning_says_so(nicbench: Any) -> None:
    assert "nothing would be tuned" in nicbench("tune", bench("{}")).stdout


def test_of_what_a_run_makes_nothing_is_told_beforehand(nicbench: Any) -> None:
    Path("ports.yaml").write_text("""\
nicbench: 1
title: t
hosts:
  server: {kind: netns, namespace: nb-not-there, create: true}
  client: {kind: netns, namespace: nb-nor-there, create: true}
ports:
  s0: {host: server, device: e0, ip: 198.18.0.1/24}
  c0: {host: client, device: e1, ip: 198.18.0.2/24}
links: [c0 <-> s0]
dut: {kind: server}
tuning: {dut: {mtu: 9000}, clients: {mtu: 9000}}
tests: [{name: a, method: stream}]
""")
    ended = nicbench("tune", "ports.yaml")
    assert ended.status == 0
    for device, host in (("e0", "server"), ("e1", "client")):
        assert f"mtu ({host}, {device}): for what the run creates: known once it exists" in ended.stdout
