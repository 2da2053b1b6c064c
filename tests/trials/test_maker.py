"""Trials are made once: a journaled one is replayed, and never for another wish than its own."""

from __future__ import annotations

import pytest

from nicbench.duts.simulated import Simulated, SimulatedOptions
from nicbench.engine.fake import FakeTester
from nicbench.errors import NicbenchError
from nicbench.events import Bus, TrialFinished
from nicbench.judge.thresholds import Thresholds
from nicbench.model.trial import Purpose, Trial, TrialRequest
from nicbench.trials.maker import TrialMaker

REQUEST = TrialRequest(
    frame_bytes=64, load_frames_per_s=1000.0, duration_s=1.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.SEARCH
)


def maker(tester: FakeTester, journaled: dict[str, Trial], published: list[object]) -> TrialMaker:
    bus = Bus()
    bus.subscribe(published.append)
    return TrialMaker(tester, Simulated(SimulatedOptions()), (), Thresholds(), (), journaled, bus)


async def test_a_journaled_trial_is_given_back_and_not_sent_again() -> None:
    tester, published = FakeTester(capacity_frames_per_s=900.0), list[object]()
    first = await maker(tester, {}, published).make("t/0/0", "t", {}, REQUEST, 0)
    assert first.reading.counts.lost == 100
    again = await maker(tester, {"t/0/0": first}, published).make("t/0/0", "t", {}, REQUEST, 0)
    assert again == first
    assert len(tester.requests) == 1
    assert sum(isinstance(event, TrialFinished) for event in published) == 1


async def test_a_trial_after_replayed_ones_goes_on_with_their_numbers() -> None:
    tester, published = FakeTester(capacity_frames_per_s=900.0), list[object]()
    first = await maker(tester, {}, published).make("t/0/0", "t", {}, REQUEST, 0)
    resumed = maker(tester, {"t/0/0": first}, published)
    await resumed.make("t/0/0", "t", {}, REQUEST, 0)
    assert (await resumed.make("t/1/0", "t", {}, REQUEST, 0)).id == "t0002"


async def test_a_journal_that_asked_for_something_else_is_refused() -> None:
    tester, published = FakeTester(capacity_frames_per_s=900.0), list[object]()
    first = await maker(tester, {}, published).make("t/0/0", "t", {}, REQUEST, 0)
    other = REQUEST.model_copy(update={"load_frames_per_s": 2000.0})
    with pytest.raises(NicbenchError, match="start a new run"):
        await maker(tester, {"t/0/0": first}, published).make("t/0/0", "t", {}, other, 0)


async def test_a_held_up_tester_makes_the_trial_invalid_whatever_was_lost() -> None:
    tester = FakeTester(capacity_frames_per_s=1e9, gaps_ms=[50.0])
    trial = await maker(tester, {}, []).make("t/0/0", "t", {}, REQUEST, 0)
    assert not trial.verdict.valid
    assert trial.reading.counts.lost == 0
