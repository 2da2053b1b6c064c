"""Events of a chosen length between real packets: a bridge's link goes down, and a route of a kernel is withdrawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Bounded

from .lab_bench import TOLERANT, run_bench

BENCH = """
nicbench: 1
title: Convergence
lab: {kind: veth}
dut: {kind: DUT}
traffic: {flows: 4}
"""
TEST = """
tests:
  - name: failover
    method: convergence
    rate: 2 kpps
    event: EVENT
    repetitions: 1
    trial: {duration: DURATION s, after: 300 ms, drain: 100 ms, settle: 50 ms}
"""
# A route that discards what goes to the network behind the second port: links and neighbours stay.
ROUTE = (
    "{command: [ip, route, add, blackhole, 198.19.0.0/17], restore: [ip, route, del, blackhole, 198.19.0.0/17], "
    "lasts: LASTS ms}"
)


@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.parametrize("lasts_ms", [100, 250, 1000])
@pytest.mark.parametrize(
    ("dut", "event"), [("bridge", "{link: d1, lasts: LASTS ms}"), ("kernel-forward", ROUTE)], ids=["link", "route"]
)
def test_an_event_of_a_chosen_length_is_found(dut: str, event: str, lasts_ms: int, tmp_path: Path) -> None:
    text = BENCH.replace("DUT", dut) + TOLERANT + TEST
    text = text.replace("EVENT", event).replace("LASTS", str(lasts_ms)).replace("DURATION", str(3 + lasts_ms / 1000))
    summary, trials = run_bench(tmp_path, text)
    (result,) = summary.results
    loss = result.values["loss_of_connectivity_ms"]
    assert isinstance(loss, Bounded)
    least, most = result.values["event_at_least_ms"], result.values["event_at_most_ms"]
    resolution = result.values["resolution_ms"]
    held_up_ms = trials[-1].reading.health.held_up_ns / 1e6  # frames of that time are sent too late, after the event
    print(f"{dut}, {lasts_ms} ms: lost for {loss.value} ms, event {least} to {most} ms, held up for {held_up_ms} ms")
    assert isinstance(least, float)
    assert isinstance(most, float)
    assert isinstance(resolution, float)
    silence = result.values["longest_silence_ms"]
    assert isinstance(silence, float)
    assert least - 2.0 <= silence <= most + 3 * held_up_ms + 500
    assert loss.value is not None
    assert least >= lasts_ms
    # A busy machine holds the tester up several times, and loses frames besides.
    assert loss.value >= least - resolution - 3 * held_up_ms
    assert loss.value <= 2 * most + 200
