"""Connections through a firewall of known limits, to a server of known faults: real TCP, found to the last."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from nicbench.core.result import Bounded, Result

from .lab_bench import make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(2, of="known truths")]

HEAD = """
nicbench: 1
title: Connections
monitor: off
thresholds: {{start_spread_share: 0.9, machine_steal_share: 0.9}}
lab: {{kind: clients, ports: 2}}
dut: {{kind: firewall, connections: {connections}}}
tests:
"""
HELD = """
  - {{name: held, method: concurrent-connections, through: true, maximum: {most}, rate: 400, precision: 0,
     duration: 1 s, connect_within: 0.9 s}}
"""
BROKEN = """
  - {{name: broken, method: http-latency, through: true, rate: 50, object_bytes: [1 KiB], duration: 2 s, ramp: 0 s,
     own_server: {{delay: 20 ms, reset_every: 25, short_every: 20, status_every: 30, corrupt_every: 33}}}}
"""


def results_of(folder: Path, text: str, **values: int) -> dict[str, Result]:
    summary = asyncio.run(run_async(make_folder(folder, text.format(**values))))
    return {result.id.partition("/")[0]: result for result in summary.results}


def check_held(folder: Path, connections: int) -> None:
    held = results_of(folder, HEAD + HELD, connections=connections, most=2 * connections)["held"]
    found = held.values["concurrent_connections"]
    assert isinstance(found, Bounded), held.disturbances
    assert (found.value, found.upper) == (connections, connections + 1)


def test_a_delay_and_every_broken_answer_are_found(tmp_path: Path) -> None:
    broken = results_of(tmp_path, HEAD + BROKEN, connections=1000)["broken"]
    first = broken.values["first_byte_p50_ns"]
    assert isinstance(first, int | float)
    assert 20e6 <= first < 60e6
    # Of 100 answers; one that is due to break in two ways breaks in the first of them.
    assert (broken.values["transactions"], broken.values["failures"]) == (87, 13)
    for told in ("4 reset", "4 closed before the answer", "2 another status than 200", "3 another content"):
        assert told in str(broken.values["failed"])


@pytest.mark.slow
def test_the_connections_that_a_firewall_holds_are_found_to_the_last(tmp_path: Path) -> None:
    check_held(tmp_path, 7)


@pytest.mark.acceptance
@pytest.mark.parametrize("repetition", range(10))
def test_they_are_found_in_ten_of_ten_runs(repetition: int, draw: random.Random, tmp_path: Path) -> None:
    check_held(tmp_path, draw.randrange(20, 150))
