"""What a stranger changes on the path for a moment is seen and named by the monitor, whatever it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.commands import run_checked

from nicbench.core.events import Bus
from nicbench.core.machine import MonitorSettings
from nicbench.engine.binaries import find_program
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure.trial_verdict import describe
from nicbench.monitor.running import RunningMonitors
from nicbench.store.monitor_samples import MonitorLog
from nicbench.testbed.labs.base import TestHost

pytestmark = pytest.mark.lab

BRIDGE = """
ip link add bridge type bridge
ip link add v0 type veth peer name v1
ip link set v0 master bridge
for device in v0 v1 bridge; do ip link set $device up; done
until bridge link show dev v0 | grep -q forwarding; do sleep 0.05; done
"""
CHANGES = [
    ("bridge link set dev v0 state 0", "bridge link set dev v0 state 3", "from forwarding to disabled"),
    ("bridge link set dev v0 isolated on", "bridge link set dev v0 isolated off", "isolated of the bridge's port"),
    (
        "echo 0 >/sys/class/net/v0/brport/unicast_flood",
        "echo 1 >/sys/class/net/v0/brport/unicast_flood",
        "v0: flood of",
    ),
    ("ip link set bridge type bridge stp_state 1", "ip link set bridge type bridge stp_state 0", "stp_state of"),
    ("bridge vlan add dev v0 vid 7 || ip link set v0 type bridge_slave learning off", "true", "in dut, v0: "),
    ("ip link set v1 promisc on", "ip link set v1 promisc off", "v1: promiscuous changed from off to on"),
    ("ip link set v1 mtu 1400", "ip link set v1 mtu 1500", "v1: mtu changed from 1500 to 1400"),
    ("ethtool -K v1 tx off", "ethtool -K v1 tx on", "v1: offloads changed"),
    ("ethtool -L v1 rx 2", "ethtool -L v1 rx 1", "v1: channels changed"),
    ("ip link set v1 xdpgeneric obj PROGRAM sec xdp", "ip link set v1 xdpgeneric off", "XDP program generic added"),
    ("ip link set v1 xdpdrv obj PROGRAM sec xdp", "ip link set v1 xdpdrv off", "XDP program native added"),
    ("tc qdisc add dev v1 ingress", "tc qdisc del dev v1 ingress", "v1: queueing discipline ingress"),
    ("ip neigh add 10.9.9.9 lladdr 02:00:00:00:00:01 dev v1", "ip neigh del 10.9.9.9 dev v1", "neighbour 10.9.9.9"),
    ("ip rule add from 10.0.0.1 table 7", "ip rule del from 10.0.0.1 table 7", "routing rule added"),
    ("iptables-legacy -A FORWARD -j DROP", "iptables-legacy -D FORWARD -j DROP", "iptables rules (table ip filter)"),
    ("ip6tables-legacy -A FORWARD -j DROP", "ip6tables-legacy -F", "iptables rules (table ip6 filter)"),
    ("nft add table ip strange", "nft delete table ip strange", "nftables ruleset"),
]


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"nb{uuid4().hex[:8]}"
    run_checked(["ip", "netns", "add", name])
    try:
        change(name, BRIDGE)
        yield name
    finally:
        run_checked(["ip", "netns", "del", name])


def change(namespace: str, script: str) -> None:
    run_checked(["ip", "netns", "exec", namespace, "sh", "-ec", script])


async def seen(namespace: str, folder: Path, *scripts: str) -> list[str]:
    """What the monitor says of these changes."""
    dut = NetnsHost(LocalHost(), namespace)
    monitors = RunningMonitors(MonitorLog(folder, 0), Bus())
    await monitors.start(MonitorSettings(enabled=False), [TestHost("dut", "dut", dut, ())], None)
    try:
        await monitors.watch()
        for script in scripts:
            change(namespace, script)
        changes = await monitors.changes()
    finally:
        await monitors.close()
    return [describe(each) for each in changes.changes]


@pytest.mark.parametrize(("script", "undo", "words"), CHANGES, ids=[script for script, _, _ in CHANGES])
async def test_what_is_changed_for_a_moment_is_named(
    namespace: str, tmp_path: Path, script: str, undo: str, words: str
) -> None:
    program = script.partition(" ")[0]
    if "-legacy" in program and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    told = await seen(namespace, tmp_path, script.replace("PROGRAM", str(find_program("pass"))), undo)
    assert any(words in each for each in told), told


async def test_rules_that_are_counted_and_listed_are_no_change(namespace: str, tmp_path: Path) -> None:
    change(namespace, "ip link set lo up; iptables-legacy -A OUTPUT -o lo")
    assert not await seen(namespace, tmp_path, "ping -q -c 1 127.0.0.1; iptables-legacy -L -n")
