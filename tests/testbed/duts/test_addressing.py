"""Addressing: what a DUT's frames carry, and what is refused before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest
from lab import DUT_MACS, TESTER_MACS, described_testbed

from nicbench.core.errors import UsageError
from nicbench.testbed.addressing import SWEPT_ADDRESSES, network_behind, swept_address
from nicbench.testbed.duts._kernel import ForwardingPort, neighbour_of, require_host, require_ports, settings_for
from nicbench.testbed.duts.bridge import Bridge, BridgeOptions
from nicbench.testbed.duts.external import External, ExternalOptions
from nicbench.testbed.duts.kernel_forward import KernelForward, KernelForwardOptions
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("port", [0, 1])
def test_every_swept_address_lies_in_the_network_behind_its_port_and_clear_of_the_ports_own(ip: int, port: int) -> None:
    first = ip_address(swept_address(ip, port))
    network = ip_network(network_behind(ip, port))
    assert first in network
    assert first + (SWEPT_ADDRESSES - 1) in network
    own = ip_network({4: ("198.18.0.0/24", "198.19.0.0/24"), 6: ("2001:2::/64", "2001:2:0:8000::/64")}[ip][port])
    assert first not in own
    assert first + (SWEPT_ADDRESSES - 1) not in own


def test_the_networks_behind_the_two_ports_do_not_overlap() -> None:
    for ip in (4, 6):
        assert not ip_network(network_behind(ip, 0)).overlaps(ip_network(network_behind(ip, 1)))


def test_another_ip_version_is_refused() -> None:
    with pytest.raises(UsageError, match="no IP version 5"):
        Bridge(BridgeOptions()).addressing(described_testbed(), 5)


def test_the_tester_is_the_next_address_in_a_ports_subnet() -> None:
    assert neighbour_of("198.18.0.1/24") == "198.18.0.2"
    assert neighbour_of("198.18.1.254/24") == "198.18.1.253"
    assert neighbour_of("198.18.1.1/31") == "198.18.1.0"
    assert neighbour_of("2001:2::1/64") == "2001:2::2"


def test_a_bridge_is_addressed_from_tester_to_tester() -> None:
    forward, reverse = Bridge(BridgeOptions()).addressing(described_testbed(), 4)
    assert (forward.source_mac, forward.destination_mac) == TESTER_MACS
    assert (reverse.source_mac, reverse.destination_mac) == TESTER_MACS[::-1]
    assert (forward.destination_address, reverse.destination_address) == ("198.19.64.0", "198.18.64.0")


def test_an_external_dut_without_macs_is_taken_for_transparent() -> None:
    forward, _ = External(ExternalOptions()).addressing(described_testbed(), 6)
    assert forward.destination_mac == TESTER_MACS[1]


def test_an_external_dut_on_one_link_returns_its_frames_there() -> None:
    one_link = replace(described_testbed(), tester_ports=described_testbed().tester_ports[:1])
    (only,) = External(ExternalOptions(macs=DUT_MACS)).addressing(one_link, 4)
    assert (only.transmit, only.receive, only.destination_mac) == (0, 0, DUT_MACS[0])
    assert only.source_address != only.destination_address


def test_no_core_of_the_testers_machine_is_taken_for_an_external_duts() -> None:
    """Programs that run there would disturb its trials, though it works elsewhere."""
    testbed = described_testbed()
    apart = replace(testbed, cores=replace(testbed.cores, shared=False))
    assert Bridge(BridgeOptions()).cpus(apart) == (1,)
    assert External(ExternalOptions()).cpus(apart) == ()


def test_a_tester_port_without_a_mac_is_named() -> None:
    testbed = described_testbed()
    nameless = replace(testbed, tester_ports=(testbed.tester_ports[0], replace(testbed.tester_ports[1], mac=None)))
    with pytest.raises(UsageError, match="port t1 is not known"):
        Bridge(BridgeOptions()).addressing(nameless, 4)


def test_a_simulated_dut_has_the_same_addresses_in_every_run() -> None:
    one, other = (Simulated(SimulatedOptions()).addressing(described_testbed(), 4) for _ in range(2))
    assert one == other


def test_a_dut_without_a_host_names_the_way_out() -> None:
    with pytest.raises(UsageError, match="needs a host") as raised:
        require_host(replace(described_testbed(), dut=None), "bridge")
    assert "external" in str(raised.value)


def test_a_dut_with_one_link_is_refused_with_the_numbers() -> None:
    with pytest.raises(UsageError, match="has 1 on the DUT and 2 on the tester"):
        require_ports(replace(described_testbed(), dut_ports=described_testbed().dut_ports[:1]), "bridge")


def test_kernel_forwarding_is_not_addressed_before_it_is_up() -> None:
    with pytest.raises(UsageError, match="not set up"):
        KernelForward(KernelForwardOptions()).addressing(described_testbed(), 4)


def test_a_port_gets_no_link_local_address_because_its_mode_is_set_before_ipv6_is_switched_on() -> None:
    port = ForwardingPort("d0", DUT_MACS[0], TESTER_MACS[0], (), ())
    names = [path.removeprefix("/proc/sys/net/ipv6/conf/") for path, _ in settings_for((port,), ipv6=True)]
    assert names.index("d0/addr_gen_mode") < names.index("d0/disable_ipv6") < names.index("all/forwarding")


def test_neighbours_that_age_are_asked_for_again_after_this_time_and_the_tester_answers_for_its_addresses() -> None:
    port = ForwardingPort("d0", DUT_MACS[0], TESTER_MACS[0], ("198.18.0.1/24", "2001:2::1/64"), ())
    settings = dict(settings_for((port,), ipv6=True, neighbour_age_s=1.5))
    assert {settings[f"/proc/sys/net/ipv{version}/neigh/d0/base_reachable_time_ms"] for version in (4, 6)} == {"1500"}
    assert not [path for path, _ in settings_for((port,), ipv6=True) if "neigh" in path]
    router = KernelForward(KernelForwardOptions(neighbour_age=1.5))
    router._ports = (port,)
    assert router.neighbours(described_testbed()) == (
        ({"first": "198.18.0.2", "count": 1}, {"first": "2001:2::2", "count": 1}),
    )


def test_a_kernel_without_ipv6_is_not_asked_for_it() -> None:
    port = ForwardingPort("d0", DUT_MACS[0], TESTER_MACS[0], (), ())
    assert not [path for path, _ in settings_for((port,), ipv6=False) if "ipv6" in path]
