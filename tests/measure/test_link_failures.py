"""A link that fails in the midst of a round: it goes down and comes back, whatever happens, and is reported."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import FakeHost, FakeProcess, NotedChanges

from nicbench.core.bond import Bond, BondFlow, BondObservation, BondPort, Connection, LinkFailure
from nicbench.core.judging import Verdict
from nicbench.core.round import EndpointFacts, Job, JobSpec, Round, RoundRequest
from nicbench.measure.host_readings import COUNTERS_SCRIPT, parse_counters
from nicbench.measure.round_watches import FailureWatch, parse_looks, ports_of
from nicbench.stats.links import failure_note
from nicbench.testbed.labs.base import BondMember, Endpoint
from nicbench.tuning.undo.base import undo_one
from nicbench.tuning.undo.network import SetLinkUp

LINE = "ESTAB 0 0 198.18.0.1:5201 198.18.0.10:40000\n\t cubic rto:204 bytes_sent:{sent} bytes_received:{received}\n"


class _Quiet:
    async def begin(self) -> None:
        pass

    async def end(self) -> None:
        pass


class _Rack:
    """A server whose uptime goes on by a second with each look at it, and a switch at the other end of its links."""

    def __init__(self, after: float = 0.5, lasts: float = 0.5) -> None:
        self.server, self.switch, self.changes = FakeHost("server"), FakeHost("switch"), NotedChanges()
        self._uptime = 100.0
        for host in (self.server, self.switch):
            host.answer("cat /proc/uptime", self._tick)
        self.switch.answer(("sh", "-c"), self._tick)
        looks = [f"=== at {100 + tenth}.0\n{LINE.format(sent=4, received=tenth * 10**6)}" for tenth in range(12)]
        self.server.process(("sh", "-c"), FakeProcess("".join(looks).splitlines()))
        facts = EndpointFacts(name="s0", host="server", machine="server", address="198.18.0.1", device="s0")
        member = BondMember(device="s0p2", far_host=self.switch, far_device="p-s0p2")
        failure = LinkFailure(port="s0", link=2, after=after, lasts=lasts)
        self.watch = FailureWatch(
            _Quiet(), failure, Endpoint(self.server, facts, members=(member,)), member, self.changes
        )

    def _tick(self, command: tuple[str, ...]) -> str:
        self._uptime += 1.0
        return f"{self._uptime} 1.0\n"

    async def see(self, number: int) -> None:
        """Waits until a number of commands were given at the other end, and what follows from the last is noted."""
        async with asyncio.timeout(20.0):
            while len(self.switch.commands) < number:  # noqa: ASYNC110 - they are a plain list
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)

    @property
    def done(self) -> list[str]:
        """What was done to links, in a shell with the time or by itself."""
        return [
            f"{command[-1]} {command[-2]}" if command[0] == "sh" else f"{command[-2]} {command[-1]}"
            for command in self.switch.commands
            if "p-s0p2" in command
        ]


async def test_the_link_goes_down_at_the_other_end_and_comes_back() -> None:
    rack = _Rack()
    await rack.watch.begin()
    await rack.see(2)
    await rack.watch.end()
    assert rack.changes.undos == [SetLinkUp(device="p-s0p2")]
    assert rack.done == ["p-s0p2 down", "p-s0p2 up"]
    seen = rack.watch.outcome_of(())
    assert (seen.link, seen.taken_down, seen.down_at_s, seen.up_at_s) == ("s0p2", "p-s0p2 of switch", 1.0, 2.0)
    assert seen.step_s == 1.0


async def test_a_round_that_is_over_first_leaves_the_link_up() -> None:
    rack = _Rack(after=0.5, lasts=60.0)
    await rack.watch.begin()
    await rack.see(1)
    await rack.watch.end()
    assert rack.done == ["p-s0p2 down", "p-s0p2 up"]
    assert rack.watch.outcome_of(()).up_at_s is None


async def test_a_round_that_breaks_off_before_takes_nothing_down() -> None:
    rack = _Rack(after=60.0)
    await rack.watch.begin()
    await rack.watch.close()
    assert rack.done == []
    assert rack.watch.outcome_of(()).down_at_s is None


async def test_a_link_that_cannot_be_taken_down_is_told() -> None:
    rack = _Rack()
    rack.switch.fail(("sh", "-c"), "Operation not permitted")
    await rack.watch.begin()
    await rack.see(1)
    await rack.watch.end()
    assert "Operation not permitted" in str(rack.watch.outcome_of(()).trouble)


async def test_its_undo_brings_it_up() -> None:
    host = FakeHost("switch")
    host.answer("ip -j link show dev p-s0p2", '[{"ifname": "p-s0p2"}]')
    await undo_one(host, SetLinkUp(device="p-s0p2"))
    assert host.commands[-1] == ("ip", "link", "set", "dev", "p-s0p2", "up")


BOND = Bond(
    name="s0",
    mode="802.3ad",
    policy="layer3+4",
    ports=tuple(BondPort(name=f"s0p{number}", usable=True) for number in (1, 2)),
    kernel="6.1.0",
)
SENDS = Connection(
    source="198.18.0.1",
    source_port=5201,
    destination="198.18.0.10",
    destination_port=40000,
    sent_bytes=5 * 10**6,
    received_bytes=4,
)


async def test_what_each_connection_did_is_told_with_its_ports() -> None:
    rack = _Rack()
    await rack.watch.begin()
    await rack.see(2)
    await rack.watch.end()
    seen = BondObservation(endpoint="s0", bond=BOND, flows=(BondFlow(jobs=(1,), connection=SENDS, port="s0p2"),))
    failed = rack.watch.outcome_of((seen,))
    (flow,) = failed.flows
    assert flow.went_on
    assert (flow.port_before, flow.port_down) == ("s0p2", "s0p1")
    job = Job(workload="iperf3", client="c0", server="s0", ask=JobSpec(), port=5201)
    request = RoundRequest(jobs=(job,), duration_s=10.0, failure=failed.asked)
    one = Round(
        id="r0001",
        key="k",
        test="t",
        configuration="default",
        parameters={},
        repeat=0,
        request=request,
        outcomes=(),
        failure=failed,
        verdict=Verdict(),
    )
    assert failure_note(one) == (
        "link 2 of s0 (s0p2) was down on purpose from 1.0 s to 2.0 s, taken down at p-s0p2 of switch. c0 (by s0p2, "
        "then predicted s0p1) was silent for at most 1 s, and at most 1 s when the link was back (looks "
        "were at most 1 s apart)"
    )
    assert Round.model_validate_json(one.model_dump_json()) == one


def test_a_connection_that_is_not_known_to_any_bond_has_no_port() -> None:
    assert ports_of(SENDS, (), frozenset({"s0p2"})) == {}


@pytest.mark.parametrize("text", ["", "=== at 5.0\n", "=== at nonsense\n=== at 6.0\n"])
def test_a_look_that_is_cut_off_is_left_out(text: str) -> None:
    assert parse_looks(text) == []


def test_carriers_of_a_bond_are_counted_by_interface() -> None:
    text = (
        "/sys/class/net/s0/carrier_changes:3\n/sys/class/net/s0/lower_s0p1/carrier_changes:2\n"
        "/sys/class/net/v0/lower_bond0/lower_e1/carrier_changes:4\n/sys/class/net/s0/statistics/tx_bytes:9\n"
    )
    assert parse_counters(text) == {
        "carrier_changes of s0": 3,
        "carrier_changes of s0p1": 2,
        "carrier_changes of e1": 4,
        "tx_bytes": 9,
    }
    assert "lower_*/carrier_changes" in COUNTERS_SCRIPT
