"""Whole runs through a tunnel that ends in the DUT: exact counts both ways, and a broken DUT is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab_bench import TOLERANT, run_bench

pytestmark = pytest.mark.lab

ENDS = "source: 192.0.2.1, destination: 192.0.2.2"
BENCH = """
nicbench: 1
title: A tunnel ends
lab: {{kind: veth}}
dut: {{kind: xdp-tunnel, tunnels: [{tunnel}], polling_threads: false, {fault}}}
tester: {{driver: {driver}}}
traffic: {{flows: 16, bidirectional: true, tunnels: [{tunnel}], arrives: []}}
{tolerant}
tests:
  - name: counted
    method: impairments
    rate: 2 kpps
    frame_bytes: [200]
    trial: {{duration: 300 ms, drain: 200 ms, settle: 20 ms}}
"""
TUNNELS = {
    "gre": f"{{kind: gre, key: 7, {ENDS}}}",
    "vxlan": f"{{kind: vxlan, vni: 9, {ENDS}}}",
    "mpls": "{kind: mpls, label: {first: 100, count: 8}}",
    "srv6": "{kind: srv6, segments: ['fc00::1', 'fc00::2']}",
}


@pytest.mark.sampled(2, of="tunnels")
@pytest.mark.parametrize("driver", ["xdp", "net_af_packet"])
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_every_frame_is_recognised_behind_the_tunnel(tunnel: str, driver: str, tmp_path: Path) -> None:
    text = BENCH.format(tunnel=TUNNELS[tunnel], fault="drop_every: 0", driver=driver, tolerant=TOLERANT)
    _, trials = run_bench(tmp_path, text)
    for stream in trials[-1].reading.streams:
        counts = stream.counts
        assert counts.sent > 100
        assert (counts.received, counts.lost, counts.corrupted) == (counts.sent, 0, 0)
        assert stream.latency is not None


@pytest.mark.sampled(2, of="tunnels")
@pytest.mark.parametrize("fault", ["drop_every", "damage_every"])
def test_a_dut_that_drops_or_damages_every_tenth_frame_is_told(fault: str, tmp_path: Path) -> None:
    text = BENCH.format(tunnel=TUNNELS["gre"], fault=f"{fault}: 10", driver="xdp", tolerant=TOLERANT)
    _, trials = run_bench(tmp_path, text)
    for stream in trials[-1].reading.streams:
        counts = stream.counts
        told = counts.lost if fault == "drop_every" else counts.corrupted
        assert counts.sent // 10 <= told <= counts.sent // 10 + 1
        assert counts.received + told == counts.sent


@pytest.mark.sampled(2, of="tunnels")
def test_the_kernel_itself_ends_and_begins_a_tunnel_and_every_frame_is_recognised(tmp_path: Path) -> None:
    text = BENCH.format(tunnel=TUNNELS["vxlan"], fault="", driver="xdp", tolerant=TOLERANT)
    text = text.replace(text.splitlines()[4], f"dut: {{kind: tunnel-end, tunnel: {TUNNELS['vxlan']}}}")
    _, trials = run_bench(tmp_path, text)
    for stream in trials[-1].reading.streams:
        assert stream.counts.sent > 100
        assert (stream.counts.received, stream.counts.corrupted) == (stream.counts.sent, 0)
