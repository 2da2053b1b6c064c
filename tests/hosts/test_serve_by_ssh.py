"""`nicbench serve` with its lab on another machine: what is captured there is fetched, and nothing is left there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.otg.served import add_flow, capture, captured_frames, configured, serving, transmit, wait_for_stop

from .sshd_server import Server

pytestmark = [pytest.mark.lab, pytest.mark.acceptance]

BENCH = """
nicbench: 1
title: Served on another machine
hosts: {rack: RACK}
lab: {kind: veth, on: rack}
dut: {kind: bridge}
"""


def test_captures_on_another_machine_are_fetched_and_nothing_is_left_there(sshd: Server, tmp_path: Path) -> None:
    rack = {"kind": "ssh", **sshd.options().model_dump(mode="json", exclude_defaults=True)}
    with serving(tmp_path, text=BENCH.replace("RACK", json.dumps(rack))) as served:
        api = served.api()
        config = configured(api)
        flow = add_flow(config, "f", frames=50)
        ethernet, _, _ = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value = "02:00:01:01:01:01"
        api.set_config(config)
        capture(api, "start")
        transmit(api, "start")
        metric = wait_for_stop(api)["f"]
        assert (metric.frames_tx, metric.frames_rx) == (50, 50)
        capture(api, "stop")
        ours = [frame for frame in captured_frames(api, "p2") if frame[6:12] == bytes.fromhex("020001010101")]
        assert [len(frame) for frame in ours] == [128] * 50
        folder = served.run_folder()
        assert any((folder / "raw").glob("capture-*-t1.pcap"))
    assert not list(Path("/run").glob("nicbench-files-*"))
    assert (folder / "report.html").exists()
