"""What is done to the DUT in the midst of a trial is taken back, also where the trial fails."""

from __future__ import annotations

import asyncio

import pytest
from tests.fakes import FakeHost, NotedChanges

from nicbench.core.errors import HostError
from nicbench.core.trial import Interruption
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import Interrupter
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.tuning.undo.network import SetLinkUp

from .fake_tester import FakeTester

LINK = Interruption(command=(), on="dut", after_s=0.0, timeout_s=1.0, link="d1", lasts_s=0.0)
ROUTE = LINK.replace(command=("route", "away"), restore=("route", "back"), link=None)
DOWN, UP = (("ip", "link", "set", "dev", "eth7", state) for state in ("down", "up"))


def setup(host: FakeHost, changes: NotedChanges | None = None) -> TrialSetup:
    dut = Simulated(SimulatedOptions())
    return TrialSetup(FakeTester(1e9), dut, hosts={"dut": host}, dut_links={"d1": "eth7"}, changes=changes)


async def test_a_link_goes_down_behind_its_undo_and_comes_up_again() -> None:
    host, changes = FakeHost(), NotedChanges()
    interrupter = Interrupter(setup(host, changes), LINK)
    await interrupter.interrupt()
    assert host.commands == [DOWN, UP]
    assert changes.undos == [SetLinkUp(device="eth7")]
    times = interrupter.times
    assert times is not None
    assert times.restored_s is not None


async def test_a_command_is_taken_back_by_another_and_a_reset_by_none() -> None:
    host = FakeHost()
    await Interrupter(setup(host), ROUTE).interrupt()
    await Interrupter(setup(host), ROUTE.replace(lasts_s=None, restore=())).interrupt()
    assert host.commands == [("route", "away"), ("route", "back"), ("route", "away")]


@pytest.mark.parametrize(("asked", "last"), [(LINK, UP), (ROUTE, ("route", "back"))])
async def test_what_was_done_is_taken_back_where_the_trial_is_cancelled(
    asked: Interruption, last: tuple[str, ...]
) -> None:
    host = FakeHost()
    task = asyncio.create_task(Interrupter(setup(host), asked.replace(lasts_s=60.0)).interrupt())
    for _ in range(8):  # until it waits for the event's end
        await asyncio.sleep(0)
    assert len(host.commands) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert host.commands[-1] == last


async def test_an_event_that_fails_is_an_error() -> None:
    host = FakeHost()
    host.fail(("route", "away"), "no such route")
    interrupter = Interrupter(setup(host), ROUTE)
    with pytest.raises(HostError, match="no such route"):
        await interrupter.interrupt()
    assert interrupter.times is None
    assert host.commands[-1] == ("route", "back")  # a command that failed may have done a part
