"""Many ports: every way has addresses that the DUT forwards to the right port, and no two ports share any."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_interface, ip_network

import pytest
from lab import described_testbed

from nicbench.core.errors import UsageError
from nicbench.core.pattern import Pattern, ways_of
from nicbench.testbed.addressing import (
    MOST_PORTS,
    choose_ways,
    network_behind,
    port_address,
    swept_address,
    swept_addresses,
)
from nicbench.testbed.duts.bridge import Bridge, BridgeOptions
from nicbench.testbed.duts.external import External, ExternalOptions
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort
from nicbench.testbed.labs.veth import dut_ipv4, dut_ipv6


def with_ports(ports: int) -> Testbed:
    mac = "02:00:00:00:{:02x}:{:02x}".format
    return replace(
        described_testbed(),
        tester_ports=tuple(TesterPort(f"t{i}", {"kind": "null"}, f"t{i}", mac(0, i)) for i in range(ports)),
        dut_ports=tuple(DutPort(f"d{i}", f"d{i}", mac(1, i)) for i in range(ports)),
    )


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("ports", [1, 2, 3, 4, 7, 8, MOST_PORTS])
def test_every_port_has_a_network_and_a_range_of_its_own(ports: int, ip: int) -> None:
    networks = [ip_network(network_behind(ip, port, ports)) for port in range(ports)]
    subnets = [ip_interface(port_address(ip, port)).network for port in range(ports)]
    for port, network in enumerate(networks):
        first = ip_address(swept_address(ip, port, ports))
        last = first + (swept_addresses(ports) - 1)
        assert first in network
        assert last in network
        assert not any(first in subnet or last in subnet for subnet in subnets)
        assert not any(network.overlaps(other) for other in networks[:port])
    assert len(set(subnets)) == ports


def test_a_lab_and_a_router_number_its_ports_alike() -> None:
    for port in range(MOST_PORTS):
        assert ip_interface(dut_ipv4(port)) == ip_interface(port_address(4, port))
        assert ip_interface(dut_ipv6(port)) == ip_interface(port_address(6, port))


def test_a_bridge_is_addressed_from_every_port_to_every_other_and_never_to_the_same() -> None:
    testbed = with_ports(4)
    bridge = Bridge(BridgeOptions())
    ways = {(way.transmit, way.receive): way for way in bridge.addressing(testbed, 4)}
    assert len(ways) == 12
    assert ways[(3, 1)].destination_mac == testbed.tester_ports[1].mac
    assert bridge.returning(testbed, 4) == ()


def test_frames_that_come_back_go_from_one_half_of_the_ports_addresses_to_the_other() -> None:
    testbed = with_ports(4)
    (way, *_) = External(ExternalOptions(macs=tuple(str(port.mac) for port in testbed.dut_ports))).returning(testbed, 4)
    source, destination = ip_address(way.source_address), ip_address(way.destination_address)
    assert int(destination) - int(source) == way.source_address_count == way.destination_address_count
    assert destination + (way.destination_address_count - 1) in ip_network(network_behind(4, 0, 4))


def test_an_external_dut_with_fewer_macs_than_links_is_refused() -> None:
    dut = External(ExternalOptions(macs=("02:00:00:00:00:01", "02:00:00:00:00:02")))
    with pytest.raises(UsageError, match="has 4 links, but `macs` has 2 MAC addresses"):
        dut.addressing(with_ports(4), 4)


def test_the_ways_of_a_pattern_are_taken_in_its_order() -> None:
    testbed = with_ports(4)
    known = Simulated(SimulatedOptions()).addressing(testbed, 4)
    chosen = choose_ways(known, ways_of(Pattern.MANY_TO_ONE, 4).forward, "simulated")
    assert [(way.transmit, way.receive) for way in chosen] == [(1, 0), (2, 0), (3, 0)]
    assert {way.destination_mac for way in chosen} == {testbed.tester_ports[0].mac}


def test_a_way_that_the_dut_does_not_have_is_named() -> None:
    known = Bridge(BridgeOptions()).addressing(with_ports(4), 4)
    with pytest.raises(UsageError, match="does not forward frames from port 0 to port 0"):
        choose_ways(known, ((0, 0),), "bridge")
