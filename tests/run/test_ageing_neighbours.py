"""A router that looks for the tester by ARP and neighbour discovery, and asks again all the time: no frame is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab_bench import TOLERANT, machine_state, run_bench

BENCH = """
nicbench: 1
title: Neighbours that age
lab: {{kind: veth}}
dut: {{kind: kernel-forward, neighbour_age: 1 s}}
tester: {{driver: {driver}}}
traffic: {{ip: {ip}}}
{more}
tests:
  - name: soak
    method: soak
    frame_bytes: [128]
    rate: 20 kpps
    trial: {{duration: {duration}, interval: 500 ms, drain: 200 ms, settle: 100 ms}}
"""


@pytest.mark.lab
@pytest.mark.parametrize(
    ("driver", "ip", "duration"),
    [
        ("net_af_packet", 4, "2500 ms"),
        pytest.param("xdp", 4, "10 s", marks=pytest.mark.acceptance),
        pytest.param("xdp", 6, "10 s", marks=pytest.mark.acceptance),
        pytest.param("net_af_xdp", 6, "10 s", marks=pytest.mark.acceptance),
    ],
)
def test_no_frame_is_lost_while_a_router_asks_for_its_neighbours_again(
    tmp_path: Path, driver: str, ip: int, duration: str
) -> None:
    before = machine_state()
    _, trials = run_bench(tmp_path, BENCH.format(driver=driver, ip=ip, duration=duration, more=TOLERANT))
    readings = [trial.reading for trial in trials if trial.test == "soak"]
    assert readings
    assert {reading.counts.lost for reading in readings} == {0}
    answered = "arp_answered" if ip == 4 else "nd_answered"
    # Frames go one way: the router looks for the port that receives them, again and again.
    assert sum(port.counters.get(answered, 0) for reading in readings for port in reading.ports) >= 2
    assert machine_state() == before
