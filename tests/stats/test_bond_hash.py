"""The arithmetic of the Linux bonding driver, on vectors computed by hand and by its own authors."""

from __future__ import annotations

import pytest

from nicbench.core.bond import Bond, BondPort, Connection
from nicbench.stats.bonds import (
    ARITHMETICS,
    Arithmetic,
    UnpredictableError,
    arithmetics,
    hash_of,
    needs_peer_mac,
    port_of,
)

OLD, NUMBER, HALVED = ARITHMETICS
SERVER_MAC, PEER_MAC = "02:00:00:00:00:e3", "02:00:00:00:00:a0"


def bond(policy: str, *, mode: str = "802.3ad", ports: int = 2, **fields: object) -> Bond:
    members = tuple(BondPort(name=f"eth{number}", usable=True) for number in range(ports))
    return Bond.model_validate(
        {"name": "bond0", "mode": mode, "policy": policy, "ports": members, "mac": SERVER_MAC, "kernel": "6.1.0"}
        | fields
    )


def tcp(source: str, destination: str, ports: tuple[int, int] = (5201, 40000), **fields: object) -> Connection:
    return Connection.model_validate(
        {"source": source, "source_port": ports[0], "destination": destination, "destination_port": ports[1]}
        | {"peer_mac": PEER_MAC}
        | fields
    )


IPV4 = tcp("10.0.0.1", "10.0.0.2")
IPV6 = tcp("2001:db8::1", "2001:db8::2")


def test_layer_3_and_4_of_ipv4() -> None:
    # Ports 5201 and 40000 are the bytes 14 51 9c 40, in memory the word 409c5114; the addresses 0100000a ^ 0200000a.
    # 409c5114 ^ 03000000 = 439c5114; ^ itself >> 16 = 439c1288; ^ itself >> 8 = 43df8e9a; without its lowest bit.
    for arithmetic in ARITHMETICS:
        assert hash_of(bond("layer3+4"), IPV4, arithmetic) == 0x21EFC74D
    assert port_of(bond("layer3+4"), IPV4, HALVED) == "eth1"
    assert port_of(bond("layer3+4", ports=3), IPV4, HALVED) == f"eth{0x21EFC74D % 3}"


def test_layer_3_and_4_of_ipv6_folds_the_four_words_of_each_address() -> None:
    # 20010db8 ^ 00000001 is in memory b90d0120, that of the other ba0d0120: together 03000000 again.
    assert hash_of(bond("layer3+4"), IPV6, HALVED) == 0x21EFC74D


def test_layer_3_and_4_on_a_big_endian_machine() -> None:
    # 14519c40 ^ 0a000001 ^ 0a000002 = 14519c43; 14518812; 1445d99a; halved.
    assert hash_of(bond("layer3+4", byte_order="big"), IPV4, HALVED) == 0x0A22ECCD


def test_a_fragment_is_hashed_without_ports() -> None:
    # 03000000; ^ >> 16 = 03000300; ^ >> 8 = 03030303; halved.
    fragment = IPV4.replace(fragmented=True)
    assert hash_of(bond("layer3+4"), fragment, HALVED) == 0x03030303 >> 1


@pytest.mark.parametrize(
    ("connection", "arithmetic", "expected"),
    [
        pytest.param(IPV4, OLD, 0xA0 ^ 0xE3 ^ 0x0008, id="IPv4, its EtherType as two bytes"),
        pytest.param(IPV4, NUMBER, 0xA0 ^ 0xE3 ^ 0x0800, id="IPv4, as a number"),
        pytest.param(IPV6, OLD, 0xA0 ^ 0xE3 ^ 0xDD86, id="IPv6, as two bytes"),
        pytest.param(IPV6, HALVED, 0xA0 ^ 0xE3 ^ 0x86DD, id="IPv6, as a number: another port of two"),
    ],
)
def test_layer_2(connection: Connection, arithmetic: Arithmetic, expected: int) -> None:
    assert hash_of(bond("layer2"), connection, arithmetic) == expected


@pytest.mark.parametrize("policy", ["layer2+3", "encap2+3"])
@pytest.mark.parametrize("peer_mac", ["02:00:00:00:00:a0", "02:00:00:00:00:a1"])
def test_layers_2_and_3_as_the_authors_computed_them(policy: str, peer_mac: str) -> None:
    # The commit 49aefd131739 computes 261066666 of both neighbours, with 0x8 for the EtherType: one port is used.
    connection = tcp("192.168.122.30", "192.168.122.1", peer_mac=peer_mac)
    assert hash_of(bond(policy), connection, OLD) == 261066666


def test_layers_2_and_3_use_both_ports_for_two_neighbours_once_no_bit_is_discarded() -> None:
    # a0 ^ e3 ^ 0800 = 0843; 0843 ^ 1e7aa8c0 ^ 017aa8c0 = 1f000843; ^ >> 16 = 1f001743; ^ >> 8 = 1f1f1754.
    one, other = (tcp("192.168.122.30", "192.168.122.1", peer_mac=f"02:00:00:00:00:{last}") for last in ("a0", "a1"))
    assert hash_of(bond("layer2+3"), one, HALVED) == 0x1F1F1754
    assert hash_of(bond("layer2+3"), other, HALVED) == 0x1F1F1755
    assert hash_of(bond("layer2+3"), one, NUMBER) == 0x1F1F1754 >> 1
    assert (port_of(bond("layer2+3"), one, HALVED), port_of(bond("layer2+3"), other, HALVED)) == ("eth0", "eth1")


def test_vlan_and_source_mac() -> None:
    # 02005e ^ 102031 = 12206f; ^ 100 = 12200b.
    assert hash_of(bond("vlan+srcmac", mac="02:00:5e:10:20:31", vlan=100), IPV4, HALVED) == 0x12200B
    assert hash_of(bond("vlan+srcmac", mac="02:00:5e:10:20:31"), IPV4, HALVED) == 0x12206F


def test_only_usable_ports_are_counted_in_their_order() -> None:
    ports = [BondPort(name=name, usable=name != "eth1") for name in ("eth2", "eth1", "eth0")]
    assert port_of(bond("layer3+4").replace(ports=tuple(ports)), IPV4, HALVED) == "eth0"
    alone = tuple(port.replace(usable=port.name == "eth2") for port in ports)
    assert port_of(bond("layer3+4").replace(ports=alone), IPV4, HALVED) == "eth2"


def test_an_active_backup_bond_uses_its_active_port() -> None:
    assert port_of(bond("layer2", mode="active-backup", active_port="eth1"), IPV4, HALVED) == "eth1"


@pytest.mark.parametrize(
    ("made", "connection", "why"),
    [
        pytest.param(bond("encap3+4"), IPV4, "random number of each connection", id="a random number"),
        pytest.param(bond("layer2", mode="balance-rr"), IPV4, "binds no connection to a port", id="round robin"),
        pytest.param(bond("layer2", mode="balance-alb"), IPV4, "binds no connection to a port", id="moved by load"),
        pytest.param(bond("layer2", steered=True), IPV4, "queue_id", id="chosen by filters"),
        pytest.param(bond("layer3+4", ports=0), IPV4, "no port of it is usable", id="no port"),
        pytest.param(bond("layer9"), IPV4, "layer9 is not known", id="a policy of later kernels"),
        pytest.param(bond("layer2"), tcp("10.0.0.1", "10.0.0.2", peer_mac=None), "next hop to 10.0.0.2", id="no MAC"),
        pytest.param(bond("layer2", mode="active-backup"), IPV4, "no port of it is active", id="none active"),
    ],
)
def test_what_cannot_be_computed_says_why(made: Bond, connection: Connection, why: str) -> None:
    with pytest.raises(UnpredictableError, match=why):
        port_of(made, connection, HALVED)


@pytest.mark.parametrize(
    ("kernel", "own"),
    [
        ("4.15.0-213-generic", OLD),
        ("5.10.0-28-amd64", OLD),
        ("5.14.0-427.el9.x86_64", OLD),
        ("5.15.37", NUMBER),
        ("5.15.38", HALVED),
        ("5.16.20", NUMBER),
        ("5.17.5", NUMBER),
        ("5.17.6", HALVED),
        ("5.18.0", HALVED),
        ("6.1.0-18-amd64", HALVED),
        ("6.18", HALVED),
    ],
)
def test_the_arithmetic_is_that_of_the_kernels_version(kernel: str, own: Arithmetic) -> None:
    first, *others = arithmetics(kernel)
    assert first is own
    assert {first, *others} == set(ARITHMETICS)


@pytest.mark.parametrize("kernel", ["4.14.300", "3.10.0-1160.el7.x86_64", "unknown", None])
def test_of_other_kernels_nothing_is_predicted(kernel: str | None) -> None:
    with pytest.raises(UnpredictableError):
        arithmetics(kernel)


def test_neighbours_are_asked_for_where_the_policy_needs_them() -> None:
    policies = ("layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac")
    assert [policy for policy in policies if needs_peer_mac(bond(policy))] == ["layer2", "layer2+3", "encap2+3"]
