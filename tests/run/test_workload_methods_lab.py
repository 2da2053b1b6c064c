"""Transfers, agreement and requests in the lab `clients`, end to end, with the tools themselves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nicbench.core.result import ResultVerdict

from .lab_bench import machine_state, make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.sampled(1, of="long labs")]

RATE_BITS_PER_S = 50e6
BENCH = """
nicbench: 1
title: Transfers, agreement and requests
lab: {{kind: clients, rate: 50 Mb/s}}
dut: {{kind: server}}
monitor: off
thresholds: {{start_spread_share: 0.9, machine_steal_share: 0.9}}
tests:
  - {{name: files, method: transfer, transfer_bytes: [500 kB], write_bytes: [8 KiB], source: {folder}, repetitions: 2}}
  - {{name: tools, method: agreement, transfer_bytes: 500 kB, repetitions: 2}}
  - name: requests
    method: request-response
    transport: [tcp]
    message_bytes: [1 KiB]
    duration: 1 s
    load: {{workload: iperf3}}
"""


def test_transfers_tools_and_requests_give_figures_and_leave_nothing_behind(tmp_path: Path) -> None:
    before, folder = machine_state(), tmp_path / "files"
    folder.mkdir()
    summary = asyncio.run(run_async(make_folder(tmp_path, BENCH.format(folder=folder))))
    by_test = {}
    for result in summary.results:
        assert result.verdict is not ResultVerdict.INCOMPLETE, result.disturbances
        by_test.setdefault(result.test, []).append({**result.parameters, **result.values})
    rates = [one["throughput_bits_per_s"] for test in ("files", "tools") for one in by_test[test] if "ratio" not in one]
    assert len(rates) == 1 + 2
    # What a full token bucket holds, two segments of 16 KiB, passes at once.
    most = RATE_BITS_PER_S * 500_000 / (500_000 - 2 * 16_384)
    assert all(isinstance(rate, float) and 1e6 < rate <= most for rate in rates)
    assert {one["source"] for one in by_test["files"]} == {f"file in {folder}"}
    (pair,) = (one for one in by_test["tools"] if "ratio" in one)
    assert "nuttcp is" in str(pair["answer"])
    idle, loaded = (one for one in by_test["requests"] if one["part"] == "requests")
    for one in (idle, loaded):
        assert one["basis"] == "half round trip"
        least, median, most = (one[f"latency_{name}_ns"] for name in ("minimum", "p50", "maximum"))
        assert 0 < float(str(least)) <= float(str(median)) <= float(str(most))
    assert isinstance(loaded["load_bits_per_s"], float)
    assert 0 < loaded["load_bits_per_s"] <= RATE_BITS_PER_S * 1.02
    assert list(folder.iterdir()) == []
    assert machine_state() == before
