"""System recovery and reset: readings whose last loss, or whose silence, is known beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.reading import Arrivals, Counts, Flows, Intervals, Silence
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import (
    InterruptionTimes,
    Latency,
    PortReading,
    Purpose,
    Reading,
    StreamReading,
    TrialRequest,
)
from nicbench.methods._loads import TrialTimes
from nicbench.methods.recovery import RecoveryTimes, Reset, ResetTimes, SystemRecovery
from nicbench.methods.soak import IntervalTimes, Soak

from .known import LINE, KnownContext, reading_of, run

THROUGHPUT = 1e6
FLOWS = Flows(flows=100, silent=0, with_loss=0, with_reordering=0, with_duplicates=0, with_corruption=0)
RECOVERY = RecoveryTimes(overload_time=2.0, recovery_time=1.0, drain=0.1, settle=0.1)


class Known(KnownContext):
    """Its trials have these streams, one tuple after another, the last of them again and again."""

    def __init__(
        self, *readings: tuple[StreamReading, ...], throughput: float | None = THROUGHPUT, link_changed: bool = False,
        interrupted: InterruptionTimes | None = None, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(throughput=throughput, **more)
        self.readings, self.link_changed, self.interrupted = list(readings), link_changed, interrupted

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        streams = self.readings[min(len(self.requests), len(self.readings)) - 1]
        port = PortReading(
            name="t0", foreign=0, corrupted_unattributed=0, receive_overrun=0, link_changed=self.link_changed
        )
        return reading_of(
            request.duration_s, streams, latency=streams[0].latency, ports=(port,), interrupted=self.interrupted
        )


def overload(lost: int = 100) -> StreamReading:
    counts = Counts(intended=2_200_000, sent=2_200_000, received=2_200_000 - lost, lost=lost)
    return StreamReading(name="0->1 phase 1", phase=1, counts=counts, flows=FLOWS)


def after(lost: int = 0, *, known: int | None = None, last_jump_ns: int | None = None) -> StreamReading:
    """The second phase: 550,000 frames of 100 flows in 1 s, so that a flow has one in 182 us."""
    missing = lost if known is None else known
    return StreamReading(
        name="0->1 phase 2",
        phase=2,
        counts=Counts(intended=550_000, sent=550_000, received=550_000 - lost, lost=lost),
        flows=FLOWS,
        intervals=Intervals(interval_ns=100_000_000, received=(550_000 - lost,), missing=(missing,)),
        last_jump_ns=last_jump_ns,
    )


async def recovery(dut: Known, **options: Any) -> Result:
    options = {"at": "throughput", "frame_bytes": (64,), "repetitions": 1, "trial": RECOVERY, **options}
    (result,) = await run(SystemRecovery("recovery", SystemRecovery.Options(**options)), dut)
    return result


def value_of(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


async def test_the_rate_falls_from_110_percent_of_the_throughput_to_half_of_that() -> None:
    dut = Known((overload(), after()))
    result = await recovery(dut)
    (request,) = dut.requests
    assert [(phase.load_frames_per_s, phase.duration_s) for phase in request.phases] == [
        (pytest.approx(1.1e6), 2.0),
        (pytest.approx(0.55e6), 1.0),
    ]
    assert (request.duration_s, request.purpose) == (3.0, Purpose.RECOVERY)
    assert value_of(result, "recovery_time_ms").value == 0.0
    assert result.verdict is ResultVerdict.VALID


async def test_the_recovery_time_ends_with_the_last_lost_frame() -> None:
    """The frame that shows it was sent 300 ms after the change, the lost one a turn of the flows before."""
    result = await recovery(Known((overload(), after(50, last_jump_ns=2_300_000_000))))
    assert value_of(result, "recovery_time_ms").value == pytest.approx(300.0 - 0.1818, abs=0.001)
    assert result.values["resolution_ms"] == pytest.approx(0.1818, abs=0.0001)
    assert (result.values["overload_lost_frames"], result.values["recovery_lost_frames"]) == (100, 50)


async def test_several_trials_are_averaged() -> None:
    readings = [(overload(), after(5, last_jump_ns=2_000_000_000 + ms * 1_000_000)) for ms in (100, 200, 600)]
    result = await recovery(Known(*readings), repetitions=3)
    assert (result.values["overload_lost_frames"], result.values["recovery_lost_frames"]) == (100.0, 5.0)
    time = value_of(result, "recovery_time_ms")
    assert (time.value, time.n) == (pytest.approx(299.818, abs=0.001), 3)
    assert (time.lower, time.upper) == (pytest.approx(99.818, abs=0.001), pytest.approx(599.818, abs=0.001))


@pytest.mark.parametrize(
    "last", [after(50, known=49, last_jump_ns=2_300_000_000), after(550_000, known=0)], ids=["the last", "all"]
)
async def test_frames_lost_at_the_end_mean_that_the_dut_did_not_recover(last: StreamReading) -> None:
    result = await recovery(Known((overload(), last)))
    assert value_of(result, "recovery_time_ms").value is None
    assert "frames were lost to the end, 1 s after the overload" in str(result.values["limit"])


async def test_a_dut_that_was_not_overloaded_had_nothing_to_recover_from() -> None:
    result = await recovery(Known((overload(lost=0), after())))
    assert value_of(result, "recovery_time_ms").value is None
    assert result.verdict is ResultVerdict.INCOMPLETE
    reason = "at 64 bytes nothing was lost in the overload of 1 of 1 trials: there was nothing to recover from"
    assert result.values["limit"] == reason


async def test_the_overload_is_at_most_what_tester_and_line_carry() -> None:
    dut = Known((overload(), after()), throughput=1.4e6)
    result = await recovery(dut)
    assert dut.requests[0].load_frames_per_s == pytest.approx(LINE)
    assert "it is 106.3 % of the throughput, for the line carries no more than 1.488 Mpps" in str(
        result.values["overload"]
    )


async def test_without_a_throughput_nothing_is_sent() -> None:
    dut = Known(throughput=None)
    for result in (await recovery(dut), (await run(Reset("r", RESET), Known(throughput=None)))[0]):
        assert result.verdict is ResultVerdict.INCOMPLETE
        assert result.disturbances == ("throughput found no NDR at 64 bytes",)
    assert dut.requests == []


def test_what_falls_short_of_the_rfc_is_named() -> None:
    def deviations(**options: Any) -> tuple[str, ...]:
        return SystemRecovery("r", SystemRecovery.Options(at="t", **options)).deviations()

    assert deviations() == ()
    assert deviations(
        of="PDR", overload=120.0, recovery=40.0, repetitions=1, trial=RecoveryTimes(overload_time=5.0, settle=1.0)
    ) == (
        "overload for 5 s, RFC 2544 section 26.5 asks for 60 s",
        "overload at 120 % of the throughput, RFC 2544 section 26.5 asks for 110 %",
        "40 % of the overload afterwards, RFC 2544 section 26.5 asks for 50 %",
        "one trial, RFC 2544 section 26.5 asks for the average of several",
        "100 % is the PDR, RFC 2544 section 26.5 takes the throughput, which is without loss",
        "settle time 1 s, RFC 2544 section 23 asks for 5 s",
    )


RESET = Reset.Options(
    at="throughput", command=("reboot", "now"), repetitions=2, trial=ResetTimes(duration=10.0, after=1.0)
)


def interrupted(silence_ms: int, *, lost: int | None = None, last_ns: int = 10_000_000_000) -> StreamReading:
    """10 s at 1 Mpps with a silence that begins after 1.2 s."""
    lost = silence_ms * 1000 if lost is None else lost
    silence = Silence(from_ns=1_200_000_000, to_ns=1_200_000_000 + silence_ms * 1_000_000)
    return StreamReading(
        name="0->1",
        counts=Counts(intended=10_000_000, sent=10_000_000, received=10_000_000 - lost, lost=lost),
        arrivals=Arrivals(first_ns=0, last_ns=last_ns, silence=silence),
    )


async def test_the_reset_time_is_the_silence_and_the_command_runs_in_it() -> None:
    dut = Known((interrupted(300),), (interrupted(500),))
    (result,) = await run(Reset("reset", RESET), dut)
    asked = dut.requests[0].interruption
    assert (asked.command, asked.on, asked.after_s) == (("reboot", "now"), "dut", 1.0)
    assert (dut.requests[0].load_frames_per_s, dut.requests[0].purpose) == (THROUGHPUT, Purpose.RESET)
    assert value_of(result, "reset_time_ms") == Bounded(value=400.0, lower=300.0, upper=500.0, n=2)
    assert result.values["by_loss_ms"] == pytest.approx(400.0)
    assert result.values["average_lost_frames"] == 400_000
    assert result.values["command"] == "reboot now (on the DUT's host)"


async def test_a_dut_that_does_not_come_back_has_no_reset_time() -> None:
    dut = Known((interrupted(300),), (interrupted(1, lost=8_000_000, last_ns=1_200_000_000),))
    (result,) = await run(Reset("reset", RESET), dut)
    assert value_of(result, "reset_time_ms").value is None
    assert result.values["limit"] == "after 1 of 2 resets no frames came back to the end of the trial"


async def test_a_command_that_resets_nothing_is_noticed() -> None:
    (result,) = await run(Reset("reset", RESET), Known((interrupted(1, lost=0),)))
    assert result.values["limit"] == "in 2 of 2 trials nothing was lost: was the DUT reset?"


async def test_a_reset_that_takes_the_link_down_is_said_and_spoils_nothing() -> None:
    (result,) = await run(Reset("reset", RESET), Known((interrupted(300),), link_changed=True))
    assert (result.values["link_went_down"], result.verdict) == (2, ResultVerdict.VALID)


def test_where_a_reset_falls_short_of_the_rfcs_is_named() -> None:
    def deviations(**options: Any) -> tuple[str, ...]:
        return Reset("r", Reset.Options(at="t", command=("x",), **options)).deviations()

    assert deviations() == ()
    assert deviations(
        of="PDR", frame_bytes=(64, 512), repetitions=1, reset="power", trial=ResetTimes(duration=10.0, after=1.0)
    ) == (
        "1 s of traffic before the reset, RFC 6201 section 4 asks for 15 s",
        "one reset, RFC 6201 section 1.4 recommends the average of several",
        "the time includes the power interruption, RFC 6201 section 4.3.1 takes its 15 s off",
        "frames of 512 bytes, RFC 2544 section 26.6 asks for the smallest",
        "100 % is the PDR, RFC 2544 section 26.6 takes the throughput, which is without loss",
    )


def interval(lost: int, maximum_ns: int) -> StreamReading:
    latency = Latency(
        source="software", count=1000 - lost, minimum_ns=1, mean_ns=2e3, maximum_ns=maximum_ns,
        percentiles_ns={"99.9": 5000},
    )  # fmt: skip
    counts = Counts(intended=1000, sent=1000, received=1000 - lost, lost=lost)
    return StreamReading(name="0->1", counts=counts, latency=latency)


SOAK = IntervalTimes(duration=4.0, interval=1.0)


async def test_each_interval_of_a_soak_is_a_result_and_so_is_the_whole() -> None:
    dut = Known((interval(0, 9000),), (interval(10, 70_000),), (interval(0, 8000),))
    results = await run(Soak("soak", Soak.Options(at="throughput", load=50.0, trial=SOAK)), dut)
    assert [result.parameters["interval"] for result in results] == ["1", "2", "3", "4", "all"]
    assert [request.load_frames_per_s for request in dut.requests] == [THROUGHPUT / 2] * 4
    assert [result.values["lost_frames"] for result in results] == [0, 10, 0, 0, 10]
    whole = results[-1].values
    assert (whole["loss_percent"], whole["intervals_with_loss"]) == (0.25, 1)
    assert (whole["latency_maximum_us"], whole["latency_mean_us"]) == (70.0, 2.0)


async def test_a_disturbed_interval_marks_the_whole() -> None:
    dut = Known((interval(0, 9000),), disturbed=[2])
    results = await run(Soak("soak", Soak.Options(rate=2e5, trial=SOAK)), dut)
    assert [result.verdict.value for result in results] == ["valid", "disturbed", "valid", "valid", "disturbed"]
    assert results[-1].disturbances == ("1 of 4 intervals were disturbed",)


async def test_a_soak_at_a_rate_that_cannot_be_sent_says_why() -> None:
    dut = Known(ceiling=1e5)
    (result,) = await run(Soak("soak", Soak.Options(rate=2e5, trial=SOAK)), dut)
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert (
        value_of(result, "loss_percent").reason_null
        == "the tester sends no more than 100.0 kpps, 6.72 % of the line rate"
    )
    assert dut.requests == []


def test_a_soak_needs_one_rate() -> None:
    for options in ({}, {"at": "throughput", "rate": 1e5}):
        with pytest.raises(ValueError, match="give either `at`"):
            Soak.Options(**options)


def test_times_are_estimated_from_the_intervals() -> None:
    method = Soak("s", Soak.Options(rate=1e5, trial=IntervalTimes(duration=3600.0, interval=60.0)))
    assert method.estimate_s() == TrialTimes(duration=60.0, drain=2.0, settle=0.0).estimate_s(60)


async def test_a_command_that_ended_late_is_named_where_no_frames_came_back() -> None:
    silent = interrupted(1, lost=8_000_000, last_ns=1_200_000_000)
    dut = Known((silent,), interrupted=InterruptionTimes(began_s=1.9, ended_s=4.2))
    (result,) = await run(Reset("reset", RESET), dut)
    assert "the command ended 4.2 s after the transmission of " in str(result.values["limit"])


async def test_a_silence_that_is_not_known_is_not_called_one() -> None:
    unknown = interrupted(1).replace(arrivals=None)
    (result,) = await run(Reset("reset", RESET), Known((unknown,)))
    assert result.values["limit"] == "in 2 of 2 trials it is not known when frames arrived"
