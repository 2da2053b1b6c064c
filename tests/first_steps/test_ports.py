"""Which ports there are and why not to use one, from recorded outputs; cables, from what arrived."""

from __future__ import annotations

import json

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.first_steps.ports import Cabling, FoundPort, free_ports, look_at_ports, pair_up

UP = ["BROADCAST", "MULTICAST", "UP", "LOWER_UP"]
LINKS = [
    {"ifname": "lo", "link_type": "loopback", "flags": ["LOOPBACK", "UP", "LOWER_UP"]},
    {"ifname": "eth0", "link_type": "ether", "flags": UP},
    {"ifname": "eth1", "link_type": "ether", "flags": UP},
    {"ifname": "eth2", "link_type": "ether", "flags": ["BROADCAST", "MULTICAST"]},
    {"ifname": "eth3", "link_type": "ether", "flags": UP, "master": "br0", "linkinfo": {"info_slave_kind": "bridge"}},
    {"ifname": "br0", "link_type": "ether", "flags": UP, "linkinfo": {"info_kind": "bridge"}},
]
ADDRESSES = [{"ifname": "eth1", "addr_info": [{"local": "10.0.0.1", "prefixlen": 24, "scope": "global"}]}]
LLDP = {"lldp": {"interface": {"eth2": {"chassis": {"leaf1": {}}, "port": {"id": {"value": "swp7"}}}}}}


def machine() -> FakeHost:
    host = FakeHost()
    host.answer("ip -d -j link show", json.dumps(LINKS))
    host.answer("ip -j address show", json.dumps(ADDRESSES))
    host.answer("ip -j -4 route", json.dumps([{"dst": "default", "dev": "eth0"}]))
    host.answer("ethtool -i eth1", "driver: ice\nversion: 6.1\nbus-info: 0000:03:00.0\n")
    host.answer("ethtool eth1", "Settings for eth1:\n\tSpeed: 25000Mb/s\n\tLink detected: yes\n")
    host.answer("lldpcli", json.dumps(LLDP))
    return host


async def test_each_port_says_what_it_is_and_why_not_to_use_it() -> None:
    found = {port.name: port for port in await look_at_ports(machine())}
    assert list(found) == ["eth0", "eth1", "eth2", "eth3"]  # neither the loopback nor the bridge is a port
    assert found["eth0"].never == "carries the default route of this machine"
    assert found["eth1"].never is None
    assert found["eth1"].warning == "it has the address 10.0.0.1/24"
    assert (found["eth1"].driver, found["eth1"].speed_bits_per_s) == ("ice", 25_000_000_000)
    assert found["eth2"].is_free
    assert not found["eth2"].is_up
    assert found["eth2"].neighbour == "leaf1, port swp7"
    assert found["eth3"].warning == "it is a member of the bridge br0"


async def test_without_ethtool_and_lldp_nothing_is_made_up() -> None:
    host = machine()
    for program in ("ethtool", "lldpcli"):
        host.fail(program, "not found")
    host.answer("ethtool -i eth1", "")
    host.answer("ethtool eth1", "")
    eth1 = next(port for port in await look_at_ports(host) if port.name == "eth1")
    assert (eth1.driver, eth1.speed_bits_per_s, eth1.neighbour) == (None, None, None)


async def test_interfaces_that_cannot_be_listed_are_an_error() -> None:
    host = FakeHost()
    host.fail("ip", "Operation not permitted")
    with pytest.raises(NotReadyError, match="cannot be listed"):
        await look_at_ports(host)


def test_ports_with_a_link_are_offered_first() -> None:
    ports = [FoundPort("a", has_link=False), FoundPort("b", has_link=True), FoundPort("c", never="way out")]
    assert [port.name for port in free_ports(ports)] == ["b", "a"]


def test_a_frame_that_no_switch_forwards_tells_a_cable_from_a_switch() -> None:
    arrivals = frozenset({(0, "b", False), (0, "b", True), (1, "a", False), (2, "c", True), (0, "c", False)})
    assert pair_up(["a", "b", "c"], arrivals) == (Cabling("a", "b", True), Cabling("a", "c", False))
    assert str(Cabling("a", "c", False)) == "a <-> c: through a switch"
