"""Time stamps from the bench file to the report: of a simulated card, and of the kernel over real frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Summary
from nicbench.core.trial import Purpose, Trial
from nicbench.report import build
from nicbench.store.folder import RunFolder

from .lab_bench import TOLERANT, run_bench
from .simulated_bench import run_whole

TESTS = """
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {precision: 20 %, goals: {PDR: 50 %}, maximum_trials: 4, trials_per_bound: 1}
    trial: {duration: 300 ms, drain: 100 ms, settle: 20 ms}
  - name: latency
    method: latency
    at: throughput
    of: PDR
    loads: [5 %]
    frame_bytes: [64]
    trial: {duration: 500 ms, drain: 100 ms, settle: 20 ms}
"""


def latency_trial(trials: list[Trial]) -> Trial:
    *_, trial = (trial for trial in trials if trial.request.purpose is Purpose.LATENCY)  # a busy machine repeats it
    return trial


def assert_stamped_by(summary: Summary, trial: Trial, source: str) -> None:
    """Every frame bore a stamp of this source, and the summary says so."""
    latency, clock = trial.reading.latency, trial.reading.ports[1].timestamps
    assert (latency.received_by, latency.source) == (source, "software")
    assert (clock.source, clock.unstamped, clock.implausible) == (source, 0, 0)
    assert clock.stamped >= latency.count  # frames of others bear stamps too
    (result,) = [result for result in summary.results if result.method == "latency"]
    assert result.values["latency_received_by"] == source
    assert result.values["latency_resolution_ns"] == latency.resolution_ns
    assert result.values["latency_negative_frames"] == latency.negative


def test_a_simulated_card_stamps_what_the_device_delays(tmp_path: Path) -> None:
    lab = "lab: {kind: simulated, capacity: 200 kpps, delay: 20 us, card_clock_ppm: 42}\ndut: {kind: simulated}\n"
    bench = f"nicbench: 1\ntitle: Card\n{lab}tester: {{timestamps: card}}\n{TESTS}"
    folder = RunFolder.create(tmp_path, bench, "Card")
    run_whole(folder)
    summary, trials = folder.summary(), list(folder.journal.trials().values())
    assert summary is not None
    trial = latency_trial(trials)
    assert_stamped_by(summary, trial, "card")
    latency, clock = trial.reading.latency, trial.reading.ports[1].timestamps
    # 20 us, 5 us of service and 84 bytes of wire at 10 Gb/s, without the software's polling.
    assert (latency.minimum_ns, latency.maximum_ns, latency.negative) == pytest.approx((25_067, 25_067, 0), abs=2)
    assert clock.clock_hz == pytest.approx(1e9 * (1 + 42e-6), rel=1e-7)
    page = build(folder.path).read_text()
    assert "received ones by the card, each when it arrives, in steps of 1 ns" in page
    assert "The clocks that stamped these frames" in page


@pytest.mark.sampled(4, of="labs in turn")
@pytest.mark.lab
def test_the_kernel_stamps_real_frames(tmp_path: Path) -> None:
    bench = (
        "nicbench: 1\ntitle: Kernel\nlab: {kind: veth}\ndut: {kind: kernel-forward}\n"
        f"tester: {{driver: net_pcap, timestamps: kernel}}\n{TOLERANT}{TESTS}"
    )
    summary, trials = run_bench(tmp_path, bench)
    trial = latency_trial(trials)
    assert_stamped_by(summary, trial, "kernel")
    latency, clock = trial.reading.latency, trial.reading.ports[1].timestamps
    assert clock.clock_hz == pytest.approx(1e9, rel=1e-3), "nanoseconds of the system's clock"
    assert clock.resolution_ns == 1000.0
    assert latency.uncertainty_ns is not None
    assert latency.uncertainty_ns > 500
