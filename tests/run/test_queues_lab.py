"""Queues and shares on real frames: a DUT whose queues, or pairs of ports, pass what is known."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow, pytest.mark.sampled(2, of="known truths")]

SECONDS = 1.0
SPREAD = """
nicbench: 1
title: Flows over four queues
lab: {{kind: veth, queues: 4}}
dut: {{kind: policer, rate: {rate} pps, burst: {burst}, per_queue: true}}
tester: {{driver: net_pcap, catch_up: 5 ms}}
traffic: {traffic}
{more}
tests:
  - name: spread
    method: receive-spread
    rate: {load} pps
    trial: {{duration: {seconds:g} s, drain: 300 ms, settle: 50 ms}}
"""
SHARES = """
nicbench: 1
title: Unequal pairs of ports
lab: {{kind: veth, ports: {ports}}}
dut: {{kind: policer, rates: {rates}, burst: 50}}
tester: {{driver: xdp, catch_up: 5 ms}}
tests:
  - name: shares
    method: port-shares
    frame_bytes: [64]
    rate: {load} pps
    at_once: [1, {pairs}]
    repetitions: 1
    trial: {{duration: {seconds:g} s, drain: 200 ms, settle: 50 ms}}
"""


def of_part(results: tuple[Result, ...], part: str) -> list[Result]:
    return [result for result in results if result.parameters["part"] == part]


def spread(
    folder: Path, traffic: str, load: int, *, rate: int = 100_000, burst: int = 100, more: str = ""
) -> tuple[Result, ...]:
    bench = SPREAD.format(traffic=traffic, load=load, rate=rate, burst=burst, more=more, seconds=SECONDS)
    summary, _ = run_bench(folder, bench + TOLERANT)
    return summary.results


def check_elephant(folder: Path, draw: random.Random) -> None:
    """An elephant overloads its queue: what that passes is known, and only flows beside it lose frames."""
    rate, mice = 1000 * draw.randint(5, 9), draw.choice((63, 127, 255))
    seed = draw.randrange(2**31)
    ports = f"{{source_port: {{first: 1024, count: 50000, seed: {seed}}}}}"
    flows = f"{{name: mice, share: 50 %, flows: {mice}, fields: {ports}}}"
    traffic = f"{{streams: [{flows}, {{name: elephant, share: 50 %, flows: 1, source_port: 60000}}]}}"
    results = spread(folder, traffic, 3 * rate, rate=rate, burst=50)
    (found,) = of_part(results, "spread")
    queues = [int(str(row.values["frames"])) for row in of_part(results, "queues")]
    by_stream = {str(row.parameters["stream"]).split()[1]: row.values for row in of_part(results, "streams")}
    lost = sum(int(str(values["lost_frames"])) for values in by_stream.values())
    known = max(queues) - (rate * SECONDS + 50)
    beside = max(queues) - int(str(by_stream["elephant"]["sent_frames"]))
    expected_flows = beside / (int(str(by_stream["mice"]["sent_frames"])) / mice)
    hurt = by_stream["mice"]["flows_with_loss"]
    print(f"queues {queues}, lost {lost}, known {known:.0f}, {hurt} of {expected_flows:.1f} mice")
    assert found.values["against_chance"] == "chance explains it"
    assert lost == pytest.approx(known, rel=0.02)
    # In step with the elephant a flow may always find room; one on another queue loses nothing.
    assert 0 < int(str(hurt)) <= expected_flows + 1.5


def test_an_elephant_costs_the_flows_on_its_queue_and_no_others(tmp_path: Path, draw: random.Random) -> None:
    check_elephant(tmp_path, draw)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_ten_elephants_are_found(tmp_path: Path, repetition: int, draw: random.Random) -> None:
    check_elephant(tmp_path, draw)


@pytest.mark.acceptance  # the pure test has a queue that gets nothing
@pytest.mark.parametrize("repetition", range(10))
def test_queues_that_are_left_out_are_told(tmp_path: Path, repetition: int, draw: random.Random) -> None:
    # Each transmit queue is one CPU's: of its own the sender's CPU chooses, so that half of the queues get nothing.
    steering = "tuning: {tester: {packet_steering: {send: 0-1}}}"
    results = spread(tmp_path, f"{{flows: {draw.randint(100, 300)}}}", 5000, more=steering)
    (found,) = of_part(results, "spread")
    assert found.values["idle_queues"] == 2
    assert str(found.values["against_chance"]).startswith("worse than chance; no frame on queue")


def check_shares(folder: Path, draw: random.Random, pairs: int) -> None:
    """Each pair of ports gets what its bucket passes, alone and together with the others."""
    rates = [1000 * draw.randint(2, 10) for _ in range(pairs)]
    written = ", ".join(f"{rate} pps" for rate in rates)
    bench = SHARES.format(ports=2 * pairs, rates=f"[{written}]", pairs=pairs, load=12_000, seconds=SECONDS)
    summary, _ = run_bench(folder, bench + TOLERANT)
    passed = [rate + 50 / SECONDS for rate in rates]
    each = [row for row in of_part(summary.results, "each") if row.parameters["ports_at_once"] == pairs]
    index = of_part(summary.results, "together")[-1].values["jain_index"]
    known = sum(passed) ** 2 / (pairs * sum(rate * rate for rate in passed))
    print(f"index {index.value}, known {known:.4f}; shares {[row.values['share_percent'] for row in each]}")
    assert index.value == pytest.approx(known, abs=0.005)
    for row, rate in zip(each, passed, strict=True):
        assert row.values["share_percent"] == pytest.approx(100.0 * rate / sum(passed), abs=0.5)
        assert row.values["of_alone_percent"] == pytest.approx(100.0, abs=2.0)


def test_ports_that_are_served_unequally_have_the_known_shares(tmp_path: Path, draw: random.Random) -> None:
    check_shares(tmp_path, draw, 2)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_ten_unequal_duts_have_the_known_shares(tmp_path: Path, repetition: int, draw: random.Random) -> None:
    check_shares(tmp_path, draw, draw.choice((3, 4)))


STUDY = """
nicbench: 1
title: Rates over queues
lab: {{kind: veth}}
dut: {{kind: policer, rate: {rate} pps, burst: {burst}, per_queue: true}}
axes: {{queues: {{1: {{lab: {{queues: 1}}}}, 3: {{lab: {{queues: 3}}}}}}}}
tester: {{driver: net_pcap, catch_up: 5 ms}}
traffic: {{flows: {flows}}}
tests:
  - name: spread
    method: receive-spread
    rate: {low} pps
    trial: {{duration: 1 s, drain: 300 ms, settle: 50 ms}}
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{kind: mlr, goals: {{NDR: 0 %}}, precision: 2 %, maximum_trials: 12, maximum_load: {most} pps}}
    trial: {{duration: 1 s, drain: 300 ms, settle: 50 ms}}
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(5))
def test_the_rate_over_queues_follows_from_the_most_loaded_one(
    tmp_path: Path, repetition: int, draw: random.Random
) -> None:
    rate, burst, flows = 1000 * draw.randint(5, 12), 150, draw.randint(40, 250)
    bench = STUDY.format(rate=rate, burst=burst, flows=flows, low=rate // 2, most=6 * rate)
    summary, _ = run_bench(tmp_path, bench + TOLERANT)
    for configuration in ("queues-1", "queues-3"):
        results = [each for each in summary.results if each.configuration == configuration]
        spread_of = next(each for each in results if each.parameters.get("part") == "spread").values
        most_to_mean = spread_of["most_to_mean"]
        found = next(each for each in results if each.method == "throughput").values["ndr_frames_per_s"]
        assert isinstance(most_to_mean, float)
        assert isinstance(found, Bounded)
        known = (rate + burst) * int(str(spread_of["queues"])) / most_to_mean
        print(f"{configuration}: found {found.lower} to {found.upper}, known {known:.0f}")
        # The share of the most loaded queue is that of one trial: flows have a frame more or less.
        assert found.value == pytest.approx(known, rel=0.03)
