"""Rounds behind a method: journaled ones are replayed, invalid ones repeated, hopeless ones not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from tests.fakes import FakeHost, FakeMonitors, FakePlayer

from nicbench.core.errors import HostError
from nicbench.core.events import Bus, Event, RoundBegun, RoundFinished
from nicbench.core.judging import Finding, Reason, Thresholds, Verdict
from nicbench.core.round import EndpointFacts, Figures, Job, JobOutcome, JobSpec, Round, RoundRequest
from nicbench.measure.rounds import LiveRoundContext, RoundMaker, RoundRepeats
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.measure.witnesses import Interface
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.workloads.base import Watch

DONE = JobOutcome(figures=Figures(), began_s=0.0)
MISSING = JobOutcome(failure="iperf3 is not installed", repeatable=False)
DIED = JobOutcome(failure="killed by signal 9")
ASK = JobSpec(duration_s=1.0)


def request(jobs: int = 2, duration_s: float = 1.0) -> RoundRequest:
    every = tuple(
        Job(workload="iperf3", client=f"c{number}", server="s0", ask=ASK, port=5201 + 16 * number)
        for number in range(jobs)
    )
    return RoundRequest(jobs=every, duration_s=duration_s)


class Bench:
    """A context over a player whose outcomes are a function of the round's number and the job."""

    def __init__(
        self,
        outcome: Callable[[int, Job], JobOutcome],
        journaled: Mapping[str, Round] | None = None,
        budget_s: float = 1e6,
    ) -> None:
        self.player, self.monitors, self.events, bus = FakePlayer(outcome), FakeMonitors(), list[Event](), Bus()
        bus.subscribe(self.events.append)
        ends = [
            Endpoint(FakeHost(name), EndpointFacts(name=name, host=name, machine=name, address="198.18.0.1", port=port))
            for name, port in (("s0", None), ("c0", "s0"))
        ]
        testbed = EndpointTestbed(servers=(ends[0],), clients=(ends[1],), link_is_nominal=False)
        self.link_changes_in: set[int] = set()
        self.interface_is_there: Callable[[], bool] = lambda: True
        self.player.counters = self._counters  # type: ignore[method-assign]
        log = SampleLog(journaled or {}, bus)
        maker = RoundMaker(self.player, self.monitors, Thresholds(), log, interfaces={"c0": Interface("c0", "c0")})
        self.context = LiveRoundContext(TestSetting("tcp", 1, budget_s), maker, testbed)

    async def _counters(self) -> dict[str, dict[str, int]]:
        changes = sum(number in self.link_changes_in for number in range(1, 1 + len(self.player.heard)))
        found = {"carrier_changes of c0": changes, "tx_bytes": 0, "rx_bytes": 0}
        return {"c0": found if self.interface_is_there() else {}}

    @property
    def rounds(self) -> list[Round]:
        """Those that were published."""
        return [event.round for event in self.events if isinstance(event, RoundFinished)]


async def test_a_round_is_watched_judged_and_published() -> None:
    bench = Bench(lambda number, job: DONE)
    one, marked = await bench.context.play({"mode": "TCP"}, request())
    assert (one.id, one.key, one.verdict.valid, marked) == ("r0001", "tcp/0/0", True, False)
    assert bench.monitors.heard == ["round 1", "end"]
    assert [type(event) for event in bench.events] == [RoundBegun, RoundFinished]


async def test_a_tool_that_died_is_given_another_chance() -> None:
    bench = Bench(lambda number, job: DIED if number == 1 and job.client == "c0" else DONE)
    one, marked = await bench.context.play({}, request())
    assert (one.id, one.repeat, one.verdict.valid, marked) == ("r0002", 1, True, False)


async def test_what_keeps_failing_is_used_with_the_fewest_failures_and_marked() -> None:
    bench = Bench(lambda number, job: DIED if number != 2 or job.client == "c0" else DONE)
    one, marked = await bench.context.play({}, request())
    assert (len(bench.rounds), one.id, marked) == (3, "r0002", True)


async def test_a_missing_tool_is_not_asked_for_twice() -> None:
    bench = Bench(lambda number, job: MISSING if job.client == "c1" else DONE)
    one, marked = await bench.context.play({}, request())
    assert (len(bench.rounds), marked) == (1, True)
    assert [outcome.failure is None for outcome in one.outcomes] == [True, False]


async def test_a_peer_that_failed_once_costs_no_round_of_a_test_too_short_for_repeats() -> None:
    bench = Bench(lambda number, job: DIED if number == 1 and job.client == "c0" else DONE, budget_s=1.0)
    one, marked = await bench.context.play({}, request())
    assert (one.id, one.verdict.valid, marked) == ("r0002", True, False)


async def test_a_peer_that_stays_dead_is_given_one_more_round_in_a_test_and_not_one_a_point() -> None:
    bench = Bench(lambda number, job: DIED, budget_s=1.0)
    for point in range(5):
        await bench.context.play({"point": point}, request())
    assert len(bench.rounds) == 6


@pytest.mark.parametrize("budget_s", [1e6, 1.0])
async def test_a_round_in_which_a_link_changed_is_no_figure_and_is_repeated_whatever_that_costs(
    budget_s: float,
) -> None:
    bench = Bench(lambda number, job: DONE, budget_s=budget_s)
    bench.link_changes_in = {1, 2}
    one, marked = await bench.context.play({}, request())
    assert (one.id, one.verdict.valid, marked) == ("r0003", True, False)


async def test_a_round_whose_interface_is_gone_behind_it_is_not_valid() -> None:
    bench = Bench(lambda number, job: DONE, budget_s=1.0)
    bench.interface_is_there = lambda: not bench.player.heard
    one, marked = await bench.context.play({}, request())
    assert marked
    assert "c0 (c0) can no longer be read: the interface is gone, or its host does not answer" in [
        finding.text for finding in one.verdict.findings
    ]


async def test_a_round_that_never_came_to_its_clients_ends_no_watch() -> None:
    bench = Bench(lambda number, job: DONE)

    async def gone(number: int, asked: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        raise HostError("the connection was lost", place="c0")

    bench.player.play = gone  # type: ignore[method-assign]
    with pytest.raises(HostError):
        await bench.context.play({}, request())
    assert bench.monitors.heard == []
    assert not bench.rounds


async def test_a_round_whose_files_cannot_be_kept_is_not_journaled_and_is_played_again() -> None:
    bench = Bench(lambda number, job: DONE)

    async def full(one: Round) -> None:
        raise HostError("the disk is full; what was measured so far is kept", place="frames/r0001.parquet")

    bench.player.keep = full  # type: ignore[method-assign]
    with pytest.raises(HostError, match="the disk is full"):
        await bench.context.play({}, request())
    assert not bench.rounds
    resumed = Bench(lambda number, job: DONE)
    one, _ = await resumed.context.play({}, request())
    assert (one.id, resumed.rounds) == ("r0001", [one])


async def test_a_round_in_which_a_server_of_the_dut_ended_is_repeated_though_every_tool_gave_figures() -> None:
    bench = Bench(lambda number, job: DONE)
    bench.player.broken = lambda number: "the NFS server has ended" if number == 1 else None
    one, marked = await bench.context.play({}, request())
    assert (one.id, marked) == ("r0002", False)
    assert [finding.text for finding in bench.rounds[0].verdict.findings] == [
        "in the midst of the round the NFS server has ended"
    ]


def test_of_rounds_in_which_as_many_jobs_failed_the_least_disturbed_one_is_used() -> None:
    def disturbed(share: float) -> Round:
        verdict = Verdict(
            findings=(Finding(reason=Reason.DISTURBED, threshold="x", value=share, limit=0.05, text="busy"),)
        )
        asked = RoundRequest(jobs=(), duration_s=1.0)
        return Round(id="r0001", key="", test="t", configuration="", parameters={}, repeat=0, request=asked,
                     outcomes=(), verdict=verdict)  # fmt: skip

    found = min((disturbed(0.48), disturbed(0.06), disturbed(0.3)), key=RoundRepeats().disturbance)
    assert found.verdict.findings[0].value == 0.06
