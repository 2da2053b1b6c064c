"""A forwarder of ours with a rate, a queue, an outage that are known: every method finds them, with real frames."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result

from .lab_bench import TOLERANT, forwarder_lab, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow]

# What the tester makes good after a pause is within the burst: 10 ms at the highest load are 740 frames.
RATE, BURST, TRIAL_S = 50_000, 1000, 2.0
RATE_OF_ONE_CORE = "frame_rate_frames_per_s"


def lab(tester: str) -> str:
    return "nicbench: 1\ntitle: Known rate\n" + forwarder_lab(tester, catch_up="10 ms", link="100 Mb/s")


SEARCHES = "".join(
    f"""
  - name: {kind}
    method: throughput
    frame_bytes: [64]
    search: {{kind: {kind}, goals: {{NDR: 0 %}}, precision: 1 %, maximum_trials: {trials}, trials_per_bound: 1}}
    trial: {{duration: 1 s, drain: 100 ms, settle: 20 ms}}
"""
    for kind, trials in (("guided", 12), ("mlr", 16), ("step-down", 16))
)
EVERY_METHOD = f"""
dut: {{kind: reflector, huge_pages: false, faults: {{rate: {RATE} pps, rate_burst: {BURST}}}}}
tests:{SEARCHES}
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    of: {1.25 * RATE:.0f} pps
    trial: {{duration: {TRIAL_S:g} s, drain: 100 ms, settle: 20 ms}}
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: {1.25 * RATE:.0f} pps
    loads: [100 %, 50 %]
    trial: {{duration: {TRIAL_S:g} s, drain: 100 ms, settle: 20 ms}}
  - name: soak
    method: soak
    rate: {1.25 * RATE:.0f} pps
    trial: {{duration: {2 * TRIAL_S:g} s, interval: {TRIAL_S:g} s, drain: 100 ms, settle: 20 ms}}
    critical_load: {{loss_ratio: 0.1 %, duration: 14 s, first_trial: 1 s, longer_by: 50 ms}}
  - name: one-core
    method: single-core
    frame_bytes: [64]
    trial: {{duration: {TRIAL_S:g} s, drain: 100 ms, settle: 20 ms}}
"""


def value_of(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


@pytest.mark.acceptance
def test_a_known_rate_is_found_within_two_percent_by_every_method_that_sees_it(tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, lab("dpdk") + EVERY_METHOD + TOLERANT)
    results = {result.id: result for result in summary.results}
    for kind in ("guided", "mlr", "step-down"):
        rate = value_of(results[f"{kind}/64"], "ndr_frames_per_s")
        truth = RATE + BURST / 1.0  # RFC 2697: what a full bucket lets pass besides in a trial of 1 s
        print(f"{kind}: {rate} of {truth:.0f}")
        assert rate.value == pytest.approx(truth, rel=0.02)
    offered = 1.25 * RATE * TRIAL_S
    lost_percent = 100.0 * (1.0 - (RATE * TRIAL_S + BURST) / offered)
    for name, result in results.items():
        if name.split("/")[0] not in ("loss", "sweep", "soak") or "loss_percent" not in result.values:
            continue
        if result.parameters.get("part") or result.parameters.get("load_percent") not in (100.0,):
            continue
        print(f"{name}: {result.values['loss_percent']} of {lost_percent:.2f} %")
        # Within 2 % of the rate, which is 80 % of what was offered.
        assert result.values["loss_percent"] == pytest.approx(lost_percent, abs=1.6), name
    one_core = value_of(next(result for result in summary.results if result.method == "single-core"), RATE_OF_ONE_CORE)
    print(f"one core: {one_core} of {RATE + BURST / TRIAL_S:.0f}")
    assert one_core.value == pytest.approx(RATE + BURST / TRIAL_S, rel=0.02)
    half = [
        result for result in summary.results if result.id.startswith("sweep") and result.values["loss_percent"] == 0
    ]
    assert [result.parameters["load_percent"] for result in half] == [50.0]
    critical = value_of(results["soak/64/critical-load"], "critical_load_frames_per_s")
    print(f"critical load: {critical}")
    # The bucket counts as if it were the rate's, for as long as a trial is: 1 to 1.5 s.
    assert critical.value == pytest.approx(RATE + BURST / 1.25, rel=0.02)


QUEUE_FRAMES, BURST_RATE = 3000, 140_000
QUEUE = f"""
dut: {{kind: reflector, huge_pages: false, faults: {{rate: {RATE} pps, rate_queue: {QUEUE_FRAMES}}}}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{goals: {{NDR: 0 %}}, precision: 2 %, maximum_trials: 8, trials_per_bound: 1}}
    trial: {{duration: 3 s, drain: 200 ms, settle: 20 ms}}
  - name: bursts
    method: back-to-back
    at: throughput
    frame_bytes: [64]
    rate: {BURST_RATE} pps
    repetitions: 2
    longest_burst: 80 ms
    step_frames: 10
    loss_verification: 1
    trial: {{drain: 150 ms, settle: 20 ms}}
"""


@pytest.mark.acceptance
def test_a_queue_of_known_depth_is_the_corrected_buffer(tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, lab("dpdk") + QUEUE + TOLERANT)
    result = next(result for result in summary.results if result.method == "back-to-back")
    found = value_of(result, "back_to_back_frames")
    truth = QUEUE_FRAMES / (1 - RATE / BURST_RATE)
    print(f"queue: {found} of {truth:.0f} frames, {result.values['corrected_buffer_frames']} of {QUEUE_FRAMES}")
    assert found.value is not None
    # A pause of the sender lets the queue empty a little, and what it then makes good comes faster.
    assert truth * 0.98 <= found.value <= truth + RATE * 0.010 * 1.5
    assert result.values["corrected_buffer_frames"] == pytest.approx(QUEUE_FRAMES, rel=0.2)


OUTAGE_MS = 200
OUTAGE = f"""
dut: {{kind: reflector, huge_pages: false, faults: {{rate: {RATE} pps, rate_burst: {BURST}, outage: {OUTAGE_MS} ms}}}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{goals: {{NDR: 0 %}}, precision: 5 %, time: 30 s, trials_per_bound: 1}}
    trial: {{duration: 400 ms, drain: 50 ms, settle: 20 ms}}
  - name: recovery
    method: system-recovery
    at: throughput
    frame_bytes: [64]
    overload: 150 % # far enough above a throughput that a busy machine made a few trials too low
    repetitions: 2
    trial: {{overload_time: 500 ms, recovery_time: 500 ms, drain: 100 ms, settle: 20 ms}}
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("tester", ["dpdk", "xdp"])
def test_an_outage_of_known_length_after_an_overload_is_the_recovery_time(tester: str, tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, lab(tester) + OUTAGE + TOLERANT)
    result = next(result for result in summary.results if result.method == "system-recovery")
    found = value_of(result, "recovery_time_ms")
    print(f"recovery: {found} of {OUTAGE_MS} ms, {result.verdict.value}")
    assert found.value is not None
    # The last frame that came too fast was sent up to 1 ms before the change; a pause delays what is sent after it.
    assert OUTAGE_MS * 0.98 - 1.0 <= found.value <= OUTAGE_MS + 30.0
