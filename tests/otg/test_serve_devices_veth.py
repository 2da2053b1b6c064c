"""Emulated devices at veth pairs, in front of a router of Linux: its tables, its pings, flows through it, and hostile
neighbours beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import pytest
from tests.commands import run_captured, run_tried

from nicbench.testbed.labs.veth import namespace_name

from .served import Served, add_flow, configured, serving, transmit, wait_for_stop, wait_until
from .test_serve_devices import control_protocols, neighbours

BENCH = """nicbench: 1
title: Devices at a router
lab: {kind: veth}
dut: {kind: kernel-forward}
tester: {driver: DRIVER}
"""
DRIVERS = ("net_af_xdp", "net_af_packet")
HOSTS = 1000
"""The kernel keeps 1024 neighbours of all namespaces together."""
DEVICES = ("d0", "d1")
STORM = """
import contextlib, socket, struct, sys, time
device, gateway, host = sys.argv[1:]
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((device, 0))
forger = bytes.fromhex("02badbadbad0")
def arp(operation, sender, target, to=b"\\xff" * 6):
    head = to + forger + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, operation)
    return (head + forger + socket.inet_aton(sender) + bytes(6) + socket.inet_aton(target)).ljust(60, b"\\0")
mac = bytes.fromhex("020000010000")
frames = [arp(1, "10.1.200.1", host), arp(2, gateway, host, mac), arp(1, gateway, gateway), arp(2, gateway, host)]
solicitation = bytes.fromhex("86dd60000000ffff3aff") + bytes(32) + b"\\x87" + bytes(23)
frames.append(bytes.fromhex("333300000001") + forger + solicitation)
frames.append(arp(1, "10.1.200.1", host)[:18].ljust(60, b"\\xff"))
for turn in range(1000):
    for number in range(10):
        with contextlib.suppress(OSError):  # the ring is full
            out.send(frames[(turn + number) % len(frames)])
    time.sleep(0.001)
"""


@dataclass(frozen=True)
class Router:
    """The DUT of a server: a namespace that forwards between its two ports."""

    served: Served
    space: str

    def run(self, *words: str) -> str:
        return run_captured(("ip", "netns", "exec", self.space, *words)).stdout

    def neighbours(self, version: int, device: str) -> dict[str, str]:
        """MAC addresses that the router knows at a device, by address; without those that it was given."""
        told = json.loads(self.run("ip", "-j", f"-{version}", "neigh", "show", "dev", device))
        return {each["dst"]: each["lladdr"] for each in told if "lladdr" in each and "PERMANENT" not in each["state"]}

    def mac(self, device: str) -> str:
        return str(json.loads(self.run("ip", "-j", "link", "show", "dev", device))[0]["address"])


@pytest.fixture(scope="module", params=DRIVERS)
def router(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Router]:
    with serving(tmp_path_factory.mktemp("serve"), text=BENCH.replace("DRIVER", request.param)) as served:
        api = served.api()
        api.set_config(configured(api, captured=False))
        run_id = served.run_folder().name
        made = Router(served, namespace_name(run_id, "dut"))
        for number, device in enumerate(DEVICES, start=1):
            made.run("ip", "addr", "add", f"10.{number}.0.1/16", "dev", device)
            made.run("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=0")
            made.run("ip", "-6", "addr", "add", f"2001:db8:{number}::1/64", "dev", device, "nodad")
            made.run("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        yield made


def mac_of(port: int, number: int) -> str:
    return f"02:00:00:{port:02x}:{number >> 8:02x}:{number & 255:02x}"


def add_hosts(config: Any, port: int, count: int) -> list[str]:
    """Hosts at a port, whose gateway is the router; the names of their IPv4 addresses."""
    device = config.devices.add(name=f"d{port}")
    for number in range(count):
        name = f"{port}-{number}"
        ethernet = device.ethernets.add(name=f"e{name}", mac=mac_of(port, number))
        ethernet.connection.port_name = f"p{port}"
        address = ip_address(f"10.{port}.1.0") + number
        ethernet.ipv4_addresses.add(name=f"i{name}", address=str(address), gateway=f"10.{port}.0.1", prefix=16)
        ethernet.ipv6_addresses.add(
            name=f"s{name}", address=f"2001:db8:{port}::{number + 16:x}", gateway=f"2001:db8:{port}::1"
        )
    return [f"i{port}-{number}" for number in range(count)]


def add_device_flow(config: Any, name: str, senders: list[str], receivers: list[str], frames: int) -> Any:
    flow = add_flow(config, name, frames=frames)
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = senders, receivers
    flow.packet.ethernet().ipv4().udp()
    flow.rate.pps = 10_000
    return flow


def told_by_hosts(served: Served) -> Any:
    return json.load(urllib.request.urlopen(f"{served.http}/nicbench/v1/hosts"))


@pytest.mark.sampled(1)
@pytest.mark.lab
@pytest.mark.alone
@pytest.mark.parametrize("many", [1, 2])
def test_a_router_knows_a_thousand_hosts_as_they_are_and_forwards_between_them(router: Router, many: int) -> None:
    """Of a thousand at one of its ports, and two at the other."""
    api = router.served.api()
    config = configured(api, captured=False)
    for device in DEVICES:
        router.run("ip", "neigh", "flush", "dev", device)
    counts = {1: 2, 2: 2, many: HOSTS}
    left, right = (add_hosts(config, port, count) for port, count in counts.items())
    add_device_flow(config, "there", left, right, 20_000)
    add_device_flow(config, "back", right, left, 20_000)
    api.set_config(config)
    control_protocols(api, "start")
    for version in (4, 6):
        for (port, count), device in zip(counts.items(), DEVICES, strict=True):
            gateway = (f"10.{port}.0.1" if version == 4 else f"2001:db8:{port}::1", router.mac(device))
            wait_until(lambda v=version, g=gateway, c=count: list(neighbours(api, v).values()).count(g) == c)
            first = ip_address(f"10.{port}.1.0" if version == 4 else f"2001:db8:{port}::10")
            ours = {str(first + number): mac_of(port, number) for number in range(count)}
            assert router.neighbours(version, device) == ours
    transmit(api, "start")
    for metric in wait_for_stop(api).values():
        assert (metric.frames_tx, metric.frames_rx, metric.loss) == (20_000, 20_000, 0)
    assert told_by_hosts(router.served)["duplicates"] == []


@pytest.mark.sampled(1)
@pytest.mark.lab
def test_pings_of_a_router_are_answered_and_come_from_no_other_host(router: Router) -> None:
    api = router.served.api()
    config = configured(api, captured=False)
    add_hosts(config, 1, 2)
    api.set_config(config)
    control_protocols(api, "start")
    for address in ("10.1.1.1", "2001:db8:1::11"):
        for size in ("56", "1400"):
            said = router.run("ping", "-c", "5", "-i", "0.2", "-s", size, "-W", "5", address)
            assert "5 received" in said
            assert "DUP" not in said
    absent = run_tried(("ip", "netns", "exec", router.space, "ping", "-c", "1", "-W", "1", "10.1.1.9"))
    assert "0 received" in absent.stdout
    ports = told_by_hosts(router.served)["ports"]
    assert ports[0]["echo_answered"] >= 20


@pytest.mark.sampled(1)
@pytest.mark.lab
def test_hostile_neighbours_beside_a_flow_change_none_of_its_counts(router: Router) -> None:
    api = router.served.api()
    config = configured(api, captured=False)
    left, right = add_hosts(config, 1, 2), add_hosts(config, 2, 2)
    flow = add_device_flow(config, "f", right, left, 10_000)
    flow.rate.pps = 5000
    api.set_config(config)
    control_protocols(api, "start")
    wait_until(lambda: neighbours(api)["e1-0"] == ("10.1.0.1", router.mac("d0")))
    before, earlier = told_by_hosts(router.served)["ports"][0], len(router.served.trials())
    command = ("ip", "netns", "exec", router.space, sys.executable, "-c", STORM, "d0", "10.1.0.1", "10.1.1.0")
    with subprocess.Popen(command) as storm:
        transmit(api, "start")
        wait_for_stop(api)
        assert storm.wait(timeout=60) == 0
    counted = json.load(urllib.request.urlopen(f"{router.served.http}/nicbench/v1/flows"))["flows"][0]
    assert (counted["sent"], counted["received"] + counted["lost"]) == (10_000, 10_000)
    assert [counted[name] for name in ("duplicated", "reordered", "corrupted", "misdirected")] == [0, 0, 0, 0]
    wait_until(lambda: len(router.served.trials()) > earlier)
    assert router.served.trials()[-1]["reading"]["unexplained"] == 0
    assert neighbours(api)["e1-0"] == ("10.1.0.1", router.mac("d0")), "a forged answer moved the gateway"
    after = told_by_hosts(router.served)["ports"][0]
    rose = {name: after[name] - before[name] for name in after if name != "name"}
    assert rose["contradicted"] > 100
    assert rose["malformed"] > 100
    assert rose["arp_answered"] > 100


@pytest.mark.sampled(1)
@pytest.mark.lab
def test_another_station_with_a_hosts_address_is_named(router: Router) -> None:
    api = router.served.api()
    config = configured(api, captured=False)
    add_hosts(config, 1, 2)
    router.run("ip", "addr", "add", "10.1.1.1/32", "dev", "d0")
    try:
        api.set_config(config)
        found = {"ethernet": "e1-1", "address": "10.1.1.1", "mac": router.mac("d0")}
        wait_until(lambda: any(found.items() <= each.items() for each in told_by_hosts(router.served)["duplicates"]))
    finally:
        router.run("ip", "addr", "del", "10.1.1.1/32", "dev", "d0")
