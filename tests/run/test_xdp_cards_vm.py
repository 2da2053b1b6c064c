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
