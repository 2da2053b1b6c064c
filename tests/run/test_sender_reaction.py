"""Senders over a bottleneck that marks: its rate, marks and no losses; without ECN losses and no marks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.core.result import Result, ResultVerdict

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="known truths")]

SERVER, MIDDLE, FIRST, SECOND = (f"nb-ecn-{end}-{os.getpid()}" for end in ("server", "middle", "first", "second"))
BENCH = f"""
nicbench: 1
title: Senders and marks
hosts:
  server: {{{{kind: netns, namespace: {SERVER}}}}}
  first: {{{{kind: netns, namespace: {FIRST}}}}}
  second: {{{{kind: netns, namespace: {SECOND}}}}}
ports:
  s0: {{{{host: server, device: s0, ip: 198.18.0.1/24}}}}
  c0: {{{{host: first, device: c0, ip: 198.18.0.2/24}}}}
  c1: {{{{host: second, device: c1, ip: 198.18.0.3/24}}}}
links: [c0 <-> s0, c1 <-> s0]
dut: {{{{kind: server}}}}
monitor: off
thresholds: {{{{start_spread_share: 0.9, machine_steal_share: 0.9}}}}
tests:
  - name: senders
    method: sender-reaction
    congestion_control: cubic
    duration: {{duration:g}} s
    joins_after: {{joins:g}} s
"""
RATE = 20e6
BUFFER_BYTES = 60_000
EVERY = 50
"""Of the packets of a client that are ECT, each of this number is marked."""


def within(space: str, *words: str) -> None:
    run_captured(("ip", "netns", "exec", space, *words))


@pytest.fixture
def spaces() -> Iterator[None]:
    """A server and two clients at a bridge, whose port to the server is the bottleneck: a rate behind a buffer.

    Of what comes from a client and is ECT, every 50th packet is marked before it gets there.
    """
    for space in (SERVER, MIDDLE, FIRST, SECOND):
        run_captured(("ip", "netns", "add", space))
        within(space, "ip", "link", "set", "lo", "up")
    try:
        within(MIDDLE, "ip", "link", "add", "name", "bridge0", "type", "bridge")
        within(MIDDLE, "nft", "add", "table", "netdev", "marks")
        ends = ((SERVER, "s0", "198.18.0.1/24"), (FIRST, "c0", "198.18.0.2/24"), (SECOND, "c1", "198.18.0.3/24"))
        for space, device, address in ends:
            within(space, *f"ip link add {device} type veth peer name m{device} netns {MIDDLE}".split())
            within(space, "ip", "address", "add", address, "dev", device)
            within(space, "ip", "link", "set", device, "up")
            within(MIDDLE, "ip", "link", "set", f"m{device}", "master", "bridge0", "up")
            if space != SERVER:
                hook = f"{{ type filter hook ingress device m{device} priority 0 ; }}"
                within(MIDDLE, "nft", "add", "chain", "netdev", "marks", device, hook)
                rule = f"ip ecn ect0 numgen inc mod {EVERY} == 0 ip ecn set ce"
                within(MIDDLE, "nft", "add", "rule", "netdev", "marks", device, *rule.split())
        within(MIDDLE, "ip", "link", "set", "bridge0", "up")
        bucket = f"tc qdisc add dev ms0 root tbf rate {RATE:.0f}bit burst 4000 limit {BUFFER_BYTES}"
        within(MIDDLE, *bucket.split())
        yield
    finally:
        for space in (SERVER, MIDDLE, FIRST, SECOND):
            run_tried(("ip", "netns", "delete", space))


def measured(folder: Path, *, ecn: bool, duration: float, joins: float) -> dict[tuple[object, object], Result]:
    """The streams, by sender and period; they have nothing missing."""
    for space in (FIRST, SECOND, SERVER):
        within(space, "sysctl", "-w", f"net.ipv4.tcp_ecn={int(ecn)}")
    summary = asyncio.run(run_async(make_folder(folder, BENCH.format(duration=duration, joins=joins))))
    streams = [one for one in summary.results if one.parameters["part"] == "streams"]
    for one in streams:
        assert one.verdict is not ResultVerdict.INCOMPLETE, one.disturbances
        print(one.parameters["client"], one.parameters["period"], one.values)
    return {(one.parameters["client"], one.parameters["period"]): one for one in streams}


def check_marked(found: dict[tuple[object, object], Result]) -> None:
    """Alone the bottleneck's payload, no less than the share that was marked, and nothing lost."""
    alone = found["c0", "alone"].values
    assert alone["ecn"] == "negotiated"
    assert alone["congestion_control"] == "cubic"
    assert 0.85 * RATE < number(alone, "throughput_bits_per_s") < RATE * 1448 / 1514 * 1.02
    # A packet is a segment or several, and a receiver repeats a mark for as long as a round trip.
    assert 0.5 * 100 / EVERY < number(alone, "marked_percent") < 40
    assert alone["resent_segments"] == 0
    assert str(alone["reaction"]).startswith("reacts to marks: settles at")


def check_unmarked(found: dict[tuple[object, object], Result]) -> None:
    """Its rate is the bottleneck's; the buffer overflows, as nobody told the sender before."""
    alone = found["c0", "alone"].values
    assert alone["ecn"] == "not negotiated"
    assert 0.85 * RATE < number(alone, "throughput_bits_per_s") < RATE * 1448 / 1514 * 1.02
    assert alone["marked_percent"] == 0
    assert number(alone, "resent_segments") > 0
    assert str(alone["reaction"]).startswith("was not told: ECN not negotiated")


def number(values: object, name: str) -> float:
    assert isinstance(values, dict)
    assert isinstance(values[name], int | float)
    return float(values[name])


def check_shared(found: dict[tuple[object, object], Result]) -> None:
    """Both senders together carry the bottleneck's payload."""
    both = [found[client, "beside another"].values for client in ("c0", "c1")]
    assert 0.8 * RATE < sum(number(one, "throughput_bits_per_s") for one in both) < RATE * 1448 / 1514 * 1.05


@pytest.mark.parametrize("ecn", [True, False])
def test_a_sender_that_is_marked_loses_nothing(spaces: None, tmp_path: Path, ecn: bool) -> None:
    found = measured(tmp_path, ecn=ecn, duration=6, joins=4)
    (check_marked if ecn else check_unmarked)(found)
    check_shared(found)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_marks_and_losses_are_told_apart_in_ten_of_ten_runs(spaces: None, tmp_path: Path, repetition: int) -> None:
    for ecn, check in ((True, check_marked), (False, check_unmarked)):
        found = measured(tmp_path / str(ecn), ecn=ecn, duration=12, joins=6)
        check(found)
        check_shared(found)
