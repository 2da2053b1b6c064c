"""What is said of a bond: claimed where counters support it, else called a prediction with the reason."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import pytest

from nicbench.core.bond import Bond, BondObservation, BondPort, Connection, PortBytes
from nicbench.core.judging import Verdict
from nicbench.core.round import Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.stats.bonds import bond_note, bond_port, judge_bond, spread_evenly

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
    assert note is not None
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
    # The commit's own two neighbours (tests/stats/test_bond_hash.py): before 5.18 both go by one port, then by both.
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
    assert note is not None
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
