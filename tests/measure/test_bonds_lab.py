"""The sources of a round over a bond, for real: iperf3's connections by ss, neighbours, and counters of interfaces.

Not every kernel has the bonding driver: two links stand for its ports, and the fact that there is a bond is made up.
Which link a connection takes is decided by its address here, and the neighbours' MAC addresses are chosen so that
hashing by layer 2 comes to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured, run_tried

from nicbench.core.bond import Bond, BondObservation, BondPort
from nicbench.core.round import EndpointFacts, Job, JobOutcome, JobSpec, RoundRequest
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure import bonds as bonds_of_rounds
from nicbench.measure.bonds import Bonds
from nicbench.stats.bonds import judge_bond
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.workloads.base import End
from nicbench.workloads.play import play
from nicbench.workloads.processes import RawFolder

CLIENT, SERVER = "nb-bond-c", "nb-bond-s"
LINKS = (0, 1)
MADE_UP = Bond(
    name="bond0",
    mode="balance-xor",
    policy="layer2",
    ports=tuple(BondPort(name=f"nbs{link}", usable=True) for link in LINKS),
    mac="02:00:00:00:01:00",
    kernel="6.1.0",
)


class Quiet:
    """A watch of nothing."""

    async def begin(self) -> None:
        pass

    async def end(self) -> None:
        pass


def ip(*arguments: str) -> None:
    run_captured(("ip", *arguments))


@pytest.fixture
def testbed_of_two_links() -> Iterator[EndpointTestbed]:
    """Two namespaces without a default route, joined by two veth pairs; they are gone afterwards."""
    try:
        for name in (CLIENT, SERVER):
            ip("netns", "add", name)
        for link in LINKS:
            near, far = f"nbc{link}", f"nbs{link}"
            mac = f"02:00:00:00:00:0{link}"
            ip(
                "link",
                "add",
                near,
                "address",
                mac,
                "netns",
                CLIENT,
                "type",
                "veth",
                "peer",
                "name",
                far,
                "netns",
                SERVER,
            )
            for name, device, node in ((CLIENT, near, 2), (SERVER, far, 1)):
                ip("-n", name, "addr", "add", f"198.18.{78 + link}.{node}/24", "dev", device)
                ip("-n", name, "link", "set", device, "up")
        local = LocalHost()
        client, server = NetnsHost(local, CLIENT, "client"), NetnsHost(local, SERVER, "server")
        yield EndpointTestbed(
            servers=tuple(_end(server, f"s{link}", f"198.18.{78 + link}.1", f"nbs{link}") for link in LINKS),
            clients=tuple(_end(client, f"c{link}", f"198.18.{78 + link}.2", f"nbc{link}") for link in LINKS),
            link_is_nominal=True,
        )
    finally:
        for name in (CLIENT, SERVER):
            run_tried(("ip", "netns", "del", name))


def _end(host: NetnsHost, name: str, address: str, device: str) -> Endpoint:
    facts = EndpointFacts(name=name, host=host.name, machine=host.machine.name, address=address, device=device)
    return Endpoint(host, facts)


@pytest.mark.lab
def test_connections_and_counters_of_a_round_are_read_as_they_are(
    testbed_of_two_links: EndpointTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = testbed_of_two_links

    def made_up(text: str, devices: Iterable[str]) -> dict[str, Bond]:
        return {device: MADE_UP for device in devices if device.startswith("nbs")}

    monkeypatch.setattr(bonds_of_rounds, "parse_bonds", made_up)
    jobs = tuple(
        Job(
            workload="iperf3",
            client=f"c{link}",
            server=f"s{link}",
            ask=JobSpec(duration_s=2.0, direction="reverse", rate_bits_per_s=rate),
            port=5401 + 160 * link,
        )
        for link, rate in zip(LINKS, (200e6, 100e6), strict=True)
    )
    outcomes, (seen,) = asyncio.run(played(testbed, RoundRequest(jobs=jobs, duration_s=4.0), tmp_path))
    assert [outcome.failure for outcome in outcomes] == [None, None]
    assert (seen.endpoint, seen.confirmed, seen.why) == ("s0, s1", True, None)
    # Of each job its connection and iperf3's control, which take the port that their bytes took.
    assert [len([flow for flow in seen.flows if flow.jobs == (job,)]) for job in (1, 2)] == [2, 2]
    assert {flow.jobs: flow.port for flow in seen.flows} == {(1,): "nbs0", (2,): "nbs1"}
    for link in LINKS:
        assert seen.ports[f"nbs{link}"].sent > 10_000_000
    # Had the ports joined in the other order, the same counters would contradict it.
    turned = MADE_UP.replace(ports=MADE_UP.ports[::-1])
    other = judge_bond("s0", turned, [(flow.jobs, flow.connection) for flow in seen.flows], seen.ports)
    assert (other.confirmed, {flow.jobs: flow.port for flow in other.flows}) == (False, {(1,): "nbs1", (2,): "nbs0"})


async def played(
    testbed: EndpointTestbed, request: RoundRequest, folder: Path
) -> tuple[tuple[JobOutcome, ...], tuple[BondObservation, ...]]:
    """A real round."""
    bonds = Bonds(testbed)
    ends = {name: End(end.host, end.facts.address, end.facts.device) for name, end in testbed.endpoints.items()}
    async with bonds.watch_round(Quiet(), request) as watch:
        outcomes = await play(request, ends, RawFolder(folder, "r0001"), watch=watch)
        return outcomes, bonds.observations()
