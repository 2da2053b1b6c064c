"""TCP over a queue of a guest's kernel that is full, one that drops before that, and ones that mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.result import Result, ResultVerdict

from .lab_bench import run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # minutes on an emulated machine

RATE = 10e6
SENDERS = f"""
nicbench: 1
title: Two senders over one queue
hosts: {{guest: {{kind: vm, cpus: 2, memory: 1 GiB}}}}
lab: {{kind: clients, on: guest, clients_per_port: 2, rate: {RATE / 1e6:g} Mb/s}}
dut: {{kind: server}}
tuning: {{all: {{sysctls: {{net.ipv4.tcp_ecn: 1}}}}}}
monitor: off
thresholds: {{start_spread_share: 0.9, machine_steal_share: 0.9}}
configurations:
  full: {{}}
  untold: {{lab: {{queue: {{kind: codel}}}}, tuning: {{all: {{sysctls: {{net.ipv4.tcp_ecn: 0}}}}}}}}
  codel: {{lab: {{queue: {{kind: codel}}}}}}
  threshold: {{lab: {{queue: {{kind: codel, mark_above: 3 ms}}}}}}
  dctcp: {{lab: {{queue: {{kind: codel, mark_above: 3 ms}}}}, tests: {{senders: {{congestion_control: dctcp}}}}}}
  red: {{lab: {{queue: {{kind: red, mark_from: 6 kB}}}}, tests: {{senders: {{congestion_control: dctcp}}}}}}
tests:
  - name: senders
    method: sender-reaction
    congestion_control: cubic
    duration: 20 s
    joins_after: 5 s
"""


def number(result: Result, name: str) -> float:
    value = result.values[name]
    assert isinstance(value, int | float)
    return float(value)


def test_tcp_over_a_queue_that_is_full_that_drops_early_and_that_marks(tmp_path: Path) -> None:
    summary, _ = run_bench(tmp_path, SENDERS)
    found = {}
    for result in summary.results:
        if result.parameters["part"] == "streams" and result.parameters["period"] == "beside another":
            print(result.configuration, result.parameters["client"], result.values)
            assert result.verdict is not ResultVerdict.INCOMPLETE, result.disturbances
            found.setdefault(result.configuration, []).append(result)
    for senders in found.values():  # together they carry the payload of the link
        rates = sum(number(one, "throughput_bits_per_s") for one in senders)
        assert 0.85 * RATE < rates < RATE * 1448 / 1514 * 1.05
    trip_ms = {name: max(number(one, "round_trip_median_ns") for one in of) / 1e6 for name, of in found.items()}
    resent = {name: sum(number(one, "resent_segments") for one in of) for name, of in found.items()}
    marked = {name: min(number(one, "marked_percent") for one in of) for name, of in found.items()}
    # A full queue of 1 MiB is 839 ms; CoDel leaves a few of the segments of 13 ms each that the senders make.
    assert trip_ms["full"] > 150
    assert all(trip_ms[name] < 60 for name in found if name != "full")
    assert trip_ms["dctcp"] < trip_ms["codel"]
    assert marked["full"] == marked["untold"] == 0
    assert resent["untold"] > 0
    for name in ("codel", "threshold", "dctcp", "red"):
        assert marked[name] > 0
        assert resent[name] == 0
        assert all(str(one.values["reaction"]).startswith("reacts to marks") for one in found[name])
    assert marked["dctcp"] > marked["codel"]
    assert {one.values["ecn"] for one in found["untold"]} == {"not negotiated"}
    assert {one.values["congestion_control"] for one in (*found["dctcp"], *found["red"])} == {"dctcp"}
