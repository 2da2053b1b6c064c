"""A tester on two machines, which are namespaces here: real frames, exact counts, and a clock whose error is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_checked, run_tried

from nicbench.core.trial import Trial

from .lab_bench import machine_state, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="known truths")]

NUMBER = os.getpid() % 100_000
WIRES = ((f"nbta{NUMBER}", f"nbda{NUMBER}"), (f"nbtb{NUMBER}", f"nbdb{NUMBER}"))
BENCH = """
nicbench: 1
title: Two testers
hosts:
  tester: {{kind: netns, namespace: nb-one-{number}, create: true}}
  far: {{kind: netns, namespace: nb-two-{number}, create: true}}
  dut: {{kind: netns, namespace: nb-dut-{number}, create: true}}
ports:
  t0: {{host: tester, device: nbta{number}}}
  t1: {{host: far, device: nbtb{number}}}
  d0: {{host: dut, device: nbda{number}}}
  d1: {{host: dut, device: nbdb{number}}}
links: [t0 <-> d0, t1 <-> d1]
dut: {dut}
tester: {{peer: far, driver: net_af_packet, peer_clock: {{ahead: 1 ms, drift_ppm: {drift_ppm}}}}}
monitor: off
tests:
  - name: loads
    method: load-sweep
    frame_bytes: [128]
    of: 8 kpps
    loads: [100 %]
    trial: {{duration: 500 ms, drain: 300 ms, settle: 100 ms}}
"""
TOLERANT = """
thresholds:
  {longest_gap_ms: 500, total_gap_share: 0.95, unsent_share: 0.9, dut_foreign_cpu_share: 2.0, dut_contended_share: 1.0,
   dut_pause_ms: 500}
"""


@pytest.fixture(autouse=True)
def wires() -> Iterator[None]:
    """Two veth pairs, from either tester to the DUT; the run moves their ends into its namespaces."""
    for near, far in WIRES:
        run_checked(("ip", "link", "add", near, "type", "veth", "peer", "name", far))
    try:
        yield
    finally:
        for near, _ in WIRES:
            run_tried(("ip", "link", "delete", near))


def measure(parent: Path, dut: str, drift_ppm: float) -> Trial:
    """The last trial of a run with this DUT and this drift of the second clock."""
    before = machine_state()
    _, trials = run_bench(parent, BENCH.format(number=NUMBER, dut=dut, drift_ppm=drift_ppm) + TOLERANT)
    assert machine_state() == before
    return trials[-1]


def test_every_frame_has_its_fate_and_the_clocks_offset_is_found(tmp_path: Path) -> None:
    reading = measure(tmp_path, "{kind: policer, rate: 2 kpps, burst: 100}", 0.0).reading
    counts = reading.counts
    assert counts.sent > 2000
    assert 0 < counts.received < counts.sent, "the policer drops what the other machine does not get"
    assert counts.sent == counts.received + counts.lost + (counts.late or 0)
    assert (counts.corrupted, counts.duplicated, counts.foreign) == (0, 0, 0)
    assert reading.unexplained == 0, "the policer counted what it dropped"
    assert abs(reading.clocks.offset_ns - 1_000_000) <= reading.clocks.uncertainty_ns
    assert reading.clocks.step_ns < 100_000


@pytest.mark.acceptance  # simulated pairs of clocks drift in every session
def test_the_clocks_drift_is_found_and_latencies_know_how_uncertain_they_are(tmp_path: Path) -> None:
    trial = measure(tmp_path, "{kind: bridge}", 100.0)
    mapping, latency = trial.reading.clocks, trial.reading.latency
    assert mapping.drift_ppm == pytest.approx(100.0, abs=25.0)
    assert latency.uncertainty_ns is not None
    assert latency.uncertainty_ns >= mapping.uncertainty_ns
    # Of the fastest frames some go both ways as fast as the line is known: none comes long before it was sent.
    assert latency.negative_maximum_ns <= latency.uncertainty_ns
    assert trial.reading.counts.lost == 0
