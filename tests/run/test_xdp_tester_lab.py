"""The tester inside the kernel (`driver: xdp`) with real DUTs, and what it refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.errors import BenchFileError
from nicbench.core.frame_size import IMIX, Mix, mean_bytes
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.stages.testbed import lay_out_ways, make_dut, make_testbed
from nicbench.stages.tester import make_tester
from nicbench.testbed.duts.reflector import Reflector
from nicbench.tuning.stack import UndoStack

from .one_trial import readings

BENCH = """
nicbench: 1
title: In the kernel
lab: {{kind: veth, ports: 2}}
dut: {{{dut}}}
traffic: {{ip: {ip}, pattern: {pattern}, bidirectional: true, flows: 16}}
tester: {{driver: xdp, catch_up: 20 ms}}
tests:
  - {{name: t, method: throughput, frame_bytes: [128]}}
"""


def bench_of(dut: str, *, ip: int = 4, pattern: str = "one-to-one") -> str:
    return BENCH.format(dut=dut, ip=ip, pattern=pattern)


def request(load_frames_per_s: float, duration_s: float, mix: Mix | None = None) -> TrialRequest:
    return TrialRequest(
        frame_bytes=128 if mix is None else mean_bytes(mix),
        mix=mix,
        load_frames_per_s=load_frames_per_s,
        duration_s=duration_s,
        drain_s=0.2,
        settle_s=0.05,
        purpose=Purpose.LATENCY,
        bidirectional=True,
    )


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.parametrize(
    ("dut", "ip", "pattern"),
    [
        ("kind: kernel-forward", 6, "one-to-one"),
        pytest.param("kind: xdp-forward", 6, "one-to-one", marks=pytest.mark.acceptance),
        ("kind: xdp-tx", 4, "same-port"),
    ],
)
def test_frames_made_in_the_kernel_come_back_through_a_real_device(dut: str, ip: int, pattern: str) -> None:
    (reading,) = asyncio.run(
        readings("nb-test-xdp", bench_of(dut, ip=ip, pattern=pattern), [(request(9_000, 0.3), None)])
    )
    counts = reading.counts
    assert counts.intended == 2 * 2_700
    assert counts.received > 0.98 * counts.sent  # a busy machine may drop a few in the DUT's queue
    assert counts.received + counts.lost == counts.sent
    assert (counts.duplicated, counts.corrupted, counts.corrupted_unattributed) == (0, 0, 0)
    assert all(stream.latency is not None and stream.latency.minimum_ns > 0 for stream in reading.streams)


FATES = ("lost", "duplicated", "reordered", "corrupted", "dropped_rate", "dropped_held_full", "dropped_transmit_full")
FAULTS = (
    "kind: reflector, huge_pages: false, faults: {seed: 3, delay: 500 us, loss: 3 %, duplicate: 3 %, reorder: 3 %,"
    " reorder_by: 1, corrupt_payload: 3 %, corrupt_signature: 3 %}"
)


async def with_what_was_done() -> tuple[Reading, Counter[str]]:
    """A trial through a forwarder that spoils frames, and what it says of them."""
    # Of one flow, so that a frame that is overtaken is overtaken in its flow.
    bench = parse(bench_of(FAULTS).replace("flows: 16", "flows: 1").encode(), Path("bench.yaml"))
    changes = UndoStack("nb-test-xdp-faults", None)
    try:
        _, testbed = await make_testbed(bench, changes)
        dut = await make_dut(bench, testbed, changes)
        assert isinstance(dut, Reflector)
        _, ways = lay_out_ways(bench, testbed, dut)
        tester = make_tester(bench, testbed, (), changes.run_id, None)
        await tester.start()
        try:
            await dut.begin_trial(1)
            before = await dut.statistics()
            reading = await tester.trial(1, request(9_000, 1.0), ways)
            done = Counter()
            for sign, directions in ((-1, before["directions"]), (1, (await dut.statistics())["directions"])):
                for way in directions:
                    done.update({name: sign * way[name] for name in ("received", *FATES)})
            return reading, done
        finally:
            await tester.close()
    finally:
        await changes.undo_all()


@pytest.mark.lab
@pytest.mark.sampled(1, of="spoilt frames")
def test_every_frame_that_a_forwarder_spoils_is_counted_as_what_was_done_to_it() -> None:
    reading, done = asyncio.run(with_what_was_done())
    counts = reading.counts
    assert counts.sent == counts.intended == 2 * 9_000
    learned = done["received"] - counts.sent  # learning frames before the trial; they are spoilt as any other
    assert 0 <= learned <= 100
    assert counts.duplicated is not None
    assert counts.reordered is not None
    assert counts.corrupted is not None
    assert counts.corrupted_unattributed is not None
    found = {
        "lost": counts.lost,
        "duplicated": counts.duplicated,
        "reordered": counts.reordered,
        "corrupted": counts.corrupted + counts.corrupted_unattributed,
    }
    print(f"{found} of {dict(done)}")
    for name, number in found.items():
        assert number > 300
        assert 0 <= done[name] - number <= learned, name
    assert min(counts.corrupted, counts.corrupted_unattributed) > 300
    assert counts.received + counts.lost + counts.corrupted + counts.corrupted_unattributed == counts.sent
    assert counts.foreign == 0
    assert reading.latency is not None
    assert reading.latency.minimum_ns >= 500_000 - (reading.latency.uncertainty_ns or 0)


SEVERAL_QUEUES = """
nicbench: 1
title: Two queues, two workers
lab: {kind: veth, ports: 2, queues: 2}
dut: {kind: kernel-forward}
traffic: {bidirectional: true, flows: 16}
tester:
  driver: xdp
  catch_up: 200 ms
  workers: [{cpu: 0, transmit: [t0, t1], receive: [t0, t1]}, {cpu: 1, transmit: [t0, t1], receive: [t0, t1]}]
tests:
  - {name: t, method: throughput, frame_bytes: [128]}
"""


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_two_workers_share_the_flows_and_two_queues_bring_them_back_without_a_miscount() -> None:
    (reading,) = asyncio.run(readings("nb-test-xdp", SEVERAL_QUEUES, [(request(9_001, 0.3), None)]))
    counts = reading.counts
    assert counts.sent == counts.intended == 2 * 2_700
    assert (counts.received, counts.lost) == (counts.sent, 0)
    assert (counts.duplicated, counts.reordered) == (0, 0)
    assert (counts.corrupted, counts.corrupted_unattributed, counts.unattributed, counts.foreign) == (0, 0, 0, 0)
    assert reading.latency.count == counts.received


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_what_a_policer_lets_through_is_what_the_kernel_counts() -> None:
    """RFC 2697: rate x time + burst, each way by a bucket of its own."""
    (reading,) = asyncio.run(
        readings("nb-test-xdp", bench_of("kind: policer, rate: 5 kpps, burst: 100"), [(request(10_000, 0.5), None)])
    )
    for stream in reading.streams:
        sent, received = stream.counts.sent, stream.counts.received
        assert received <= 5_000 * (0.5 + 0.05) + 100
        assert received > 0.9 * min(sent, 5_000 * 0.5 + 100)


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.lab
@pytest.mark.alone
def test_a_mix_of_sizes_made_in_the_kernel_comes_back_in_its_proportions() -> None:
    mixed = bench_of("kind: xdp-forward").replace("[128]", "[imix]")
    (reading,) = asyncio.run(readings("nb-test-xdp", mixed, [(request(6_000, 0.4, IMIX), None)]))
    counts = reading.counts
    assert counts.intended == 2 * 2_400
    assert counts.received > 0.98 * counts.sent  # a busy machine may drop a few in the DUT's queue
    assert counts.received + counts.lost == counts.sent
    assert (counts.duplicated, counts.reordered, counts.corrupted, counts.corrupted_unattributed) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {
                "flows: 16": "flows: 16, vxlan: {vni: 5}, mixes: "
                "{two: [{frame_bytes: 200, weight: 1}, {frame_bytes: 300, weight: 2}]}",
                "[128]": "[two]",
            },
            "of one size",
        ),
        ({"flows: 16": "flows: 16, pcap: frames.pcap"}, "of headers and a pattern"),
    ],
)
def test_what_the_kernel_does_not_do_is_refused_before_a_run(changes: dict[str, str], reason: str) -> None:
    bench = bench_of("kind: kernel-forward")
    for written, instead in changes.items():
        bench = bench.replace(written, instead)
    with pytest.raises(BenchFileError, match=reason) as refused:
        parse(bench.encode(), Path("bench.yaml"))
    assert "leave `driver: xdp` out" in str(refused.value)
