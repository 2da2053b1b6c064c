"""A search's trials: what each may decide, what was queued in it, and what is left of them where the run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.reading import Arrivals, Counts
from nicbench.core.result import Bounded, ResultVerdict
from nicbench.core.trial import Latency, Reading, StreamReading, Trial, TrialRequest
from nicbench.measure.frame_context import queued_s, sample_of

from .fake_tester import FakeTester
from .rig import Rig, with_counts

MakeTrial = Callable[..., Trial]
MakeReading = Callable[..., Reading]
DUT = 4e6


def found(reason: Reason) -> Verdict:
    return Verdict(findings=(Finding(reason=reason, threshold="x", value=2.0, limit=1.0, text="x"),))


TELLS = {
    Reason.DUT_DISTURBED: (True, True, True),
    Reason.DISTURBED: (True, True, False),
    Reason.UNSENT: (True, True, False),
    Reason.RECEIVE_OVERRUN: (True, False, False),
    Reason.TRANSMIT_REFUSED: (True, False, False),
    Reason.HARDWARE: (True, False, False),
    Reason.UNLEARNT: (True, False, False),
}
"""Whether a trial may pass, may fail, and was even."""


@pytest.mark.parametrize("reason", Reason)
def test_what_was_found_tells_what_a_trial_may_decide(trial: MakeTrial, reason: Reason) -> None:
    sample = sample_of(trial(0).replace(verdict=found(reason)))
    assert (sample.may_pass, sample.may_fail, sample.is_even) == TELLS.get(reason, (False, False, False))
    assert sample.core_shared == (reason is Reason.DUT_DISTURBED)


def test_a_trial_without_findings_may_decide_everything(trial: MakeTrial) -> None:
    sample = sample_of(trial(0))
    assert sample.is_valid
    assert not sample.core_shared
    assert (sample.load_frames_per_s, sample.duration_s, sample.trial_ids) == (1e6, 1.0, ("t0",))


def test_the_pauses_of_the_tester_are_shares_of_the_transmission(trial: MakeTrial) -> None:
    sample = sample_of(trial(0, longest_gap_ns=30_000_000, total_gap_ns=80_000_000))
    assert (sample.longest_pause_share, sample.held_up_share) == pytest.approx((0.03, 0.08))


TRANSMISSION_NS, LEAST_NS = 1_000_000_000, 50_000


def stream(tail_ns: int, mean_ns: float, **changes: Any) -> StreamReading:
    """A stream whose last frame came so long after the transmission, beside the least latency."""
    latency = Latency(source="software", count=9, minimum_ns=LEAST_NS, mean_ns=LEAST_NS + mean_ns, maximum_ns=10**9)
    parts: dict[str, Any] = {
        "name": "0->1",
        "counts": Counts(intended=9, sent=9, received=9, lost=0),
        "latency": latency,
        "arrivals": Arrivals(first_ns=LEAST_NS, last_ns=TRANSMISSION_NS + LEAST_NS + tail_ns),
    }
    return StreamReading(**parts | changes)


SILENT: dict[str, Any] = {
    "counts": Counts(intended=9, sent=9, received=0, lost=9), "arrivals": None, "latency": None
}  # fmt: skip


@pytest.mark.parametrize(
    ("streams", "queued"),
    [
        ([stream(90_000_000, 45_000_000.0)], 0.09),
        ([stream(90_000_000, 1000.0)], 2e-6),
        ([stream(0, 45_000_000.0)], 0.0),
        ([stream(-3000, 0.0)], 0.0),
        ([stream(10_000_000, 20_000_000.0), stream(60_000_000, 50_000_000.0)], 0.06),
        ([stream(90_000_000, 45_000_000.0), stream(0, 0.0, **SILENT)], 0.09),
        ([stream(90_000_000, 45_000_000.0), stream(0, 0.0, arrivals=None)], None),
        ([stream(90_000_000, 45_000_000.0, latency=None)], None),
        ([stream(0, 0.0, **SILENT)], None),
        ([], None),
    ],
    ids=[
        "a growing queue",
        "a pause of the DUT at the end",
        "a pause in the middle",
        "less than the least",
        "the longest of several streams",
        "a stream of which nothing came back",
        "a stream without arrivals",
        "a stream without latency",
        "nothing came back",
        "no streams",
    ],
)
def test_what_was_queued_is_the_tail_that_the_mean_latency_confirms(
    reading: MakeReading, streams: list[StreamReading], queued: float | None
) -> None:
    told = queued_s(reading().replace(streams=tuple(streams)))
    assert told == (None if queued is None else pytest.approx(queued, abs=1e-9))


class Interrupted(FakeTester):
    """Whoever runs it is interrupted while a trial is under way, after so many."""

    after = 3

    async def trial(self, number: int, request: TrialRequest, *rest: Any) -> Reading:
        if len(self.requests) == self.after:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return await super().trial(number, request, *rest)


async def test_an_interrupted_search_publishes_what_its_trials_showed_and_then_ends() -> None:
    rig = Rig(Interrupted(DUT))
    with pytest.raises(asyncio.CancelledError):
        await rig.throughput()
    (result,) = rig.results
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert result.trials == tuple(trial.id for trial in rig.trials)
    assert len(result.trials) == Interrupted.after
    rate = result.values["ndr_frames_per_s"]
    assert isinstance(rate, Bounded)
    assert rate.upper == pytest.approx(DUT, rel=0.02)
    assert any("the run was interrupted after 3 trials" in text for text in result.disturbances)


async def test_a_search_that_is_interrupted_before_its_first_trial_ended_publishes_nothing() -> None:
    tester = Interrupted(DUT)
    tester.after = 0
    rig = Rig(tester)
    with pytest.raises(asyncio.CancelledError):
        await rig.throughput()
    assert rig.results == []


class Late(FakeTester):
    """Frames of its second trial come after the drain."""

    async def trial(self, number: int, request: TrialRequest, *rest: Any) -> Reading:
        reading = await super().trial(number, request, *rest)
        if len(self.requests) != 2:
            return reading
        counts = reading.counts
        return with_counts(reading, counts.replace(received=counts.received - 5, late=5))


async def test_a_trial_whose_frames_came_late_is_made_again_and_one_that_fell_short_is_not() -> None:
    rig = Rig(Late(DUT, ceiling_frames_per_s=5e6))
    result = await rig.throughput()
    assert [trial.repeat for trial in rig.trials][:4] == [0, 0, 1, 0]
    first, late = rig.trials[:2]
    assert first.reading.counts.unsent_tester
    assert late.id not in result.trials
    assert result.verdict is ResultVerdict.VALID


async def test_a_resumed_search_makes_the_trials_that_are_missing_and_gives_the_same_result() -> None:
    whole = Rig(FakeTester(DUT))
    expected = await whole.throughput()
    kept = {trial.key: trial for trial in whole.trials[:3]}
    resumed = Rig(FakeTester(DUT), kept)
    result = await resumed.throughput()
    assert len(resumed.trials) == len(whole.trials) - 3
    assert (result.trials, result.values["ndr_frames_per_s"]) == (expected.trials, expected.values["ndr_frames_per_s"])
