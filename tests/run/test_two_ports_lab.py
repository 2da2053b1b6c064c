"""Two ports of one machine, in namespaces that nicbench makes: measured, and back as they were; also after an error."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.core.errors import NicbenchError
from nicbench.core.result import ResultVerdict

from .lab_bench import machine_state, make_folder, run_async

pytestmark = [pytest.mark.lab, pytest.mark.alone]

HERE, THERE = f"nb2a{os.getpid() % 100_000}", f"nb2b{os.getpid() % 100_000}"
SPACES = tuple(f"nb-two-{end}-{os.getpid()}" for end in ("server", "client"))
HOSTS = f"""
nicbench: 1
title: Two ports
hosts:
  server: {{kind: netns, namespace: {SPACES[0]}, create: true}}
  client: {{kind: netns, namespace: {SPACES[1]}, create: true}}
ports:
  s0: {{host: server, device: {HERE}, ip: 198.18.0.1/24}}
  c0: {{host: client, device: {THERE}, ip: 198.18.0.2/24}}
links: [c0 <-> s0]
dut: {{kind: server}}
monitor: off
"""
STREAM = "tests: [{name: stream, method: stream, workload: iperf3, at_once: [port], duration: 1 s}]\n"
CABLE = f"""
nicbench: 1
title: Cable
hosts: {{tester: {{kind: netns, namespace: {SPACES[0]}}}}}
ports: {{t0: {{host: tester, device: v0}}, t1: {{host: tester, device: v1}}}}
dut: {{kind: external}}
tests: [{{name: loss, method: load-sweep, of: 1 kpps, loads: [100 %], frame_bytes: [64], trial: {{duration: 500 ms}}}}]
"""
# A share on an address that its server has not: the DUT does not come up, with both ports in their namespaces.
NO_FOLDER = HOSTS.replace("{kind: server}", "{kind: file-server, share: sftp, folder: '/nowhere/d{share}'}")


@pytest.fixture
def ports() -> Iterator[None]:
    """A pair of veths in this machine's own namespace; the first is up, with an address, the second down."""
    ip("link", "add", HERE, "type", "veth", "peer", "name", THERE)
    try:
        for device in (HERE, THERE):
            ip("link", "set", device, "addrgenmode", "none")
        ip("address", "add", "198.19.77.1/24", "dev", HERE)
        ip("link", "set", HERE, "up")
        yield
    finally:
        for space in SPACES:
            run_tried(("ip", "netns", "delete", space))
        run_tried(("ip", "link", "delete", HERE))


def test_bytes_go_over_the_cable_and_the_ports_come_back(ports: None, tmp_path: Path) -> None:
    before, were = machine_state(), _ports()
    folder = make_folder(tmp_path, HOSTS + STREAM)
    summary = asyncio.run(run_async(folder))
    rate = summary.results[0].values["throughput_bits_per_s"]
    assert isinstance(rate, float)
    assert rate > 0
    plan = folder.plan()
    assert plan.facts["given_addresses"] == {"s0": "198.18.0.1/24", "c0": "198.18.0.2/24"}
    assert plan.facts["moved_interfaces"][HERE] == f"into the namespace {SPACES[0]}"
    assert _ports() == were
    assert machine_state() == before


def test_after_an_error_the_ports_are_back_as_well(ports: None, tmp_path: Path) -> None:
    before, were = machine_state(), _ports()
    frames = "tests: [{name: editors, method: frames, instances: [1], frame_size: 64 KiB}]\n"
    with pytest.raises(NicbenchError, match="nowhere"):
        asyncio.run(run_async(make_folder(tmp_path, NO_FOLDER + frames)))
    assert _ports() == were
    assert machine_state() == before


def test_a_port_with_a_route_of_somebody_stays_where_it_is(ports: None, tmp_path: Path) -> None:
    ip("route", "add", "198.19.200.0/24", "dev", HERE, "via", "198.19.77.9", "onlink")
    were = _ports()
    with pytest.raises(NicbenchError, match=r"in use: a route to 198\.19\.200\.0/24 leads through it"):
        asyncio.run(run_async(make_folder(tmp_path, HOSTS + STREAM)))
    assert _ports() == were


def test_ports_that_are_down_come_up_for_the_run(tmp_path: Path) -> None:
    ip("netns", "add", SPACES[0])
    try:
        ip("-n", SPACES[0], "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        before = machine_state()
        summary = asyncio.run(run_async(make_folder(tmp_path, CABLE)))
        assert summary.verdict is ResultVerdict.VALID
        links = json.loads(ip("-n", SPACES[0], "-j", "link"))
        assert [link["ifname"] for link in links if "UP" in link["flags"]] == []
        assert machine_state() == before
    finally:
        run_tried(("ip", "netns", "delete", SPACES[0]))


def ip(*words: str) -> str:
    return run_captured(("ip", *words)).stdout


def _ports() -> list[tuple[str, bool, list[str]]]:
    """Name, whether it is up, and addresses, of both."""
    found = []
    for device in (HERE, THERE):
        (entry,) = json.loads(ip("-j", "address", "show", "dev", device))
        addresses = [f"{info['local']}/{info['prefixlen']}" for info in entry["addr_info"]]
        found.append((device, "UP" in entry["flags"], addresses))
    return found
