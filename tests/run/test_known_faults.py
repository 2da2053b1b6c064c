"""What a forwarder of our own does to frames on purpose is what the tables say: real frames between two processes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from .lab_bench import TOLERANT, forwarder_lab, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.slow]

# The tester inside the kernel has a short test of every fault: test_xdp_tester_lab.py.
TESTERS = ["dpdk", pytest.param("xdp", marks=[pytest.mark.alone, pytest.mark.acceptance])]

LOSS, ALTERED = 0.05, 0.02
BENCH = (
    """
nicbench: 1
title: Known faults
dut: {kind: reflector, huge_pages: false, faults: {seed: 5, loss: 5 %, corrupt_payload: 2 %}}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 40 kpps
    loads: [100 %, 25 %]
    trial: {duration: 500 ms, drain: 50 ms, settle: 20 ms}
  - name: loss
    method: frame-loss
    frame_bytes: [64]
    of: 10 kpps
    trial: {duration: 200 ms, drain: 50 ms, settle: 20 ms}
"""
    + TOLERANT
)


@pytest.mark.acceptance  # what the reflector does is counted by the tests of the engine as well
@pytest.mark.parametrize("tester", TESTERS)
def test_a_known_share_that_is_lost_or_altered_is_what_does_not_come_back_intact(tester: str, tmp_path: Path) -> None:
    summary, trials = run_bench(tmp_path, BENCH + forwarder_lab(tester, catch_up="10 ms"))
    sweep = [result for result in summary.results if result.method == "load-sweep"]
    loss = [result for result in summary.results if result.method == "frame-loss"]
    assert [result.parameters["load_percent"] for result in sweep] == [100.0, 25.0]
    assert len(loss) == 10  # it always loses, so that no load ends the sequence
    truth = 100.0 * (LOSS + ALTERED)
    for result in summary.results:
        offered = result.values["offered_frames"]
        assert isinstance(offered, int)
        slack = 6 * 100.0 * math.sqrt((LOSS + ALTERED) / offered)  # six standard deviations of what is drawn
        assert result.values["loss_percent"] == pytest.approx(truth, abs=slack), result.id
        assert result.values["returned_percent"] == pytest.approx(100.0 - truth, abs=slack), result.id
        print(f"{result.id}: {offered} offered, lost or altered {result.values['loss_percent']:.3f} % of {truth:g} %")
    for trial in trials:
        if trial.test in ("sweep", "loss"):
            own_count = sum(place.frames for place in trial.reading.ledger if not place.unsent)
            assert own_count == trial.reading.counts.lost
            assert (trial.reading.unexplained, trial.reading.ledger_faults) == (0, ())


DELAY_NS = 2_000_000
DELAYED = (
    """
nicbench: 1
title: Known delay
dut: {kind: reflector, huge_pages: false, faults: {delay: 2 ms}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {goals: {PDR: 50 %}, precision: 40 %, maximum_trials: 2, trials_per_bound: 1}
    trial: {duration: 100 ms, drain: 200 ms, settle: 20 ms}
  - name: latency
    method: latency
    at: throughput
    of: PDR
    loads: [10 %]
    frame_bytes: [64]
    bins: [1999 us, 2100 us, 20 ms]
    frames: 5000
    trial: {duration: 1 s, drain: 200 ms, settle: 20 ms}
  - name: soak
    method: soak
    rate: 5 kpps
    trial: {duration: 600 ms, interval: 300 ms, drain: 200 ms, settle: 20 ms}
"""
    + TOLERANT
)


@pytest.mark.sampled(1, of="spoilt frames")
@pytest.mark.parametrize("tester", TESTERS)
def test_a_known_delay_is_measured_within_the_stated_uncertainty_over_exactly_so_many_frames(
    tester: str, tmp_path: Path
) -> None:
    # It catches up so long that a pause of the tester leaves no frame unsent.
    summary, _ = run_bench(tmp_path, DELAYED + forwarder_lab(tester, catch_up="1 s", link="100 Mb/s"))
    (result,) = (result for result in summary.results if result.method == "latency")
    values = {name: value for name, value in result.values.items() if isinstance(value, int | float)}
    # What the DUT adds is a minimum: no frame can be faster, and the fastest were held up by nothing else.
    assert values["latency_minimum_ns"] >= DELAY_NS - values["latency_uncertainty_ns"]
    assert values["bin_to_1999000_ns_frames"] == 0
    assert values["sent_frames"] == values["timed_frames"] == 5000
    counted = sum(
        values[f"bin_{name}_ns_frames"] for name in ("to_1999000", "to_2100000", "to_20000000", "over_20000000")
    )
    assert counted == 5000
    own = result.values["tester_latency_p50_ns"]
    print(
        f"a delay of {DELAY_NS} ns: minimum {values['latency_minimum_ns']}, p50 {values['latency_p50_ns']}, "
        f"uncertainty {values['latency_uncertainty_ns']}, the tester's own {own} ns"
    )
    intervals = [result for result in summary.results if result.method == "soak"]
    assert intervals
    for interval in intervals:
        mean_us, highest_us = interval.values["latency_mean_us"], interval.values["latency_maximum_us"]
        print(f"{interval.id}: mean {mean_us:.1f} us, highest {highest_us:.1f} us of {DELAY_NS / 1e3:g} us")
        assert mean_us >= (DELAY_NS - values["latency_uncertainty_ns"]) / 1e3
        assert mean_us <= highest_us
