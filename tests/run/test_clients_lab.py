"""Rounds in the lab `clients`, end to end: what passes the router, and what meets at one port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .lab_bench import machine_state, make_folder, run_async

pytestmark = pytest.mark.lab

FORWARDING = """
nicbench: 1
title: Forwarding
lab: {kind: clients, ports: 2, rate: 50 Mb/s}
dut: {kind: router}
monitor: off
tests:
  - {name: forwarding, method: forwarding, duration: 1 s}
"""


def test_clients_reach_each_other_through_the_router_and_the_machine_is_as_before(tmp_path: Path) -> None:
    before = machine_state()
    summary = asyncio.run(run_async(make_folder(tmp_path, FORWARDING)))
    found = {
        (result.parameters["port"], result.parameters["destination"]): result.values["throughput_bits_per_s"]
        for result in summary.results
    }
    assert set(found) == {("s0", "s1"), ("s1", "s0"), ("s0", "mean"), ("s1", "mean")}
    assert all(isinstance(rate, float) and 0 < rate <= 50e6 * 1.02 for rate in found.values())
    assert machine_state() == before
