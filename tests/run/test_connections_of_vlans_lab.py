"""Connections in the driver's hook of ports that are VLANs: made on the interface below, in its tag."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.core.result import ResultVerdict

from .lab_bench import make_folder, run_async

pytestmark = pytest.mark.lab

CLIENT, SERVER = (f"nb-vlan-{end}-{os.getpid()}" for end in ("client", "server"))
BENCH = f"""
nicbench: 1
title: Connections of a VLAN
hosts:
  client: {{kind: netns, namespace: {CLIENT}}}
  server: {{kind: netns, namespace: {SERVER}}}
ports:
  c: {{host: client, device: c0.100, ip: 198.18.0.2/24}}
  s: {{host: server, device: s0.100, ip: 198.18.0.1/24}}
links: [c <-> s]
dut: server
monitor: off
tests:
  - {{name: held, method: concurrent-connections, driver: xdp, maximum: 500, rate: 500, duration: 1 s, precision: 0}}
"""


@pytest.fixture
def vlans() -> Iterator[None]:
    """A VLAN on each end of a veth pair, which strips tags."""
    for space in (CLIENT, SERVER):
        run_captured(("ip", "netns", "add", space))
    try:
        run_captured(f"ip -n {CLIENT} link add c0 type veth peer name s0 netns {SERVER}".split())
        for space, device in ((CLIENT, "c0"), (SERVER, "s0")):
            made = run_tried(f"ip -n {space} link add link {device} name {device}.100 type vlan id 100".split())
            if "Unknown device type" in made.stderr:
                pytest.skip("this kernel has no VLANs")
            run_captured(f"ip netns exec {space} ethtool -K {device} rxvlan on gro on".split())
            for each in ("lo", device, f"{device}.100"):
                run_captured(f"ip -n {space} link set {each} up".split())
        yield
    finally:
        for space in (CLIENT, SERVER):
            run_tried(("ip", "netns", "delete", space))


def test_connections_of_vlans_are_made_below_them_and_tags_are_stripped_again_afterwards(
    vlans: None, tmp_path: Path
) -> None:
    summary = run_async(make_folder(tmp_path, BENCH))
    (result,) = summary.results
    assert result.verdict is ResultVerdict.VALID
    assert result.values["concurrent_connections"].value == 500
    assert result.values["client_resent_segments"] == 0
    for space, device in ((CLIENT, "c0"), (SERVER, "s0")):
        assert "rx-vlan-offload: on" in run_captured(f"ip netns exec {space} ethtool -k {device}".split()).stdout
