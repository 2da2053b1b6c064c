"""Rounds in the lab `clients`, end to end: what passes the router, and what meets at one port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .lab_bench import machine_state, make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(1, of="long labs")]

LINK = 50e6

BENCH = """
nicbench: 1
title: Forwarding and incast
lab: {kind: clients, ports: 2, clients_per_port: 2, rate: 50 Mb/s}
dut: {kind: router}
monitor: off
tests:
  - {name: forwarding, method: forwarding, duration: 1 s}
  - {name: incast, method: incast, duration: 1 s, message_bytes: [8 KiB], streams: [2]}
"""


def test_clients_reach_each_other_through_the_router_and_meet_at_one_port(tmp_path: Path) -> None:
    before = machine_state()
    summary = asyncio.run(run_async(make_folder(tmp_path, BENCH)))
    found = {
        (result.parameters["port"], result.parameters["destination"]): result.values["throughput_bits_per_s"]
        for result in summary.results
        if result.method == "forwarding"
    }
    assert set(found) == {("s0", "s1"), ("s1", "s0"), ("s0", "mean"), ("s1", "mean")}
    assert all(isinstance(rate, float) and 0 < rate <= LINK * 1.05 for rate in found.values())
    (incast,) = (result for result in summary.results if result.method == "incast")
    together, timed = incast.values["throughput_bits_per_s"], incast.values["timed_messages"]
    assert isinstance(together, float)
    assert 0 < together <= LINK * 1.05
    assert sum(count for name, count in incast.values.items() if name.startswith("bin_")) == timed  # type: ignore[misc]
    assert machine_state() == before
