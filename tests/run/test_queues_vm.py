"""The receive hash of an emulated card: every flow is on the queue that key and table of the card say."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Result

from .lab_bench import run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # a minute on an emulated machine

BENCH = """
nicbench: 1
title: The receive hash of a card
hosts:
  guest:
    kind: vm
    cpus: 4
    memory: 1536 MiB
    cards:
      n0: {{model: igb, network: a}}
      n1: {{model: igb, network: a}}
      n2: {{model: igb, network: b}}
      n3: {{model: igb, network: b}}
  tester: {{kind: netns, namespace: nicbench-tester, on: guest, create: true}}
  dut: {{kind: netns, namespace: nicbench-dut, on: guest, create: true}}
ports:
  t0: {{host: tester, device: n0}}
  d0: {{host: dut, device: n1, ip: 198.18.0.1/24}}
  t1: {{host: tester, device: n2}}
  d1: {{host: dut, device: n3, ip: 198.19.0.1/24}}
links: [t0 <-> d0, t1 <-> d1]
dut: {{kind: kernel-forward}}
tester: {{driver: net_af_packet, memory: 128 MiB}}
traffic: {traffic}
tuning: {{dut: {{receive_hashing: {hashing}}}}}
monitor: off
thresholds:
  {{unsent_share: 0.5, longest_gap_ms: 2000, total_gap_share: 0.99, dut_foreign_cpu_share: 0.99,
   dut_contended_share: 0.99, dut_pause_ms: 2000}}
tests:
  - name: spread
    method: receive-spread
    frame_bytes: {sizes}
    rate: 300 pps
    trial: {{duration: 2 s, drain: 1 s, settle: 200 ms}}
"""
SIZES = [64, 96, 128, 192, 256, 384, 512, 768, 1024, 1518]
# Source ports are drawn for each flow; addresses differ in turn.
TRAFFIC = "{flows: 128, addresses: 8, fields: {source_port: {first: 1024, count: 60000, seed: 7}}}"


def rows(folder: Path, hashing: str, sizes: list[int], traffic: str = TRAFFIC) -> list[Result]:
    summary, _ = run_bench(folder, BENCH.format(hashing=hashing, sizes=sizes, traffic=traffic))
    return [result for result in summary.results if result.parameters["part"] == "spread"]


def test_every_flow_is_on_the_queue_that_is_computed(tmp_path: Path) -> None:
    found = rows(tmp_path, "{fields: {udp4: sdfn}}", SIZES)
    assert [result.values["misplaced_frames"] for result in found] == [0] * len(SIZES)
    assert {result.values["against_table"] for result in found} == {"every frame where its table says"}
    assert {result.values["against_chance"] for result in found} == {"chance explains it"}


def test_a_table_that_leaves_a_queue_out_is_told(tmp_path: Path) -> None:
    (result,) = rows(tmp_path, "{queues: 3, fields: {udp4: sdfn}}", [64])
    assert result.values["misplaced_frames"] == 0
    assert result.values["against_table"] == "every frame where its table says; it leaves out queue 3"
    assert result.values["against_chance"] == "worse than chance; no frame on queue 3"


def test_a_hash_that_is_blind_to_ports_is_told(tmp_path: Path) -> None:
    ports_alone = "{flows: 128, addresses: 1, fields: {source_port: {first: 20000, count: 128}}}"
    (result,) = rows(tmp_path, "{fields: {udp4: sd}}", [64], ports_alone)
    assert result.values["misplaced_frames"] == 0
    assert result.values["idle_queues"] == 3
    assert str(result.values["against_chance"]).startswith("worse than chance")
