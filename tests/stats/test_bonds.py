"""Sentences on a bond: claimed where counters support it, else called a prediction with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest

from nicbench.core.bond import Bond, BondObservation, BondPort, Connection, PortBytes
from nicbench.core.judging import Verdict
from nicbench.core.round import Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.stats.bonds import (
    ARITHMETICS,
    Arithmetic,
    UnpredictableError,
    arithmetics,
    bond_note,
    bond_port,
    hash_of,
    judge_bond,
    needs_peer_mac,
    port_of,
    spread_evenly,
)

MEGABYTE = 1_000_000
FRAME_PER_PAYLOAD = 1514 / 1448
TWO_PORTS = tuple(BondPort(name=name, usable=True, speed_bits_per_s=25e9) for name in ("eth2", "eth3"))
LACP = Bond(name="bond0", mode="802.3ad", policy="layer3+4", ports=TWO_PORTS, kernel="6.1.0", mac="02:00:00:00:00:e3")
# Client ports of 10.0.0.2 whose connections from port 2049 of 10.0.0.1 hash to eth2 and to eth3: the bytes 08 01, the
# port's two, and 00 00 00 03 of the addresses; the second lowest bit of 08 ^ 01 ^ both of the port's ^ 03 decides.
TO_ETH2, TO_ETH3 = (0x0300, 0x0700, 0x0502), (0x0302, 0x0702, 0x0500)


def nfs(port: int, sent: int | None = 100 * MEGABYTE, received: int | None = 1000, **fields: object) -> Connection:
    return Connection.model_validate(
        {
            "source": "10.0.0.1",
            "source_port": 2049,
            "destination": "10.0.0.2",
            "destination_port": port,
            "sent_bytes": sent,
            "received_bytes": received,
        }
        | fields
    )


def counted(**sent: float) -> dict[str, PortBytes]:
    """Ports that sent this payload until the midst, and twice of it in all."""
    frames = {name: round(payload * FRAME_PER_PAYLOAD) for name, payload in sent.items()}
    return {
        name: PortBytes(sent=2 * count, received=5000, sent_until_midst=count, received_until_midst=2500)
        for name, count in frames.items()
    }


def seen(connections: Sequence[Connection], ports: dict[str, PortBytes], bond: Bond = LACP) -> BondObservation:
    """Each connection is that of the job of its place."""
    return judge_bond("s0", bond, [((number,), one) for number, one in enumerate(connections, 1)], ports)


def played(*bonds: BondObservation, jobs: int = 4, id: str = "r0001") -> Round:
    job = Job(workload="nicbench-frames", client="c0", server=None, ask=JobSpec(duration_s=1.0), port=5201)
    return Round(
        id=id,
        key=id,
        test="t",
        configuration="",
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(job,) * jobs, duration_s=1.0),
        outcomes=(JobOutcome(),) * jobs,
        bonds=bonds,
        verdict=Verdict(),
    )


NAMES = {number: f"instance {number}" for number in range(1, 5)}
RATES = {1: "24.0", 2: "9.1", 3: "9.0", 4: "9.2"}


def rates_of(rounds: Sequence[Round]) -> dict[int, str]:
    return RATES


def test_who_shared_a_port_is_said_with_what_each_reached() -> None:
    one = seen(
        [nfs(TO_ETH2[0], 240 * MEGABYTE), *(nfs(port, 91 * MEGABYTE) for port in TO_ETH3)],
        counted(eth2=240 * MEGABYTE, eth3=273 * MEGABYTE),
    )
    assert one.confirmed is True
    assert [bond_port([played(one)], job) for job in (1, 2, 3, 4)] == ["eth2", "eth3", "eth3", "eth3"]
    assert bond_note([played(one)], NAMES, rates_of, "frames/s") == (
        "bond0 of s0 (802.3ad, layer3+4): instance 1 had eth2 (25 Gb/s) to itself: 24.0 frames/s; "
        "instances 2, 3 and 4 shared eth3 (25 Gb/s): 9.1, 9.0 and 9.2 frames/s. "
        "4 connections hashed to 2 ports are spread evenly in 38 % of all cases"
    )


def test_counters_that_contradict_make_it_a_prediction() -> None:
    one = seen(
        [nfs(TO_ETH2[0], 240 * MEGABYTE), nfs(TO_ETH3[0], 91 * MEGABYTE)],
        counted(eth2=91 * MEGABYTE, eth3=240 * MEGABYTE),
    )
    assert one.confirmed is False
    assert bond_port([played(one)], 1) == "eth2 (predicted)"
    note = bond_note([played(one)], NAMES, rates_of, "frames/s")
    assert note.startswith(
        "bond0 of s0 (802.3ad, layer3+4): predicted, not confirmed by the counters, because eth3 sent 73 %"
    )


@pytest.mark.parametrize(
    ("connections", "ports", "why"),
    [
        pytest.param([nfs(TO_ETH2[0], 1000, 10)], {"eth2": 1000.0, "eth3": 0.0}, "too little", id="little"),
        pytest.param([nfs(TO_ETH2[0], 9 * MEGABYTE)], {"eth2": 90e6, "eth3": 0.0}, "only 10 %", id="others send"),
        pytest.param([nfs(TO_ETH2[0], None, None)], {"eth2": 9e6, "eth3": 0.0}, "does not count", id="UDP"),
        pytest.param([nfs(TO_ETH2[0], 1000, 10**8)], {"eth2": 9e6, "eth3": 0.0}, "mostly received", id="receives"),
        pytest.param([], {"eth2": 9e6, "eth3": 0.0}, "no connection", id="none seen"),
    ],
)
def test_without_enough_to_go_by_nothing_is_confirmed(
    connections: list[Connection], ports: dict[str, float], why: str
) -> None:
    one = seen(connections, counted(**ports))
    assert one.confirmed is None
    assert one.why is not None
    assert why in one.why


def test_what_cannot_be_predicted_is_not_claimed() -> None:
    one = seen([nfs(TO_ETH2[0])], counted(eth2=1e8, eth3=0.0), LACP.replace(policy="encap3+4"))
    assert (one.confirmed, bond_port([played(one)], 1)) == (None, None)
    note = bond_note([played(one)], NAMES, rates_of)
    assert note is not None
    assert "is not known, because with encap3+4 the kernel hashes by a random number" in note


def test_a_kernel_that_took_over_newer_arithmetic_is_found_out_by_its_counters() -> None:
    # The commit's own two neighbours (tests/stats/test_bonds.py): before 5.18 both go by one port, then by both.
    bond = LACP.replace(policy="layer2+3", kernel="5.14.0-427.el9.x86_64")
    ends = {"source": "192.168.122.30", "destination": "192.168.122.1"}
    flows = [nfs(700 + last, peer_mac=f"02:00:00:00:00:{last:02x}", **ends) for last in (0xA0, 0xA1)]
    one = seen(flows, counted(eth2=1e8, eth3=1e8), bond)
    assert (one.confirmed, [flow.port for flow in one.flows]) == (True, ["eth2", "eth3"])
    assert one.why == (
        "kernel 5.14.0-427.el9.x86_64 hashes as Linux from 5.18 does, by its counters, not as its version"
    )
    # Where they agree with the version's own, that stands.
    own = seen(flows, counted(eth2=2e8, eth3=0.0), bond)
    assert (own.confirmed, own.why, {flow.port for flow in own.flows}) == (True, None, {"eth2"})


def test_of_an_end_that_received_the_counters_speak_alone() -> None:
    def received(eth2: int, eth3: int) -> BondObservation:
        ports = {
            name: PortBytes(sent=9000, received=count, sent_until_midst=4000, received_until_midst=count // 2)
            for name, count in (("eth2", eth2), ("eth3", eth3))
        }
        return seen([nfs(TO_ETH2[0], 1000, 10**8), nfs(TO_ETH3[0], 1000, 10**8)], ports)

    split, single = played(received(670 * MEGABYTE, 330 * MEGABYTE)), played(received(10**9, 9000))
    assert [bond_port([split], job) for job in (1, 2)] == [None, None]
    assert [bond_port([single], job) for job in (1, 2, 3)] == ["eth2", "eth2", None]
    assert bond_note([split], NAMES, rates_of) == (
        "bond0 of s0 (802.3ad, layer3+4) received 67 % by eth2, 33 % by eth3; "
        "by which port a frame comes in is chosen at the other end"
    )


def test_a_connection_that_only_speaks_about_others_is_no_port_of_a_job() -> None:
    flows = [((1,), nfs(TO_ETH2[0])), ((1,), nfs(TO_ETH3[0], 300))]
    one = judge_bond("s0", LACP, flows, counted(eth2=1e8, eth3=0.0))
    assert bond_port([played(one)], 1) == "eth2"


def test_instances_of_one_connection_share_its_port() -> None:
    one = judge_bond("s0", LACP, [((1, 2), nfs(TO_ETH2[0]))], counted(eth2=1e8, eth3=0.0))
    assert [bond_port([played(one)], job) for job in (1, 2)] == ["eth2", "eth2"]
    note = bond_note([played(one)], NAMES, lambda _: {})
    assert note == "bond0 of s0 (802.3ad, layer3+4): instances 1 and 2 shared eth2 (25 Gb/s)"


def test_mounts_that_cannot_be_told_apart_are_said_to_be_so() -> None:
    flows = [((1, 2), nfs(TO_ETH2[0])), ((1, 2), nfs(TO_ETH3[0]))]
    one = judge_bond("s0", LACP, flows, counted(eth2=1e8, eth3=1e8))
    assert bond_port([played(one)], 1) == "eth2 and eth3"
    note = bond_note([played(one)], NAMES, lambda _: {})
    assert note is not None
    assert "instances 1 and 2 shared eth2 (25 Gb/s) and eth3 (25 Gb/s), by mounts that cannot be told apart" in note


def test_of_traffic_both_ways_each_end_tells_of_what_left_it() -> None:
    # The server's connection to the client, and the client's to the server, which sends a little more.
    flows = [((1,), nfs(TO_ETH2[0], 10**8, 10**5)), ((1,), nfs(TO_ETH3[0], 10**5, 11 * 10**7))]
    ports = {
        name: PortBytes(sent=sent, received=received, sent_until_midst=sent, received_until_midst=received)
        for name, sent, received in (("eth2", 104_600_000, 115_000_000), ("eth3", 3_000_000, 10_000))
    }
    one = judge_bond("s0", LACP, flows, ports)
    assert (one.confirmed, bond_port([played(one)], 1)) == (True, "eth2")
    note = bond_note([played(one)], NAMES, rates_of, "frames/s")
    assert note == "bond0 of s0 (802.3ad, layer3+4): instance 1 had eth2 (25 Gb/s) to itself: 24.0 frames/s"


def test_several_rounds_say_how_often_each_port_was_used() -> None:
    first = played(seen([nfs(TO_ETH2[0])], counted(eth2=1e8, eth3=0.0)))
    second = played(seen([nfs(TO_ETH3[0])], counted(eth2=0.0, eth3=1e8)), id="r0002")
    assert bond_port([first, first, second], 1) == "eth2 in 2 of 3 rounds, eth3 in 1 of 3 rounds"
    note = bond_note([first, second], NAMES, rates_of)
    assert note is not None
    assert "(r0001). bond0" in note
    assert note.endswith("(r0002)")


def test_rates_beside_a_sharing_are_of_the_rounds_that_shared_so() -> None:
    shared = played(seen([nfs(port) for port in TO_ETH2[:2]], counted(eth2=2e8, eth3=0.0)))
    apart = played(seen([nfs(TO_ETH2[0]), nfs(TO_ETH3[0])], counted(eth2=1e8, eth3=1e8)), id="r0002")
    again = played(seen([nfs(port) for port in TO_ETH2[:2]], counted(eth2=2e8, eth3=0.0)), id="r0003")
    of_round = {"r0001": 4.0, "r0002": 9.4, "r0003": 5.0}

    def rates(rounds: Sequence[Round]) -> dict[int, str]:
        mean = sum(of_round[one.id] for one in rounds) / len(rounds)
        return {1: f"{mean:g} Gb/s", 2: f"{mean:g} Gb/s"}

    note = bond_note([shared, apart, again], NAMES, rates)
    together, _, alone = note.partition("(r0001, r0003)")
    assert "instances 1 and 2 shared eth2 (25 Gb/s): 4.5 Gb/s and 4.5 Gb/s" in together
    assert "instance 1 had eth2 (25 Gb/s) to itself: 9.4 Gb/s" in alone


def test_without_a_bond_nothing_is_said() -> None:
    assert (bond_port([played()], 1), bond_note([played()], NAMES, rates_of)) == (None, None)


@pytest.mark.parametrize(("connections", "ports"), [(1, 2), (2, 2), (3, 2), (4, 2), (2, 4), (4, 3), (5, 4)])
def test_the_chance_of_an_even_spread_is_that_of_all_cases_counted(connections: int, ports: int) -> None:
    even = [
        case
        for case in itertools.product(range(ports), repeat=connections)
        if max(map(case.count, range(ports))) - min(map(case.count, range(ports))) <= 1
    ]
    assert spread_evenly(connections, ports) == pytest.approx(float(Fraction(len(even), ports**connections)))


# The arithmetic of the Linux bonding driver, on vectors computed by hand and by its own authors.


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
