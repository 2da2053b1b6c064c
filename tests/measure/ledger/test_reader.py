"""Every host is asked once, in one command; what a host lacks or garbles is named and ends nothing."""

from __future__ import annotations

from tests.fakes import FakeHost

from nicbench.core.errors import HostError
from nicbench.hosts.base import Completed
from nicbench.measure.ledger.base import Side, View
from nicbench.measure.ledger.reader import LedgerReader

LINK = '[{"ifname": "d0", "stats64": {"rx": {"dropped": 4}, "tx": {"dropped": 0}}}]'


class Machine(FakeHost):
    """Prints ``printed`` for each section that it is asked for, and keeps which these were."""

    def __init__(self, name: str, **printed: str) -> None:
        super().__init__(name)
        self.asked: list[str] = []
        self.printed = printed
        self.answer("sh -c", self._print)

    def _print(self, command: tuple[str, ...]) -> Completed:
        self.asked = [part.split("'")[0] for part in command[2].split("=== nicbench section ")[1:]]
        text = "".join(f"=== nicbench section {kind}\n{self.printed.get(kind, '')}\n" for kind in self.asked)
        return Completed(command, 0, text, "")


def reader(*hosts: tuple[FakeHost, Side]) -> LedgerReader:
    return LedgerReader(tuple((host, View(side, ("d0",))) for host, side in hosts))


async def test_both_sides_are_asked_each_with_one_command() -> None:
    tester, dut = Machine("one"), Machine("other", links=LINK)
    seen = await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert [(count.key, count.frames) for count in seen.counts if count.frames] == [("DUT: d0 rx_dropped", 4)]
    assert (len(tester.commands), len(dut.commands), seen.faults) == (1, 1, ())


async def test_what_frames_pass_on_the_dut_alone_is_not_read_beside_the_testers_sockets() -> None:
    tester, dut = Machine("one"), Machine("other")
    await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert set(dut.asked) - set(tester.asked) == {"conntrack", "ip", "nftables"}


async def test_of_two_sides_on_one_machine_one_is_asked_for_what_the_machine_counts() -> None:
    tester, dut = Machine("same"), Machine("same")
    await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert "softnet" in dut.asked
    assert "softnet" not in tester.asked


async def test_what_is_not_understood_is_a_fault_and_the_rest_is_read() -> None:
    dut = Machine("dut", links=LINK, qdisc='[{"kind": "tbf", "dev":')
    seen = await reader((dut, Side.DUT)).read()
    assert len(seen.counts) > 0
    assert len(seen.faults) == 1
    assert seen.faults[0].startswith("qdisc on dut was not understood: JSONDecodeError")


async def test_a_host_that_does_not_answer_is_a_fault() -> None:
    gone = FakeHost("gone")

    def dead(_command: tuple[str, ...]) -> Completed:
        raise HostError("no route to host", place="gone")

    gone.answer("sh -c", dead)
    assert (await reader((gone, Side.DUT)).read()).faults == (
        "the counters of gone could not be read: no route to host",
    )
