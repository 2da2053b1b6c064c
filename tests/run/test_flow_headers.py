"""The headers of each flow that are computed are those that the engine sends."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

from nicbench.bench_file import load
from nicbench.core.events import Bus
from nicbench.run import run
from nicbench.store.folder import RunFolder
from nicbench.testbed.addressing import flow_headers
from nicbench.testbed.duts.base import Addressing

BENCH = """
nicbench: 1
title: Flows
lab: {{kind: simulated, capacity: 400 kpps}}
dut: {{kind: simulated}}
tester: {{capture: {{frames: 48}}}}
traffic: {{flows: 48, {traffic}}}
tests:
  - name: loss
    method: load-sweep
    frame_bytes: [128]
    of: 10 kpps
    loads: [100 %]
    trial: {{duration: 50 ms, drain: 20 ms, settle: 5 ms}}
"""
ENHANCED_PACKET, ETHERNET, TAG = 6, 14, 4
BETWEEN = "{first: 1, count: 3}"
DRAWN = "{first: 1024, count: 60000, seed: 7}"


def captured(path: Path) -> list[bytes]:
    """Every frame of the capture (draft-ietf-opsawg-pcapng)."""
    data, at, frames = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == ENHANCED_PACKET:
            (size,) = struct.unpack_from("<I", data, at + 20)
            frames.append(data[at + 28 : at + 28 + size])
        at += length
    return frames


@pytest.mark.parametrize(
    ("traffic", "header"),
    [
        ("ip: 6", ETHERNET),
        (
            f"addresses: 4, fields: {{identification: {BETWEEN}, source_port: {DRAWN}, destination_port: {DRAWN}}}",
            ETHERNET,
        ),
        (f"addresses: 2, vlan: 5, fields: {{vlan: {{first: 5, count: 3}}, source_port: {DRAWN}}}", ETHERNET + TAG),
        ("addresses: 2, protocol: tcp, fields: {destination_port: {first: 80, count: 5, step: 2}}", ETHERNET),
    ],
    ids=["IPv6", "two drawn, a field between", "a tag", "TCP in turn"],
)
def test_each_flow_is_what_the_engine_sends(tmp_path: Path, traffic: str, header: int) -> None:
    folder = RunFolder.create(tmp_path, BENCH.format(traffic=traffic), "Flows")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    bench = load(folder.path / "bench.yaml")
    asyncio.run(run(bench, folder, bus))
    trial = next(trial for trial in folder.journal.trials().values() if trial.test == "loss")
    plan = folder.plan()
    way = Addressing(**plan.addressing[0])
    known = list(flow_headers(bench.traffic.port_streams()[0], way))
    frames = captured(folder.path / trial.reading.capture.name)
    assert len(frames) == len(known)
    addresses, transport = (header + 12, header + 20) if way.ip == 4 else (header + 8, header + 40)
    size = len(known[0].source)
    for frame, flow in zip(frames, known, strict=True):
        assert frame[addresses : addresses + 2 * size] == flow.source + flow.destination
        assert struct.unpack_from("!HH", frame, transport) == (flow.source_port, flow.destination_port)
