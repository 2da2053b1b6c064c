"""A synchronous search asks for asynchronous trials, and ends with its run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from nicbench.core.headers import Groups
from nicbench.core.judging import Finding, Reason, Thresholds, Verdict
from nicbench.core.reading import Arrivals, Counts
from nicbench.core.registry import find
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Latency, Reading, StreamReading, Trial, TrialRequest
from nicbench.measure.frame_context import queued_s, run_search, sample_of
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.methods.loss import FrameLoss
from nicbench.search.base import NDR, Limits, Sample, Search

from .fake_tester import FakeTester
from .rig import TIMES, Rig, with_counts

LIMITS = Limits(
    minimum_load_frames_per_s=1000.0,
    maximum_load_frames_per_s=1_000_000.0,
    maximum_limited_by=LimitedBy.LINE_RATE,
    precision=0.01,
    trial_duration_s=1.0,
    maximum_trials=60,
)


def sample(load: float, capacity: float) -> Sample:
    intended = int(load)
    received = min(intended, int(capacity))
    counts = Counts(intended=intended, sent=intended, received=received, lost=intended - received)
    return Sample(load_frames_per_s=load, duration_s=1.0, counts=counts)


def guided() -> Search:
    return find("nicbench.search", Search)["guided"]()


async def test_a_failing_trial_fails_the_search() -> None:
    async def measure(load: float, duration: float) -> Sample:
        raise OSError("the peer is gone")

    with pytest.raises(OSError, match="the peer is gone"):
        await run_search(guided(), measure, [NDR], LIMITS)


async def test_cancelling_the_run_cancels_the_trial_under_way_and_ends_the_search() -> None:
    under_way = asyncio.Event()
    cancelled = asyncio.Event()

    async def measure(load: float, duration: float) -> Sample:
        under_way.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError("unreachable")

    search = asyncio.create_task(run_search(guided(), measure, [NDR], LIMITS))
    await under_way.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert cancelled.is_set()


# A search's trials: what each may decide, what was queued in it, and what is left of them where the run ends.


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


def test_the_time_in_which_stations_join_and_leave_is_none_of_the_load(trial: MakeTrial) -> None:
    plain = trial(0)
    joined = plain.replace(request=plain.request.replace(groups=Groups(groups=4, members=3, send_s=0.05)))
    longer = joined.replace(reading=joined.reading.replace(sending_ns=1_100_000_000))
    assert sample_of(longer).sent_frames_per_s == longer.sent_frames_per_s == longer.request.load_frames_per_s


TRANSMISSION_NS, LEAST_NS = 1_000_000_000, 50_000


def stream(tail_ns: int, mean_ns: float, **changes: Any) -> StreamReading:
    """A stream whose last frame came that time after the transmission, in addition to the least latency."""
    latency = Latency(source="software", count=9, minimum_ns=LEAST_NS, mean_ns=LEAST_NS + mean_ns, maximum_ns=10**9)
    parts = {
        "name": "0->1",
        "counts": Counts(intended=9, sent=9, received=9, lost=0),
        "latency": latency,
        "arrivals": Arrivals(first_ns=LEAST_NS, last_ns=TRANSMISSION_NS + LEAST_NS + tail_ns),
    }
    return StreamReading(**parts | changes)


SILENT = {
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


# A tester that sends a constant share of what it is asked for: its trials are valid, at the load that was sent.


every_search = pytest.mark.parametrize("search", ["guided", "mlr", "step-down"])
shares = pytest.mark.parametrize("share", [0.6, 0.997, 0.9985])


def rate_of(result: Result, name: str = "ndr_frames_per_s") -> Bounded:
    rate = result.values[name]
    assert isinstance(rate, Bounded)
    return rate


@every_search
@shares
async def test_a_search_gives_the_rate_of_the_dut_and_one_sentence(search: str, share: float) -> None:
    rig = Rig(FakeTester(DUT, sent_share=share))
    result = await rig.throughput(search)
    assert rate_of(result).value == pytest.approx(DUT, rel=0.012)
    assert rate_of(result).limited_by is LimitedBy.DUT
    assert result.verdict is ResultVerdict.VALID
    assert result.values["ceiling_frames_per_s"] is None
    assert not rig.ceilings
    said = f"the tester sent {100 * share:.4g} % of what it was asked for at every load"
    assert all(said in text for text in result.disturbances if "the tester" in text)
    assert any(said in text for text in result.disturbances)


@every_search
async def test_a_ceiling_is_still_a_ceiling_and_published(search: str) -> None:
    rig = Rig(FakeTester(100e6, ceiling_frames_per_s=5e6))
    result = await rig.throughput(search)
    assert rate_of(result).limited_by is LimitedBy.TESTER
    assert rate_of(result).value == pytest.approx(5e6, rel=0.02)
    assert [event.ceiling_frames_per_s for event in rig.ceilings] == [pytest.approx(5e6)]
    assert not any("of what it was asked for" in text for text in result.disturbances)


async def test_a_method_without_a_search_offers_its_load_as_far_as_the_line_carries_what_is_asked_for() -> None:
    rig = Rig(FakeTester(DUT, sent_share=0.6))
    options = FrameLoss.Options(frame_bytes=(64,), trial=TIMES)
    results = [rig.context.complete(result) for result in await FrameLoss("t", options).run(rig.context)]
    line_rate = 14_880_952.38
    loads = {round(result.values["percent_of_line_rate"]): result for result in results}  # type: ignore[arg-type]
    half = loads[50]
    assert half.values["offered_frames"] == pytest.approx(0.5 * line_rate, rel=1e-3)
    assert half.values["loss_percent"] == pytest.approx(100 * (1 - DUT / (0.5 * line_rate)), rel=1e-2)
    assert half.verdict is ResultVerdict.VALID
    assert all("60 % of what it was asked for" in " ".join(result.disturbances) for result in results if result.trials)
    assert not rig.ceilings


@pytest.mark.parametrize(("unsent", "valid"), [(400_000, True), (430_000, True), (500_000, False), (0, True)], ids=str)
def test_what_the_tester_always_falls_short_by_is_no_disturbance_and_more_is(
    reading: Callable[..., Reading], unsent: int, valid: bool
) -> None:
    evidence = Evidence.of(reading(sent=1_000_000 - unsent, unsent_tester=unsent), sent_share=0.6)
    assert judge(evidence, Thresholds()).valid is valid
