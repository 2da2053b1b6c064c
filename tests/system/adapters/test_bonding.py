"""Bonds as ip and sysfs tell of them, in golden outputs that are written after the drivers' formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.system.adapters.links import aggregates, bond_under, parse_links, parse_order, parse_speeds

GOLDEN = Path(__file__).parent / "golden" / "bonding"
LINKS = parse_links((GOLDEN / "links.json").read_text())
ORDER = parse_order((GOLDEN / "slaves.txt").read_text())
SPEEDS = parse_speeds((GOLDEN / "speeds.txt").read_text())


def changed(name: str, **info: Any) -> list[dict[str, Any]]:
    """The links with another ``info_data`` or ``info_slave_data`` of one."""
    links = json.loads(json.dumps(LINKS))
    for link in links:
        if link["ifname"] == name:
            own = link["linkinfo"]
            own["info_data" if "info_data" in own else "info_slave_data"].update(info)
    return links


def test_ports_are_in_the_order_in_which_they_joined() -> None:
    bond = bond_under("bond0", LINKS, ORDER, SPEEDS, "6.1.0", "x86_64")
    assert bond is not None
    assert [port.name for port in bond.ports] == ["eth3", "eth2", "eth4", "eth5"]
    assert (bond.mode, bond.policy, bond.aggregator, bond.partner_mac) == (
        "802.3ad",
        "layer3+4",
        1,
        "44:38:39:ff:00:01",
    )
    assert (bond.kernel, bond.byte_order, bond.mtu_bytes) == ("6.1.0", "little", 9000)


def test_ports_of_another_aggregator_or_without_a_link_are_not_used() -> None:
    bond = bond_under("bond0", LINKS, ORDER, SPEEDS)
    assert bond is not None
    assert [port.name for port in bond.usable] == ["eth3", "eth2"]
    assert [port.speed_bits_per_s for port in bond.ports] == [25e9, 25e9, 25e9, None]


def test_of_another_mode_the_aggregator_does_not_matter() -> None:
    bond = bond_under("bond0", changed("bond0", mode="balance-xor"), ORDER, SPEEDS)
    assert bond is not None
    assert [port.name for port in bond.usable] == ["eth3", "eth2"]  # eth4 is a backup, eth5 has no link
    bond = bond_under("bond0", changed("bond0", mode="active-backup", active_slave="eth2"), ORDER, SPEEDS)
    assert bond is not None
    assert bond.active_port == "eth2"


def test_a_vlan_lies_on_a_bond() -> None:
    bond = bond_under("bond0.100", LINKS, ORDER, SPEEDS, None, "s390x")
    assert bond is not None
    assert (bond.name, bond.vlan, bond.byte_order) == ("bond0", 100, "big")


@pytest.mark.parametrize("device", ["eno1", "eth2", "lo", "gone"])
def test_other_interfaces_are_no_bond(device: str) -> None:
    assert bond_under(device, LINKS, ORDER, SPEEDS) is None


def test_a_port_with_a_queue_id_means_that_filters_choose() -> None:
    bond = bond_under("bond0", changed("eth2", queue_id=2), ORDER, SPEEDS)
    assert bond is not None
    assert bond.steered


def test_without_its_order_a_bond_still_has_its_ports() -> None:
    bond = bond_under("bond0", LINKS, {}, {})
    assert bond is not None
    assert [port.name for port in bond.ports] == ["eth2", "eth3", "eth4", "eth5"]


def test_the_disclosure_has_the_aggregator_and_the_partner() -> None:
    found = aggregates(LINKS)["bond0"]
    assert found["ad_info"]["partner_mac"] == "44:38:39:ff:00:01"
    assert found["members"]["eth4"]["ad_aggregator_id"] == 2
