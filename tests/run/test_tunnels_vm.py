"""Tunnels that this machine's kernel may not have, ended by that of a guest: every frame is recognised, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # a minute each on an emulated machine

ENDS = "source: 192.0.2.1, destination: 192.0.2.2"
TUNNELS = {
    "gre": f"{{kind: gre, key: 7, {ENDS}}}",
    "geneve": f"{{kind: geneve, vni: 7, {ENDS}}}",
    "ip": f"{{kind: ip, {ENDS}}}",
}
BENCH = """
nicbench: 1
title: A tunnel ends in a guest
hosts: {{guest: {{kind: vm, cpus: 2, memory: 1 GiB}}}}
lab: {{kind: veth, on: guest}}
dut: {{kind: tunnel-end, tunnel: {tunnel}}}
tester: {{driver: net_af_packet, memory: 256 MiB}}
traffic: {{flows: 8, bidirectional: true, tunnels: [{tunnel}], arrives: [], learning: {{flows: few}}}}
monitor: off
{tolerant}
tests:
  - name: counted
    method: impairments
    rate: 200 pps
    frame_bytes: [300]
    trial: {{duration: 1 s, drain: 500 ms, settle: 100 ms}}
"""


@pytest.mark.parametrize("tunnel", TUNNELS)
def test_the_kernel_of_a_guest_ends_and_begins_it(tunnel: str, tmp_path: Path) -> None:
    _, trials = run_bench(tmp_path, BENCH.format(tunnel=TUNNELS[tunnel], tolerant=TOLERANT))
    for stream in trials[-1].reading.streams:
        assert stream.counts.sent > 100
        assert (stream.counts.received, stream.counts.corrupted) == (stream.counts.sent, 0)
