"""Back-to-back frames: the longest burst that a buffer of a known size holds, found frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.methods._loads import BurstPauses
from nicbench.methods.back_to_back import BackToBack, buffer_values, longest_burst

from .known import LINE, KnownContext, reading_of, run


class Buffering(KnownContext):
    """Its DUT holds ``buffers`` frames, one number for each repetition, and forwards ``throughput``."""

    def __init__(
        self, *buffers: int, throughput: float | None = 1e6, losses: Iterator[bool] | None = None, **more: Any
    ) -> None:
        super().__init__(throughput=throughput, **more)
        self.buffers, self.losses = buffers, losses or repeat(False)

    def longest(self, repetition: int, load: float) -> float:
        """Frames: the buffer, and what is forwarded while it fills."""
        return self.buffers[(repetition - 1) % len(self.buffers)] / (1 - (self.throughput or 0.0) / load)

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        load, frames = request.load_frames_per_s, request.frames
        assert load is not None
        assert frames is not None
        lost = max(0, frames - int(self.longest(point["repetition"], load))) or int(next(self.losses))
        counts = Counts(intended=frames, sent=frames, received=frames - lost, lost=lost)
        return reading_of((frames - 1) / load, counts=counts)


async def measured(dut: Buffering, **options: Any) -> Result:
    options = {"at": "throughput", "frame_bytes": (64,), "repetitions": 3, "longest_burst": 0.1, **options}
    (result,) = await run(BackToBack("bursts", BackToBack.Options(**options)), dut)
    return result


def value_of(result: Result) -> Bounded:
    value = result.values["back_to_back_frames"]
    assert isinstance(value, Bounded)
    return value


async def test_the_longest_burst_that_a_buffer_holds_is_found_to_the_frame() -> None:
    dut = Buffering(512)
    result = await measured(dut)
    truth = int(dut.longest(1, LINE))
    assert value_of(result) == Bounded(value=truth, lower=truth, upper=truth + 1, limited_by=LimitedBy.DUT, n=3)
    assert (result.values["standard_deviation_frames"], result.values["repetitions"]) == (0.0, 3)
    assert result.values["search"] == (
        "at 64 bytes binary, in steps of 1 frame, with bursts of up to 148809 frames; "
        "the longest that was sent came at 1.488 Mpps"
    )
    assert result.verdict is ResultVerdict.VALID
    assert {request.purpose for request in dut.requests} == {Purpose.BURST}


async def test_the_corrected_buffer_is_the_duts_own() -> None:
    """RFC 9004 section 6.4: what was forwarded while the burst came in was not in the buffer."""
    result = await measured(Buffering(512))
    assert result.values["corrected_buffer_frames"] == pytest.approx(512, abs=1)
    assert result.values["corrected_buffer_time_us"] == pytest.approx(1e6 * 512 / LINE, rel=0.01)


def test_the_buffer_times_are_those_of_a_computed_example() -> None:
    """26,000 frames back to back at 14.88 Mpps, of which 8.52 Mpps were forwarded meanwhile."""
    found = buffer_values(26_000, 8.52e6, 14_880_952)
    assert found["implied_buffer_time_us"] == pytest.approx(1747.2, abs=0.1)
    assert found["corrected_buffer_time_us"] == pytest.approx(746.8, abs=0.1)
    assert found["corrected_buffer_frames"] == pytest.approx(11_113, abs=2)


@pytest.mark.parametrize("trial_s", [1.0, 4.0, 60.0])
def test_the_buffer_in_the_throughputs_own_trials_is_taken_off(trial_s: float) -> None:
    """A bucket of 500 frames lets 500 frames more pass in a trial than its rate of 100 kpps, however long that is."""
    rate, burst_rate, bucket = 100_000, 300_000, 500
    longest = bucket / (1 - rate / burst_rate)
    found = buffer_values(longest, rate + bucket / trial_s, burst_rate, trial_s)
    assert found["corrected_buffer_frames"] == pytest.approx(bucket, abs=0.01)


async def test_repetitions_are_searches_of_their_own_and_their_average_is_the_value() -> None:
    dut = Buffering(400, 500, 600)
    result = await measured(dut)
    found = [int(dut.longest(number, LINE)) for number in (1, 2, 3)]
    assert value_of(result).value == pytest.approx(sum(found) / 3)
    assert (result.values["minimum_frames"], result.values["maximum_frames"]) == (found[0], found[2])
    assert result.values["standard_deviation_frames"] == pytest.approx(found[1] - found[0], abs=2)
    assert [request.frames for request in dut.requests].count(dut.requests[0].frames) == 3


async def test_a_buffer_that_holds_the_longest_burst_is_larger_than_reported_and_the_result_says_so() -> None:
    result = await measured(Buffering(10**9))
    assert value_of(result).at_least
    assert value_of(result).value == result.values["longest_burst_frames"]
    assert "raise `longest_burst`" in str(result.values["limit"])


async def test_a_dut_that_loses_every_burst_has_no_value() -> None:
    result = await measured(Buffering(0))
    assert value_of(result).value is None
    assert value_of(result).reason_null == "not even a burst of 1 frame came back whole"


async def test_at_the_line_rate_there_is_nothing_to_measure() -> None:
    dut = Buffering(10, throughput=LINE)
    result = await measured(dut)
    assert dut.requests == []
    assert "RFC 9004 section 6.1" in str(result.values["limit"])
    assert result.verdict is ResultVerdict.VALID


async def test_a_tester_that_is_slower_than_the_line_is_told_with_the_rate_it_has() -> None:
    dut = Buffering(512, throughput=5e5, ceiling=1.2e6)
    result = await measured(dut)
    assert result.values["burst_frames_per_s"] == pytest.approx(0.99 * 1.2e6)
    assert result.values["sent_frames_per_s"] == pytest.approx(0.99 * 1.2e6)
    assert "the tester sends no more than 1.200 Mpps, 80.6 % of the line rate" in str(result.values["spacing"])
    assert result.values["corrected_buffer_frames"] == pytest.approx(512, abs=1)


async def test_a_tester_that_turns_out_slower_has_the_buffer_computed_with_what_it_sent() -> None:
    result = await measured(Buffering(512, throughput=5e5, sends=0.8e6))
    assert result.values["burst_frames_per_s"] == pytest.approx(0.8e6)
    assert result.values["corrected_buffer_frames"] == pytest.approx(512, abs=1)
    assert result.values["spacing"] is not None


async def test_a_tester_that_turns_out_no_faster_than_the_dut_cannot_fill_its_buffer() -> None:
    result = await measured(Buffering(512, throughput=0.9e6, sends=0.895e6))
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert value_of(result).value is None
    assert "the throughput is not below the rate of the bursts" in str(value_of(result).reason_null)


async def test_bursts_at_different_rates_have_no_mean() -> None:
    dut = Buffering(512, throughput=5e5, sends=0.8e6)
    result = await measured(dut)
    searches = [request.load_frames_per_s for request in dut.requests if request.load_frames_per_s]
    assert set(searches) == {0.8e6}
    assert result.values["standard_deviation_frames"] == pytest.approx(0.0, abs=1.0)


async def test_a_tester_no_faster_than_the_dut_cannot_fill_its_buffer() -> None:
    dut = Buffering(512, throughput=1e6, ceiling=1e6)
    result = await measured(dut)
    assert dut.requests == []
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert result.disturbances == (
        "the throughput is not below the rate of the bursts: none of them would fill a buffer",
    )


async def test_without_a_throughput_the_bursts_are_found_and_the_buffer_is_not() -> None:
    result = await measured(Buffering(512, throughput=None))
    assert value_of(result).value == 512
    assert "corrected_buffer_frames" not in result.values
    assert result.values["limit"] == "throughput found no NDR at 64 bytes"


async def test_a_stray_loss_is_verified_where_that_is_asked_for() -> None:
    def every_seventh() -> Iterator[bool]:
        while True:
            yield from (False, False, True, False, False, False, False)

    truth = int(Buffering(512).longest(1, LINE))
    deceived = await measured(Buffering(512, losses=every_seventh()))
    verified = await measured(Buffering(512, losses=every_seventh()), loss_verification=1)
    assert (value_of(deceived).value or 0) < truth
    assert value_of(verified).value == truth


async def test_a_disturbed_burst_marks_the_result() -> None:
    result = await measured(Buffering(512, disturbed=[4]))
    assert result.verdict is ResultVerdict.DISTURBED
    assert result.disturbances == ("the worker was held up",)
    found = result.values["back_to_back_frames"]
    assert isinstance(found, Bounded)
    assert (found.upper, found.limited_by) == (None, None)
    assert result.values["limit"] is None  # no search passed the longest burst


@pytest.mark.parametrize(("step", "most"), [(1, 1), (16, 16), (1000, 1000)])
async def test_a_search_ends_within_its_step(step: int, most: int) -> None:
    asked = []

    async def whole(frames: int) -> bool:
        asked.append(frames)
        return frames <= 12_345

    passed, failed = await longest_burst(whole, 1_000_000, step)
    assert failed is not None
    assert passed <= 12_345 < failed <= passed + most
    assert len(asked) <= 21


def deviations(**options: Any) -> tuple[str, ...]:
    return BackToBack("b", BackToBack.Options(at="t", **options)).deviations()


def test_the_rfcs_own_parameters_have_no_deviations() -> None:
    assert deviations() == ()


def test_what_falls_short_of_the_rfcs_is_named() -> None:
    assert deviations(repetitions=5, longest_burst=0.5, rate=4e5, trial=BurstPauses(drain=0.1), frame_bytes=(64,)) == (
        "5 repetitions, RFC 2544 section 26.4 asks for 50",
        "bursts of at most 0.5 s, RFC 2544 section 26.4 asks for trials of 2 s at least",
        "0.1 s after a burst, RFC 9004 section 6.2 asks for 2 s",
        "frames of a burst come at 400 kpps, RFC 2544 section 26.4 asks for the line rate",
        "no frames of 128, 256, 512, 1024, 1280, 1518 bytes, RFC 2544 section 9.1 asks for seven",
    )


def test_what_rfc_9004_rules_out_is_named() -> None:
    assert deviations(of="PDR", longest_burst=30.0, frame_bytes=(64, 128, 256, 512, 1024, 1280, 1518, "imix")) == (
        "2 s after bursts of up to 30 s, RFC 9004 section 6.2 asks for longer after bursts of more than 2 s",
        "bursts of mixed sizes, which RFC 9004 section 3 rules out",
        "100 % is the PDR, RFC 9004 section 5 takes the throughput, which is without loss",
    )
