"""Layers that this machine's kernel may not have, by that of a guest: every frame comes back intact, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from .lab_bench import TOLERANT, run_bench

pytestmark = [pytest.mark.vm, pytest.mark.acceptance]  # a minute each on an emulated machine

LAYERS = {
    "wireguard": "{kind: wireguard}",
    "ipsec": "{kind: ipsec}",
    "ipsec-cbc": "{kind: ipsec, cipher: aes-128-cbc-sha256}",
    "flower": "{kind: flower, other_flows: 10}",
    "ovs": "{kind: ovs, datapath: kernel}",
}
BENCH = """
nicbench: 1
title: A layer in a guest
hosts: {{guest: {{kind: vm, cpus: 2, memory: 1 GiB}}}}
lab: {{kind: veth, on: guest}}
dut: {dut}
tester: {{driver: net_af_packet, memory: 256 MiB}}
traffic: {{flows: 8, bidirectional: true, learning: {{flows: few}}}}
monitor: off
{tolerant}
tests:
  - name: counted
    method: impairments
    rate: 200 pps
    frame_bytes: [300]
    trial: {{duration: 1 s, drain: 500 ms, settle: 100 ms}}
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_frames_pass_the_layer_of_a_guest(layer: str, tmp_path: Path) -> None:
    _, trials = run_bench(tmp_path, BENCH.format(dut=LAYERS[layer], tolerant=TOLERANT))
    for stream in trials[-1].reading.streams:
        assert stream.counts.sent > 100
        assert (stream.counts.received, stream.counts.corrupted) == (stream.counts.sent, 0)
