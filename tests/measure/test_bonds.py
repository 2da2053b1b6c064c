"""A round over a bond: hosts are read around it and once in its midst, and not at all without a bond."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.bond import BondObservation
from nicbench.core.errors import HostError
from nicbench.core.round import EndpointFacts, Job, JobSpec, RoundRequest
from nicbench.measure.bonds import Bonds, connections_of_mount
from nicbench.measure.host_readings import BONDS_SCRIPT, MOUNT_SCRIPT, Socket
from nicbench.testbed.labs.base import BondMember, Endpoint, EndpointTestbed

FACTS_OF_BOND = (Path(__file__).parents[1] / "system/adapters/golden/bonding/facts.txt").read_text()
PAYLOAD = 50_000_000


@dataclass
class Watched:
    """Another watch, which records its calls."""

    heard: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        self.heard.append("begin")

    async def end(self) -> None:
        self.heard.append("end")


class Server:
    """A host with a bond that sends to two clients: at each look the next moment of a list."""

    def __init__(self, moments: list[str], facts: str = FACTS_OF_BOND) -> None:
        self.host = FakeHost("server")
        self._moments = moments
        self.looks = 0
        self.host.answer(("sh", "-c"), self._moment)
        self.host.answer(("sh", "-c", BONDS_SCRIPT), facts)

    def _moment(self, command: tuple[str, ...]) -> str:
        self.looks += 1
        return self._moments.pop(0)


def counters(eth2: int, eth3: int, received: int = 1000) -> str:
    lines = [
        f"/sys/class/net/{port}/statistics/{way}_bytes:{count}"
        for port, sent in (("eth2", eth2), ("eth3", eth3), ("eth4", 0), ("eth5", 0))
        for way, count in (("tx", sent), ("rx", received))
    ]
    return "\n=== nicbench section ports\n" + "\n".join(lines)


def connections(*ends: tuple[str, str, int]) -> str:
    lines = [
        f"ESTAB 0 0 {local} {peer}\n\t cubic rto:204 bytes_sent:{sent} bytes_received:90" for local, peer, sent in ends
    ]
    return "\n=== nicbench section tcp\n" + "\n".join(lines) + "\n"


def rack(server: FakeHost) -> EndpointTestbed:
    def end(host: FakeHost, name: str, address: str, device: str, port: str | None) -> Endpoint:
        return Endpoint(
            host, EndpointFacts(name=name, host=host.name, machine=host.name, address=address, device=device, port=port)
        )

    clients = [end(FakeHost(f"h{number}"), f"c{number}", f"10.0.0.{number}", "eno1", "s0") for number in (2, 3)]
    return EndpointTestbed(
        servers=(end(server, "s0", "10.0.0.1", "bond0", None),), clients=tuple(clients), link_is_nominal=False
    )


def request(duration_s: float = 0.02) -> RoundRequest:
    ask = JobSpec(duration_s=duration_s, direction="reverse")
    jobs = [
        Job(workload="iperf3", client=f"c{number}", server="s0", ask=ask, port=port)
        for number, port in ((2, 5201), (3, 5361))
    ]
    return RoundRequest(jobs=tuple(jobs), duration_s=duration_s)


async def until(done: Callable[[], bool]) -> None:
    """Waits for what happens by itself, and then lets it come to its end."""
    for _ in range(60_000):
        if done():
            break
        await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)


def played(server: Server, asked: RoundRequest | None = None, looks: int = 2) -> tuple[BondObservation, ...]:
    """What is seen of a round that is over once the server was looked at so often."""
    watched, bonds = Watched(), Bonds(rack(server.host))

    async def play() -> tuple[BondObservation, ...]:
        async with bonds.watch_round(watched, asked or request()) as watch:
            await watch.begin()
            await until(lambda: server.looks >= looks)
            await watch.end()
            return bonds.observations()

    seen = asyncio.run(play())
    assert watched.heard == ["begin", "end"]
    return seen


# 10.0.0.1:5201 to 10.0.0.2:40000 has an odd hash (tests/stats/test_bonds.py): the second port, eth2, for eth3 came
# first. The other: 5361 and 40002 are the bytes 14 f1 9c 42, the word 429cf114; ^ 02000000 = 409cf114; then 409cb188
# and 40dc2d39, halved 206e169c, which is even: eth3.
BOTH = (("10.0.0.1:5201", "10.0.0.2:40000", PAYLOAD), ("[::ffff:10.0.0.1]:5361", "[::ffff:10.0.0.3]:40002", PAYLOAD))
CONTROL = ("10.0.0.1:5201", "10.0.0.2:39998", 300)
STRANGER = ("10.0.0.1:22", "10.0.0.9:41000", 10)


def test_each_connection_has_its_port_and_the_counters_agree() -> None:
    frames = PAYLOAD * 1514 // 1448
    moments = [
        counters(7, 9),
        counters(7 + frames, 9 + frames) + connections(*BOTH, CONTROL, STRANGER),
        counters(2 * frames, 2 * frames),
    ]
    (seen,) = played(Server(moments))
    assert (seen.endpoint, seen.bond.name, seen.confirmed, seen.why) == ("s0", "bond0", True, None)
    assert [(flow.jobs, flow.port) for flow in seen.flows[:2]] == [((1,), "eth2"), ((2,), "eth3")]
    assert len(seen.flows) == len((*BOTH, CONTROL))
    assert seen.ports["eth2"].sent == 2 * frames - 7
    assert seen.ports["eth2"].sent_until_midst == frames


def behind_a_switch(moments_of_switch: list[str]) -> tuple[BondObservation, BondObservation]:
    """Both clients send: what the server's bond and that of the switch before it are seen to do."""
    turned = connections(*BOTH).replace(
        f"bytes_sent:{PAYLOAD} bytes_received:90", f"bytes_sent:90 bytes_received:{PAYLOAD}"
    )
    frames = PAYLOAD * 1514 // 1448
    server = Server([counters(0, 0), counters(90, 90, frames) + turned, counters(90, 90, frames)])
    switch, watched = Server(moments_of_switch), Watched()
    switch.host.name = "switch"
    plain = rack(server.host)
    (end,) = plain.servers
    members = tuple(BondMember(port, switch.host, port) for port in ("eth2", "eth3", "eth4", "eth5"))
    facts = end.facts.replace(link_bits_per_s=100e6)
    bonds = Bonds(replace(plain, servers=(Endpoint(server.host, facts, None, members, (switch.host, "bond0")),)))

    async def play() -> tuple[BondObservation, ...]:
        async with bonds.watch_round(watched, request()) as watch:
            await watch.begin()
            await until(lambda: server.looks >= 2 and switch.looks >= 2)
            await watch.end()
            return bonds.observations()

    own, far = asyncio.run(play())
    return own, far


def test_what_comes_to_the_server_is_predicted_at_the_switch_of_a_lab() -> None:
    nothing = [counters(0, 0), counters(0, 0), counters(0, 0)]
    own, far = behind_a_switch(nothing)
    assert (own.endpoint, far.endpoint, far.bond.name) == ("s0", "switch", "bond0")
    ports = [flow.port for flow in far.flows]
    assert [flow.connection.source for flow in far.flows] == ["10.0.0.2", "10.0.0.3"]
    frames = PAYLOAD * 1514 // 1448
    sent = [sum(frames for port in ports if port == name) for name in ("eth2", "eth3")]
    own, far = behind_a_switch([counters(0, 0), counters(sent[0], sent[1]), counters(sent[0], sent[1])])
    assert own.confirmed is None
    assert (far.confirmed, far.why) == (True, None)
    assert {port.speed_bits_per_s for port in far.bond.ports} == {25e6}


def test_counters_that_contradict_the_prediction_refute_it() -> None:
    frames = PAYLOAD * 1514 // 1448
    moments = [counters(0, 0), counters(2 * frames, 0) + connections(*BOTH), counters(4 * frames, 0)]
    (seen,) = played(Server(moments))
    assert seen.confirmed is False
    assert seen.why is not None
    assert "eth2 sent 100 % of the bytes, and 50 % were predicted" in seen.why


def test_a_connection_that_is_older_than_the_round_counts_from_its_beginning() -> None:
    frames = PAYLOAD * 1514 // 1448
    older = [(local, peer, 9 * sent) for local, peer, sent in BOTH[:1]]
    moments = [
        counters(0, 0) + connections(*older),
        counters(frames, 0) + connections(*((local, peer, sent + PAYLOAD) for local, peer, sent in older)),
        counters(frames, 0),
    ]
    (seen,) = played(Server(moments))
    assert (seen.flows[0].connection.sent_bytes, seen.confirmed) == (PAYLOAD, True)


def test_a_round_that_is_over_too_early_says_so() -> None:
    (seen,) = played(Server([counters(0, 0), counters(1, 1)]), request(duration_s=60.0), looks=1)
    assert seen.confirmed is None
    assert seen.why == "the round was over before its connections were looked at"


def test_a_host_without_a_bond_is_asked_once() -> None:
    server = Server([], facts="")
    watched, bonds = Watched(), Bonds(rack(server.host))

    async def play() -> None:
        for _ in range(3):
            async with bonds.watch_round(watched, request()) as watch:
                assert watch is watched
                assert bonds.observations() == ()

    asyncio.run(play())
    assert [command for command in server.host.commands if command[:2] == ("sh", "-c")] == [("sh", "-c", BONDS_SCRIPT)]


def test_a_round_that_breaks_off_is_looked_at_no_more() -> None:
    server = Server([counters(0, 0)])
    bonds = Bonds(rack(server.host))

    async def play() -> None:
        try:
            async with bonds.watch_round(Watched(), request()) as watch:
                await watch.begin()
                raise RuntimeError("cancelled")
        except RuntimeError:
            await asyncio.sleep(0.05)

    asyncio.run(play())
    assert server.looks == 1


def test_a_host_that_answers_no_more_is_no_reason_to_end_a_round() -> None:
    server = Server([counters(0, 0)])

    asked = []

    def gone(command: tuple[str, ...]) -> str:
        asked.append(command)
        raise HostError("the connection was lost", place="server")

    async def play() -> tuple[BondObservation, ...]:
        bonds = Bonds(rack(server.host))
        async with bonds.watch_round(Watched(), request()) as watch:
            await watch.begin()
            server.host.answer(("sh", "-c"), gone)
            await until(lambda: bool(asked))
            await watch.end()
            return bonds.observations()

    assert asyncio.run(play()) == ()


@pytest.mark.parametrize(
    "text",
    [
        '[{"lladdr": "02:00:00:00:00:01"}]',
        '[{"dst": "no address", "lladdr": "02:00:00:00:00:01"}]',
        '{"dst": 1}',
        "not JSON",
    ],
)
def test_what_cannot_be_read_is_no_reason_to_end_a_round(text: str) -> None:
    strange = f"\n=== nicbench section neighbours\n{text}"
    moments = [counters(0, 0), counters(10**8, 0) + connections(*BOTH[:1]) + strange, counters(2 * 10**8, 0)]
    (seen,) = played(Server(moments))
    assert seen.ports["eth2"].sent == 2 * 10**8


async def test_the_files_of_a_job_are_reached_by_the_connection_of_their_mount() -> None:
    client = FakeHost("h2")
    client.answer(("sh", "-c", MOUNT_SCRIPT), (Path(__file__).parent / "golden/mount_nfs.txt").read_text())
    wanted = await connections_of_mount(3, client, "/mnt/b")
    assert [(one.job, one.client, one.server, one.client_ports) for one in wanted] == [
        (3, "10.0.0.2", "10.0.0.1", frozenset({port})) for port in (875, 901)
    ]
    at_server = Socket("10.0.0.1", 2049, "10.0.0.2", 901)
    assert [one.includes(at_server) for one in wanted] == [False, True]
