"""Emulated cards carry the tester inside the kernel from end to end: every frame is counted, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab_bench import run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

# Two cards of one kernel, joined by a cable. Where nothing is emulated the other thresholds would hold, too.
CARDS = """
nicbench: 1
title: Two emulated cards
hosts:
  guest: {kind: vm, cpus: 2, cards: {n0: {network: cable}, n1: {network: cable}}}
  tester: {kind: netns, namespace: nicbench-tester, create: true, on: guest}
ports:
  t0: {host: tester, device: n0}
  t1: {host: tester, device: n1}
dut: {kind: external}
tester: {driver: xdp, catch_up: 1 s, memory: 256 MiB}
traffic: {flows: 4, bidirectional: true}
monitor: off
thresholds:
  {unsent_share: 0.5, longest_gap_ms: 2000, total_gap_share: 0.99, dut_foreign_cpu_share: 0.99,
   dut_contended_share: 0.99, dut_pause_ms: 2000}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64, 1518]
    of: 100 pps
    loads: [100 %]
    trial: {duration: 2 s, drain: 2 s, settle: 200 ms}
"""


def test_every_frame_of_a_trial_comes_from_one_card_to_the_other(tmp_path: Path) -> None:
    _, trials = run_bench(tmp_path, CARDS)
    assert {trial.request.frame_bytes for trial in trials} == {64, 1518}
    for reading in (trial.reading for trial in trials):
        counts = reading.counts
        print(counts)
        assert counts.sent > 20  # of 400: an emulated machine may fall behind
        assert (counts.received, counts.lost) == (counts.sent, 0)
        assert (counts.duplicated, counts.reordered, counts.corrupted, counts.unattributed) == (0, 0, 0, 0)
        assert reading.latency.count == counts.received


CONNECTIONS = """
nicbench: 1
title: Connections between two emulated cards
hosts:
  guest: {kind: vm, cpus: 2, cards: {n0: {network: cable}, n1: {network: cable}}}
  client: {kind: netns, namespace: nicbench-client, create: true, on: guest}
  server: {kind: netns, namespace: nicbench-server, create: true, on: guest}
ports:
  c0: {host: client, device: n0, ip: 198.18.0.1/24}
  s0: {host: server, device: n1, ip: 198.18.0.2/24}
links: [c0 <-> s0]
dut: {kind: server, host: server}
monitor: off
thresholds: {start_spread_share: 0.9, machine_steal_share: 0.9}
tests:
  - {name: http, method: http-latency, driver: xdp, client_threads: 2, rate: 30, object_bytes: [1 KiB], duration: 2 s,
     ramp: 0 s, connect_within: 10 s, answer_within: 20 s}
"""


def test_connections_are_made_and_answered_by_the_oldest_kernel_that_is_tried(tmp_path: Path) -> None:
    """Its verifier is stricter than those of later kernels."""
    summary, _ = run_bench(tmp_path, CONNECTIONS)
    (result,) = summary.results
    assert (result.values["transactions"], result.values["failures"]) == (60, 0), result.values
