"""TCP throughput over a bottleneck of known rate with a buffer of known size: the rate, and no more than the buffer."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.core.result import Result, ResultVerdict

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="known truths")]

SERVER, MIDDLE, CLIENT = (f"nb-tcp-{end}-{os.getpid()}" for end in ("server", "middle", "client"))
BENCH = f"""
nicbench: 1
title: TCP through a buffer
hosts:
  server: {{{{kind: netns, namespace: {SERVER}}}}}
  client: {{{{kind: netns, namespace: {CLIENT}}}}}
ports:
  s0: {{{{host: server, device: s0, ip: 198.18.0.1/24}}}}
  c0: {{{{host: client, device: c0, ip: 198.18.0.2/24}}}}
links: [c0 <-> s0]
dut: {{{{kind: server}}}}
monitor: off
thresholds: {{{{start_spread_share: 0.9, machine_steal_share: 0.9}}}}
tests:
  - name: tcp
    method: tcp-throughput
    bottleneck: {{rate:.0f}} b/s
    streams: 4 # which fill a buffer sooner than one
    duration: {{duration}}
    baseline: 1 s
"""


def ip(*words: str, within: str | None = None) -> None:
    run_captured(("ip", *(("-n", within) if within else ()), *words))


@pytest.fixture
def spaces() -> Iterator[None]:
    """A server and a client with a bridge between them, whose bottleneck ``hold`` makes."""
    for space in (SERVER, MIDDLE, CLIENT):
        ip("netns", "add", space)
        ip("link", "set", "lo", "up", within=space)
    try:
        ip("link", "add", "name", "bridge0", "type", "bridge", within=MIDDLE)
        for space, device, address in ((SERVER, "s0", "198.18.0.1/24"), (CLIENT, "c0", "198.18.0.2/24")):
            ip("link", "add", device, "type", "veth", "peer", "name", f"m{device}", "netns", MIDDLE, within=space)
            ip("address", "add", address, "dev", device, within=space)
            ip("link", "set", device, "up", within=space)
            ip("link", "set", f"m{device}", "master", "bridge0", "up", within=MIDDLE)
        ip("link", "set", "bridge0", "up", within=MIDDLE)
        yield
    finally:
        for space in (SERVER, MIDDLE, CLIENT):
            run_tried(("ip", "netns", "delete", space))


def hold(rate: float, buffer_bytes: int) -> None:
    """The bottleneck: on its way to the server, a rate (of frames without FCS) behind a buffer."""
    words = ("rate", f"{rate:.0f}bit", "burst", "4000", "limit", str(buffer_bytes))
    command = ("ip", "netns", "exec", MIDDLE, "tc", "qdisc", "add", "dev", "ms0", "root", "tbf", *words)
    run_captured(command)


def measured(folder: Path, rate: float, buffer_bytes: int, duration: str) -> Result:
    hold(rate, buffer_bytes)
    summary = asyncio.run(run_async(make_folder(folder, BENCH.format(rate=rate, duration=duration))))
    (result,) = summary.results
    assert result.verdict is not ResultVerdict.INCOMPLETE, result.disturbances
    values = {name: value for name, value in result.values.items() if value is not None}
    print(f"{rate / 1e6:.1f} Mb/s, {buffer_bytes} bytes: {values}")
    return result


def check(result: Result, rate: float, buffer_bytes: int) -> None:
    """The path MTU of a veth, the payload of a full bottleneck, and a buffer that was filled by half at least."""
    values = result.values
    assert values["path_mtu_bytes"] == 1500
    throughput, buffered = values["throughput_bits_per_s"], values["buffered_bytes"]
    assert isinstance(throughput, float)
    assert buffered.value is not None
    assert values["retransmissions"]  # the buffer was full: else TCP would have filled it no further
    assert 0.85 * rate < throughput <= rate * 1448 / 1514 * 1.02
    # At least so much; round trips are smoothed, and seen once a second: the fullest moment is missed by some.
    assert 0.4 * buffer_bytes < buffered.value < 1.02 * buffer_bytes
    # How full it is in the mean is for TCP to choose; never more than full.
    delay, baseline = values["buffer_delay_percent"], values["baseline_round_trip_ns"]
    assert isinstance(delay, float)
    assert isinstance(baseline, float)
    assert 0.1 * 8e9 * buffer_bytes / rate < delay / 100 * baseline < 1.1 * 8e9 * buffer_bytes / rate


def test_the_rate_and_the_buffer_of_a_bottleneck_are_found(spaces: None, tmp_path: Path) -> None:
    check(measured(tmp_path, 40e6, 200_000, "3 s"), 40e6, 200_000)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_they_are_found_in_ten_of_ten_runs(spaces: None, repetition: int, draw: random.Random, tmp_path: Path) -> None:
    rate, buffer_bytes = draw.uniform(20e6, 60e6), draw.randrange(60_000, 200_000)
    check(measured(tmp_path, rate, buffer_bytes, "8 s"), rate, buffer_bytes)
