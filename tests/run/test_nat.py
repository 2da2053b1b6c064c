"""A run whose DUT translates addresses: the size of its table of connections, which is known, is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Bounded

from .lab_bench import TOLERANT, machine_state, run_bench

BENCH = """
nicbench: 1
title: Table of connections
lab: {{kind: veth}}
dut: {{kind: nat, table_size: {size}, empty_table: true}}
traffic: {{flows: 4096}}
{more}
tests:
  - name: capacity
    method: connection-capacity
    connections: 4096
    rate: 20 kpps
    precision: 0
    trial: {{drain: 100 ms, settle: 20 ms}}
"""


@pytest.mark.lab
@pytest.mark.acceptance
@pytest.mark.alone  # the size of the table is a setting of the whole machine
@pytest.mark.parametrize("size", [*range(1500, 4000, 300), 4095])
def test_the_size_of_the_table_lies_within_the_interval(tmp_path: Path, size: int) -> None:
    before = machine_state()
    summary, trials = run_bench(tmp_path, BENCH.format(size=size, more=TOLERANT))
    (result,) = summary.results
    found = result.values["connection_capacity"]
    assert isinstance(found, Bounded)
    assert (found.lower, found.upper) == (size, size + 1), found
    lossy = [trial.reading for trial in trials if trial.reading.counts.lost and trial.test == "capacity"]
    assert {row.counter for reading in lossy for row in reading.ledger if not row.unsent} == {"nf_conntrack drop"}
    assert all(reading.unexplained == 0 for reading in lossy)
    assert machine_state() == before
