"""Names, addresses and the map of cores of a lab."""

from __future__ import annotations

from ipaddress import ip_interface, ip_network

import pytest

from nicbench.testbed.labs._veth_names import dut_ipv4, dut_ipv6, mac, namespace_name
from nicbench.testbed.labs.base import CoreMap, core_map, cpus_of_status

BENCHMARK_RANGES = (ip_network("198.18.0.0/15"), ip_network("2001:2::/48"))


def test_namespaces_of_two_runs_differ_and_are_short_however_long_the_run_is_called() -> None:
    names = {namespace_name(run, role) for run in ("2026-01-31T120000Z-" + "x" * 80, "b") for role in ("tester", "dut")}

    assert len(names) == 4
    assert all(len(name) <= 16 for name in names)


def test_addresses_are_those_that_rfc_2544_and_rfc_5180_set_aside_and_never_shared() -> None:
    interfaces = [ip_interface(address(pair)) for address in (dut_ipv4, dut_ipv6) for pair in range(8)]

    assert all(
        any(one in network for network in BENCHMARK_RANGES if network.version == one.version) for one in interfaces
    )
    assert len({one.network for one in interfaces}) == len(interfaces)


def test_macs_are_locally_administered_unicast_and_differ() -> None:
    macs = {mac(side, pair) for side in (0, 1) for pair in range(8)}

    assert len(macs) == 16
    assert all(int(one[:2], 16) & 0b11 == 0b10 for one in macs)


def test_only_cpus_that_this_process_may_use_count() -> None:
    assert cpus_of_status("Name:\tx\nCpus_allowed:\tc\nCpus_allowed_list:\t2-3\n") == (2, 3)


@pytest.mark.parametrize(
    ("cpus", "dut_apart", "expected"),
    [
        pytest.param((0,), True, CoreMap(0, (0,), (), True), id="one CPU: shared"),
        pytest.param((0, 1), True, CoreMap(0, (1,), (), False), id="two: worker and DUT"),
        pytest.param((2, 3, 4, 5), True, CoreMap(2, (3,), (4, 5), False), id="more: the rest keeps house"),
        pytest.param((0, 1), False, CoreMap(0, (0,), (1,), True), id="a DUT without steering runs on the worker's CPU"),
    ],
)
def test_roles_are_given_to_cpus(cpus: tuple[int, ...], dut_apart: bool, expected: CoreMap) -> None:
    assert core_map(cpus, dut_apart=dut_apart) == expected
