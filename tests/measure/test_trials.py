"""Trials are made once: a journaled one is replayed, and never for another wish than its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import EngineError, HostError, NicbenchError
from nicbench.core.events import Bus, Note, TrialFinished
from nicbench.core.judging import Reason, Thresholds
from nicbench.core.machine import DutWork
from nicbench.core.pattern import Way
from nicbench.core.trial import Interruption, Purpose, Reading, Trial, TrialRequest
from nicbench.measure.frame_context import TrialRepeats
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.testers.base import During

from .fake_tester import FakeTester
from .rig import with_counts

REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=1000.0, duration_s=1.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.SEARCH
)


def maker(tester: FakeTester, journaled: dict[str, Trial], published: list[object]) -> TrialMaker:
    bus = Bus()
    bus.subscribe(published.append)
    setup = TrialSetup(tester, Simulated(SimulatedOptions()))
    return TrialMaker(setup, Thresholds(), SampleLog(journaled, bus))


class Counting(Simulated):
    """A DUT that dies on demand, and keeps an account that grows by the same in each trial."""

    def __init__(self, died: str | None = None) -> None:
        super().__init__(SimulatedOptions())
        self.died = died
        self.asked = 0
        self.waits_ns = 0
        self.waited_ns = 0

    async def failure(self) -> str | None:
        return self.died

    async def waiting_ns(self) -> int:
        self.waited_ns += self.waits_ns
        return self.waited_ns

    async def overruns(self) -> dict[int, int]:
        self.asked += 1
        return {0: 7 * self.asked}

    async def work(self) -> DutWork:
        return DutWork(
            source="its own",
            packets=1000 * self.asked,
            tsc_cycles=50_000 * self.asked,
            tsc_hz=2e9,
            core_clock_hz=(3e9,),
        )


class Crashing(FakeTester):
    """Its driver goes down in the trial."""

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        raise EngineError("the engine was killed by signal 11")


def maker_of(dut: Simulated, tester: FakeTester, published: list[object] | None = None) -> TrialMaker:
    bus = Bus()
    bus.subscribe([].append if published is None else published.append)
    return TrialMaker(TrialSetup(tester, dut), Thresholds(), SampleLog({}, bus))


AVERAGE = REQUEST.replace(purpose=Purpose.AVERAGE)


RESET = REQUEST.replace(interruption=Interruption(command=("reset", "it"), on="dut", after_s=0.0, timeout_s=1.0))


async def test_the_dut_is_reset_on_its_host_while_frames_are_sent() -> None:
    bus, host = Bus(), FakeHost("d")
    setup = TrialSetup(FakeTester(1e6), Simulated(SimulatedOptions()), hosts={"dut": host})
    made = TrialMaker(setup, Thresholds(), SampleLog({}, bus))
    trial = await made.make("reset/0/0", "reset", {}, RESET, 0)
    assert host.commands == [("reset", "it")]
    again = TrialMaker(setup, Thresholds(), SampleLog({trial.key: trial}, bus))
    assert await again.make("reset/0/0", "reset", {}, RESET, 0) == trial
    assert len(host.commands) == 1  # a resumed run does not reset the DUT for a trial that it has


async def test_a_journaled_trial_is_given_back_and_not_sent_again() -> None:
    tester, published = FakeTester(capacity_frames_per_s=900.0), list[object]()
    first = await maker(tester, {}, published).make("t/0/0", "t", {}, REQUEST, 0)
    assert first.reading.counts.lost == 100
    again = await maker(tester, {"t/0/0": first}, published).make("t/0/0", "t", {}, REQUEST, 0)
    assert again == first
    assert len(tester.requests) == 1
    assert sum(isinstance(event, TrialFinished) for event in published) == 1


async def test_a_journal_that_asked_for_something_else_is_refused() -> None:
    tester, published = FakeTester(capacity_frames_per_s=900.0), list[object]()
    first = await maker(tester, {}, published).make("t/0/0", "t", {}, REQUEST, 0)
    other = REQUEST.replace(load_frames_per_s=2000.0)
    with pytest.raises(NicbenchError, match="start a new run"):
        await maker(tester, {"t/0/0": first}, published).make("t/0/0", "t", {}, other, 0)


@dataclass
class Silent(FakeTester):
    """Its learning frames come back the given number of times too late; ``longest_bytes`` is what the DUT takes."""

    too_late: float = math.inf
    longest_bytes: int = 9000

    async def learn(self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...]) -> frozenset[Way]:
        if request.frame_bytes > self.longest_bytes:
            return frozenset({(0, 1)})
        self.too_late -= 1
        return frozenset({(0, 1), (1, 0)}) if self.too_late >= 0 else frozenset()


class Mending(Simulated):
    mended = 0

    async def mend(self) -> None:
        self.mended += 1


async def make_silent(tester: Silent, request: TrialRequest = REQUEST) -> tuple[list[str], int]:
    """The warnings of a trial, and how often the DUT was mended."""
    bus, notes, dut = Bus(), list[object](), Mending(SimulatedOptions())
    bus.subscribe(notes.append)
    way = Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, "198.18.0.1", "198.19.0.1")
    setup = TrialSetup(tester, dut, (way,), port_names=("t0", "t1"))
    await TrialMaker(setup, Thresholds(), SampleLog({}, bus)).make("t/0/0", "t", {}, request, 0)
    return [note.text for note in notes if isinstance(note, Note)], dut.mended


async def test_where_nothing_comes_back_there_is_no_trial_but_an_error_that_names_the_way() -> None:
    tester = Silent(1e9)
    with pytest.raises(HostError, match="nothing comes back from port t0 to t1") as caught:
        await make_silent(tester)
    assert caught.value.exit_status == 4
    assert not tester.requests


async def test_what_a_link_made_the_dut_forget_is_set_again_and_the_trial_is_made() -> None:
    notes, mended = await make_silent(Silent(1e9, too_late=2))
    assert notes == ["t, before trial t0001: no learning frame came back at first"]
    assert mended


async def test_frames_that_are_too_long_for_the_dut_are_no_cable_that_was_pulled() -> None:
    long = REQUEST.replace(frame_bytes=4000)
    notes, mended = await make_silent(Silent(1e9, too_late=0, longest_bytes=1518), long)
    assert notes == ["t: no learning frame of 4000 bytes comes back; those of 64 bytes do"]
    assert not mended


@dataclass
class Breaking(Silent):
    """Learning frames come back before the trial, and behind it as often too late as ``too_late_after`` says."""

    too_late: float = 0
    too_late_after: float = math.inf

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        self.too_late = self.too_late_after
        return await super().trial(number, request, addressing, during)


async def judge_breaking(tester: Breaking, request: TrialRequest = REQUEST) -> Trial:
    way = Addressing(0, 1, "02:00:00:00:00:01", "02:00:00:00:00:02", 4, "198.18.0.1", "198.19.0.1")
    setup = TrialSetup(tester, Mending(SimulatedOptions()), (way,), port_names=("t0", "t1"))
    return await TrialMaker(setup, Thresholds(), SampleLog({}, Bus())).make("t/0/0", "t", {}, request, 0)


async def test_a_path_that_broke_in_a_trial_makes_it_no_figure_and_names_the_way() -> None:
    trial = await judge_breaking(Breaking(900.0))
    assert trial.verdict.reasons == (Reason.PEER_FAILED,)
    told = "a peer failed: nothing came back any more from port t0 to t1, also after the trial"
    assert [finding.text for finding in trial.verdict.findings] == [told]
    assert TrialRepeats().useless(trial) == told


async def test_a_dut_that_was_overloaded_and_forwards_again_is_charged_with_its_loss() -> None:
    assert (await judge_breaking(Breaking(900.0, too_late_after=0))).verdict.valid
    assert (await judge_breaking(Breaking(900.0, too_late_after=1))).verdict.valid  # after a moment


async def test_where_nothing_was_lost_or_no_dut_was_there_nothing_is_asked() -> None:
    assert (await judge_breaking(Breaking(1e9))).verdict.valid
    flood = REQUEST.replace(purpose=Purpose.CEILING)
    assert (await judge_breaking(Breaking(900.0), flood)).verdict.valid


class Slow(FakeTester):
    """Frames come back 0.7 s after they were sent."""

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        reading = await super().trial(number, request, addressing, during)
        late = 0 if request.drain_s > 0.7 else 90
        counts = reading.counts
        return with_counts(reading, counts.replace(late=late, received=counts.received - late))


async def test_a_drain_that_frames_outlast_makes_the_trial_invalid_and_the_next_drain_longer() -> None:
    tester = Slow(1e9)
    made = maker(tester, {}, [])
    trials = [await made.make(f"t/0/{repeat}", "t", {}, REQUEST, repeat) for repeat in range(3)]
    assert [trial.verdict.reasons for trial in trials] == [(Reason.LATE,), (Reason.LATE,), ()]
    assert [request.drain_s for request in tester.requests] == [0.1, 0.5, 1.2]
    assert [trial.reading.drain_s for trial in trials] == [None, 0.5, 1.2]
    assert TrialRepeats().useless(trials[0])
    resumed = maker(tester, {trial.key: trial for trial in trials[:2]}, [])
    assert (await resumed.make("t/0/2", "t", {}, REQUEST, 2)).verdict.valid


async def test_a_held_up_tester_makes_the_trial_invalid_whatever_was_lost() -> None:
    tester = FakeTester(capacity_frames_per_s=1e9, gaps_ms=[50.0])
    trial = await maker(tester, {}, []).make("t/0/0", "t", {}, REQUEST, 0)
    assert not trial.verdict.valid
    assert trial.reading.counts.lost == 0


async def test_a_dut_that_died_spoils_its_trial_which_is_kept_and_ends_the_run() -> None:
    published = []
    making = maker_of(Counting("testpmd was killed by signal 9"), FakeTester(capacity_frames_per_s=1e9), published)
    with pytest.raises(HostError, match="the DUT testpmd was killed by signal 9") as ended:
        await making.make("t/0/0", "t", {}, REQUEST, 0)
    assert "nicbench resume" in str(ended.value.next_step)
    (finished,) = [event for event in published if isinstance(event, TrialFinished)]
    assert finished.trial.verdict.reasons == (Reason.PEER_FAILED,)
    assert "killed by signal 9" in finished.trial.verdict.findings[0].text


async def test_a_tester_that_goes_down_with_the_dut_is_not_blamed_alone() -> None:
    with pytest.raises(HostError, match="the DUT testpmd exited; and the engine was killed by signal 11: one of them"):
        await maker_of(Counting("testpmd exited"), Crashing(1e9)).make("t/0/0", "t", {}, REQUEST, 0)
    with pytest.raises(EngineError, match="signal 11"):
        await maker_of(Counting(), Crashing(1e9)).make("t/0/0", "t", {}, REQUEST, 0)


async def test_frames_that_the_testers_full_ring_refused_are_its_own_loss() -> None:
    trial = await maker_of(Counting(), FakeTester(capacity_frames_per_s=1e9)).make("t/0/0", "t", {}, REQUEST, 0)
    assert trial.reading.ports[0].receive_overrun == 7
    assert trial.verdict.reasons == (Reason.RECEIVE_OVERRUN,)


async def test_the_duts_account_is_that_of_the_trial_alone_and_only_where_it_is_wanted() -> None:
    making = maker_of(Counting(), FakeTester(capacity_frames_per_s=1e9))
    assert (await making.make("t/0/0", "t", {}, REQUEST, 0)).reading.dut_work is None
    work = (await making.make("t/1/0", "t", {}, AVERAGE, 0)).reading.dut_work
    assert (work.packets, work.tsc_cycles_per_packet, work.core_cycles_per_packet) == (1000, 50.0, 75.0)


async def test_a_dut_that_waited_for_its_core_all_the_time_spoils_its_trial() -> None:
    dut = Counting()
    dut.waits_ns = 10**12  # more than any trial lasts
    trial = await maker_of(dut, FakeTester(capacity_frames_per_s=1e9)).make("t/0/0", "t", {}, REQUEST, 0)
    assert Reason.DUT_DISTURBED in trial.verdict.reasons
