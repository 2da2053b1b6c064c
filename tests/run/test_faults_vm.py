"""Faults that the kernel's network emulator injects in a virtual machine are found, each within its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.trial import Purpose
from nicbench.report.gather import gather
from nicbench.store import RunFolder

from .lab_bench import run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

# All faults at once, and delays that are long beside what an emulator adds. Each turn boots a machine of its own; the
# other is without any fault, for the delay.
FAULTS = """
nicbench: 1
title: Faults on the wire
hosts: {guest: {kind: vm, cpus: 2, memory: 1 GiB}}
lab: {kind: veth, on: guest}
dut: {kind: netem}
tester: {memory: 256 MiB}
traffic: {flows: 1}
monitor: off
thresholds: {unsent_share: 0.2}
configurations:
  clean:
  faulty: {dut: {loss: 3 %, duplicate: 3 %, corrupt: 3 %, delay: 400 ms, jitter: 100 ms, reorder: 3 %}}
tests:
  - name: faults
    method: impairments
    rate: 500 pps
    frame_bytes: [512]
    trial: {duration: 4 s, drain: 2 s, settle: 50 ms}
"""


def test_each_fault_is_measured_within_its_bounds_and_what_was_lost_is_explained(tmp_path: Path) -> None:
    _, trials = run_bench(tmp_path, FAULTS)
    folder = RunFolder.open(next(path for path in tmp_path.iterdir() if (path / "bench.yaml").exists()))
    rows = {(row.configuration, row.fault): row for row in gather(folder).injected}
    print(*(f"{row.configuration}: {row.fault}: {row.measured}; {row.expected}" for row in rows.values()), sep="\n")
    assert {fault for _, fault in rows} == {
        "delay",
        "jitter",
        "loss",
        "duplicate",
        "reorder",
        "corrupt",
        "nothing else",
    }
    assert [name for name, row in rows.items() if not row.agrees] == []
    measured = [each for each in trials if each.configuration == "faulty" and each.request.purpose is Purpose.AVERAGE]
    assert measured
    for trial in measured:
        ((place, frames),) = [(row.place, row.frames) for row in trial.reading.ledger if not row.unsent]
        assert place == "DUT, netem qdisc of d1"
        assert frames >= trial.reading.counts.lost > 0  # of a frame that was doubled, one copy may be dropped
        assert trial.reading.unexplained == trial.reading.counts.lost - frames
        assert trial.reading.ledger_faults == ()
