"""Many ports, from the bench file to the results: simulated ports whose truth is known, and real packets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.core.pattern import Way, way_of_stream
from nicbench.core.result import Result
from nicbench.core.trial import Purpose, Reading, Trial, TrialRequest
from nicbench.report import build
from nicbench.store.folder import RunFolder

from .one_trial import readings
from .simulated_bench import run_whole

SIMULATED = """
nicbench: 1
title: Ports
lab: {{kind: simulated, ports: {ports}, {lab}}}
dut: {{kind: simulated}}
traffic: {{pattern: {pattern}, flows: 4}}
tests:
  - name: loads
    method: load-sweep
    frame_bytes: [64]
    of: {of}
    loads: {loads}
    trial: {{duration: 200 ms, drain: 20 ms, settle: 5 ms}}
"""
SEARCH = """
nicbench: 1
title: Ports
lab: {{kind: simulated, ports: 4, egress_capacity: 60 kpps, egress_queue_frames: 4}}
dut: {{kind: simulated}}
traffic: {{pattern: {pattern}, flows: 4}}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [64]
    search: {{goals: {{NDR: 0 %}}, precision: 2 %, maximum_trials: 14, trials_per_bound: 1}}
    trial: {{duration: 100 ms, drain: 20 ms, settle: 5 ms}}
"""


def simulated(parent: Path, bench: str) -> tuple[tuple[Result, ...], list[Trial]]:
    folder = RunFolder.create(parent, bench, "Ports")
    run_whole(folder)
    summary = folder.summary()
    return summary.results, list(folder.journal.trials().values())


def by_way(reading: Reading) -> dict[Way, tuple[int, int]]:
    """Frames sent and received of each way."""
    return {
        way: (stream.counts.sent, stream.counts.received)
        for stream in reading.streams
        if (way := way_of_stream(stream.name)) is not None
    }


def received_of(trial: Trial) -> int:
    return trial.reading.counts.received


def test_an_egress_port_that_saturates_under_many_to_one_loses_exactly_what_it_cannot_carry(tmp_path: Path) -> None:
    lab = "egress_capacity: 60 kpps, egress_queue_frames: 16"
    bench = SIMULATED.format(ports=4, lab=lab, pattern="many-to-one", of="90 kpps", loads="[100 %, 60 %]")
    results, (over, under) = simulated(tmp_path, bench)
    # 90,000 frames/s at the receiving port, 30,000 from each of three, for 0.2 s.
    assert [sent for sent, _ in by_way(over.reading).values()] == [6_000] * 3
    # What it carries in that time, and the queue at its end, less the frames that have not yet come when it begins.
    assert over.reading.counts.received == pytest.approx(60_000 * 0.2 + 16, abs=4)
    assert over.reading.counts.received + over.reading.counts.lost == 18_000
    assert under.reading.counts.failed == 0
    loss = results[0].values["loss_percent"]
    assert isinstance(loss, float)
    assert loss == pytest.approx(100 / 3, abs=0.2)
    assert results[0].scope == "the sum of 3 ports that send to one"
    assert "load_frames_per_s_sum_of_ports" not in results[0].values  # it is that sum already
    assert results[0].parameters["ports"] == 4
    figures = results[0].by_port
    assert [(way.transmit_port, way.receive_port) for way in figures.ways] == [("t1", "t0"), ("t2", "t0"), ("t3", "t0")]
    assert figures.combined.received_frames == sum(way.received_frames for way in figures.ways) == received_of(over)
    assert all(way.latency_p50_ns is not None for way in figures.ways)
    receiving, *sending = figures.ports
    assert (receiving.offered_frames, receiving.expected_frames) == (0, 18_000)
    assert [(port.offered_frames, port.received_frames) for port in sending] == [(6_000, 0)] * 3
    page = build(next(tmp_path.iterdir())).read_text(encoding="utf-8")
    assert "many-to-one (partially meshed, RFC 2285 section 3.3.2)" in page
    assert "t3 → t0" in page
    assert "all, sum of 3 ways" in page


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("pattern", "times"),
    [("one-to-one", 2), ("one-to-many", 1), ("group-to-group", 2), ("full-mesh", 4), ("same-port", 4)],
)
def test_where_no_port_gets_more_than_the_load_nothing_is_lost(pattern: str, times: int, tmp_path: Path) -> None:
    lab = "egress_capacity: 60 kpps, egress_queue_frames: 16"
    bench = SIMULATED.format(ports=4, lab=lab, pattern=pattern, of="54 kpps", loads="[100 %]")
    (result,), (trial,) = simulated(tmp_path, bench)
    assert trial.reading.counts.failed == 0
    assert trial.reading.counts.sent == times * 54_000 * 0.2
    assert all(sent == received > 0 for sent, received in by_way(trial.reading).values())
    assert {port.foreign for port in trial.reading.ports} == {0}
    if times > 1:
        assert result.values["load_frames_per_s_sum_of_ports"] == pytest.approx(times * 54_000)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("pattern", "rate"), [("many-to-one", 60_000), ("one-to-one", 60_000), ("full-mesh", 60_000)])
def test_a_search_finds_what_one_port_of_the_dut_carries_whatever_comes_from_where(
    pattern: str, rate: float, tmp_path: Path
) -> None:
    """Of two pairs, of all ports among each other and of three into one: the load is the busiest port's."""
    (result,), _ = simulated(tmp_path, SEARCH.format(pattern=pattern))
    found = result.values["ndr_frames_per_s"]
    assert found.value == pytest.approx(rate, rel=0.03)


def test_the_line_rate_of_many_to_one_is_that_of_the_port_that_receives(tmp_path: Path) -> None:
    lab = "link: 10 Mb/s, egress_queue_frames: 4"
    bench = SIMULATED.format(ports=3, lab=lab, pattern="many-to-one", of="line_rate", loads="[100 %]")
    (result,), (trial,) = simulated(tmp_path, bench)
    assert trial.reading.counts.intended == pytest.approx(10e6 / (84 * 8) * 0.2, abs=2)
    assert result.values["percent_of_line_rate"] == pytest.approx(100.0)


def test_an_overload_of_the_port_that_receives_loses_what_its_line_does_not_carry(tmp_path: Path) -> None:
    """RFC 2285 section 3.5.4: two line rates for one port, of which half comes out."""
    line = 10e6 / (84 * 8)
    lab = f"link: 10 Mb/s, egress_capacity: {line} pps, egress_queue_frames: 4"
    bench = SIMULATED.format(ports=3, lab=lab, pattern="many-to-one", of="line_rate", loads="[200 %, 100 %]")
    (over, full), _ = simulated(tmp_path, bench)
    assert over.values["loss_percent"] == pytest.approx(50.0, abs=0.2)
    assert full.values["loss_percent"] == pytest.approx(0.0, abs=0.2)
    assert over.values["percent_of_line_rate"] == pytest.approx(200.0)
    assert over.parameters["mode"] == "10 Mb/s, many-to-one"


LAB = """
nicbench: 1
title: Real ports
lab: {{kind: veth, ports: {ports}}}
dut: {{kind: {dut}}}
traffic: {{ip: {ip}, pattern: {pattern}, bidirectional: {bidirectional}, flows: 16}}
tester: {tester}
tests:
  - {{name: t, method: throughput, frame_bytes: [128]}}
"""
TWO_WORKERS = "{workers: [{cpu: 0, transmit: [t0, t1, t2, t3]}, {cpu: 1, receive: [t0, t1, t2, t3]}]}"
CASES = {
    "two pairs": ("kernel-forward", 4, 4, "one-to-one", False, 2, 1),
    "two pairs, both ways, IPv6": ("kernel-forward", 4, 6, "one-to-one", True, 4, 1),
    "many to one": ("kernel-forward", 4, 4, "many-to-one", False, 3, 1),
    "one to many, over a bridge": ("bridge", 4, 4, "one-to-many", False, 3, 1),
    "one half to the other, both ways, over a bridge": ("bridge", 4, 4, "group-to-group", True, 8, 1),
    "a full mesh": ("kernel-forward", 4, 4, "full-mesh", True, 12, 1),
    "a full mesh over a bridge of three": ("bridge", 3, 6, "full-mesh", True, 6, 1),
    "returned on the port they came from": ("kernel-forward", 2, 4, "same-port", True, 2, 1),
    "returned on the port they came from, IPv6": ("kernel-forward", 2, 6, "same-port", True, 2, 1),
    "a full mesh, sent by one core and received by another": ("kernel-forward", 4, 4, "full-mesh", True, 12, 2),
}


@pytest.mark.lab
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dut", "ports", "ip", "pattern", "bidirectional", "ways", "workers"), CASES.values(), ids=list(CASES)
)
def test_real_frames_of_every_way_come_out_at_their_port(
    dut: str, ports: int, ip: int, pattern: str, bidirectional: bool, ways: int, workers: int
) -> None:
    request = TrialRequest(
        frame_bytes=128,
        load_frames_per_s=9_000,
        duration_s=0.3,
        drain_s=0.2,
        settle_s=0.05,
        purpose=Purpose.LATENCY,
        bidirectional=bidirectional,
    )
    tester = TWO_WORKERS if workers == 2 else "{}"
    both = str(bidirectional).lower()
    bench = LAB.format(dut=dut, ports=ports, ip=ip, pattern=pattern, bidirectional=both, tester=tester)
    (reading,) = asyncio.run(readings("nb-test-ports", bench, [(request, None)]))
    counts = reading.counts
    assert len(by_way(reading)) == ways
    assert all(received > 0 for _, received in by_way(reading).values())
    assert counts.received > 0.98 * counts.sent  # a busy machine may drop a few in the DUT's queue
    assert counts.received + counts.lost == counts.sent
    assert (counts.duplicated, counts.corrupted, counts.corrupted_unattributed) == (0, 0, 0)
    assert all(stream.latency is not None and stream.latency.minimum_ns > 0 for stream in reading.streams)


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_each_of_two_pairs_gets_what_its_own_bucket_lets_through() -> None:
    """The policer's known answer (RFC 2697: rate x time + burst), on both pairs at once, both ways."""
    request = TrialRequest(
        frame_bytes=128,
        load_frames_per_s=10_000,
        duration_s=0.5,
        drain_s=0.2,
        settle_s=0.05,
        purpose=Purpose.LOSS,
        bidirectional=True,
    )
    dut = "policer, rate: 5 kpps, burst: 100"
    bench = LAB.format(dut=dut, ports=4, ip=4, pattern="one-to-one", bidirectional="true", tester="{catch_up: 10 ms}")
    (reading,) = asyncio.run(readings("nb-test-pairs", bench, [(request, None)]))
    passed = by_way(reading)
    assert set(passed) == {(0, 1), (1, 0), (2, 3), (3, 2)}
    for sent, received in passed.values():
        assert received <= 5_000 * (0.5 + 0.05) + 100  # the last frames may leave, or come through, a little late
        assert received > 0.9 * min(sent, 5_000 * 0.5 + 100)  # a busy machine sends fewer
