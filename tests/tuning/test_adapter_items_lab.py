"""Settings of real interfaces (veth, tap) in a namespace: applied, different meanwhile, undone to what was there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_checked

from nicbench.core.plan import Outcome
from nicbench.core.registry import find
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.tuning.items.base import Item
from nicbench.tuning.restore import restore
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

pytestmark = pytest.mark.lab
ITEMS = find("nicbench.tuning.items", Item)

# Everything of an adapter that this kernel's virtual interfaces have.
WISHES = (
    ("mtu", {"bytes": 2000, "devices": ["v0", "v1"]}),
    ("channels", {"rx": "maximum", "tx": "maximum", "devices": ["v0"]}),
    ("offloads", {"features": {"gro": True, "tso": False, "tx-checksum-sctp": False}, "devices": ["v0"]}),
    ("coalescing", {"rx_frames": 16, "devices": ["p0"]}),
    ("link", {"speed": 1e9, "duplex": "full", "devices": ["p0"]}),
    ("transmit_queue", {"frames": 77, "devices": ["v0"]}),
    ("packet_steering", {"receive": "0", "flows": 64, "devices": ["v0"]}),
    ("qdisc", {"kind": "tbf", "parameters": ["rate", "10mbit", "burst", "16k", "limit", "64k"], "devices": ["v0"]}),
)


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nbtune{os.getpid()}"
    run_checked(("ip", "netns", "add", name))
    try:
        veth = ("ip", "link", "add", "v0", "numrxqueues", "2", "numtxqueues", "2", "type", "veth", "peer", "name", "v1")
        inside(name, *veth)
        inside(name, "ethtool", "-L", "v0", "rx", "1", "tx", "1")
        inside(name, "ip", "tuntap", "add", "p0", "mode", "tap")
        for device in ("v0", "v1", "p0"):
            inside(name, "ip", "link", "set", device, "up")
        yield name
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=False)


def inside(namespace: str, *command: str) -> str:
    done = run_captured(("ip", "netns", "exec", namespace, *command))
    return done.stdout


def snapshot(namespace: str) -> dict[str, str]:
    """The interfaces as an independent script sees them; what counts by itself is left out."""
    script = """
    for device in v0 v1 p0; do
      ethtool -k $device; ethtool $device; ethtool -l $device 2>&1; ethtool -c $device 2>&1
      grep -H "" /sys/class/net/$device/mtu /sys/class/net/$device/tx_queue_len
      grep -sH "" /sys/class/net/$device/queues/*/[rx]ps_* /sys/class/net/$device/queues/*/rps_flow_cnt
      tc qdisc show dev $device
    done; true
    """
    parts = inside(namespace, "sh", "-c", script).splitlines()
    return {f"{number}": line for number, line in enumerate(parts)}


def every(namespace: str, wishes: tuple[tuple[str, dict[str, Any]], ...] = WISHES) -> tuple[PlacedRequest, ...]:
    host = NetnsHost(LocalHost("local"), namespace, "dut")
    made = [TuningRequest("dut", ITEMS[kind], ITEMS[kind].Options.model_validate(options)) for kind, options in wishes]
    return place_requests(made, [Part("dut", host, ())])


async def test_each_is_applied_verified_and_undone_to_what_was_there(namespace: str, tmp_path: Path) -> None:
    before = snapshot(namespace)
    stack = UndoStack("tuned", None, tmp_path)
    try:
        rows = await tune(stack, every(namespace))
        assert {row.item: row.outcome for row in rows} == dict.fromkeys(dict(WISHES), Outcome.CHANGED)
        during = list(snapshot(namespace).values())
        changed = "\n".join(line for line in during if line not in before.values())
        for words in ("mtu:2000", "tx_queue_len:77", "rps_cpus:1", "rps_flow_cnt:64", "qdisc tbf", "rx-frames:\t16"):
            assert words.expandtabs(1) in changed.expandtabs(1)
        assert "Speed: 1000Mb/s" in changed
    finally:
        said = await stack.undo_all()
    assert said == []
    assert snapshot(namespace) == before


async def test_after_a_crash_another_process_undoes_all_but_what_somebody_changed(
    namespace: str, tmp_path: Path
) -> None:
    before = snapshot(namespace)
    await tune(UndoStack("tuned", None, tmp_path), every(namespace))
    inside(namespace, "ip", "link", "set", "v1", "mtu", "3000")
    record = tmp_path / "tuned" / "undo.json"
    content = json.loads(record.read_text())
    content["owner"]["start_ticks"] += 1  # so that it is of a process which is gone
    record.write_text(json.dumps(content))
    said = await restore("tuned", tmp_path)
    assert any("mtu was left at mtu_bytes 3000" in sentence for sentence in said)
    assert "3000" in inside(namespace, "cat", "/sys/class/net/v1/mtu")
    inside(namespace, "ip", "link", "set", "v1", "mtu", "1500")
    assert snapshot(namespace) == before
    assert await restore("tuned", tmp_path) == ["tuned: nothing to undo"]
