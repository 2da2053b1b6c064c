"""The tester inside the kernel (`driver: xdp`) beside real DUTs, and what it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.bench_file import parse
from nicbench.core.errors import BenchFileError
from nicbench.core.trial import Purpose, TrialRequest

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


def request(load_frames_per_s: float, duration_s: float) -> TrialRequest:
    return TrialRequest(
        frame_bytes=128,
        load_frames_per_s=load_frames_per_s,
        duration_s=duration_s,
        drain_s=0.2,
        settle_s=0.05,
        purpose=Purpose.LATENCY,
        bidirectional=True,
    )


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


@pytest.mark.parametrize(
    ("written", "instead", "reason"),
    [
        ("[128]", "[imix]", "in one size"),
        ("flows: 16", "flows: 16, pcap: frames.pcap", "of headers and a pattern"),
    ],
)
def test_what_the_kernel_does_not_do_is_refused_before_a_run(written: str, instead: str, reason: str) -> None:
    with pytest.raises(BenchFileError, match=reason) as refused:
        parse(bench_of("kind: kernel-forward").replace(written, instead).encode(), Path("bench.yaml"))
    assert "leave `driver: xdp` out" in str(refused.value)
