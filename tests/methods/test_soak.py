"""Soak: what each interval and the whole say of load, loss and latency, in one run and over several."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc

from nicbench.core.reading import (
    Counts,
    HealthEvent,
    HealthLevel,
    MachineHealth,
    Measure,
    PassedFrames,
    PortFigures,
    TransmitGaps,
)
from nicbench.core.result import Bounded, Result, ResultVerdict, Spread
from nicbench.core.trial import Latency, PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.impairments import Impairments
from nicbench.methods.served import CaptureReplay
from nicbench.methods.soak import WHOLE, CriticalLoadChoice, IntervalTimes, Soak
from nicbench.report.tails import ports_tables
from nicbench.stats.intervals import share_interval
from nicbench.stats.latency import histogram_of

from .known import HEALTH, KnownContext, reading_of, run


class Slowing(KnownContext):
    """Its DUT loses nothing, delays half of the frames by a microsecond more in each interval, and grows hotter."""

    tells = True

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        frames = int(request.load_frames_per_s * request.duration_s)
        counts = Counts(intended=frames, sent=frames, received=frames, lost=0)
        delay_ns = 10_000 + 1000 * int(point["interval"])
        latency = Latency(
            source="software", count=frames, minimum_ns=5000, mean_ns=float(delay_ns), maximum_ns=50_000,
            percentiles_ns={"50": delay_ns}, histogram=None,
        )  # fmt: skip
        number = int(point["interval"])
        machine = MachineHealth(
            events=(
                HealthEvent(host="dut", where="e0", what="fec", measure=Measure.FEC_CORRECTED, amount=2, unit="blocks"),
            ),
            levels=tuple(
                HealthLevel(host="dut", where=f"module {part}", value=40.0 + number - part, unit="C") for part in (0, 1)
            ),
        )
        reading = reading_of(request.duration_s, [StreamReading(name="0->1", counts=counts)], latency=latency)
        health = reading.health.replace(core_clock_hz=(3e9 - number * 1e6, 3e9 - number * 1e6))
        return reading.replace(machine=machine if self.tells else None, health=health)


def soak(**options: Any) -> Soak:
    times = IntervalTimes(duration=3.0, interval=1.0)
    return Soak("hours", Soak.Options.model_validate({"rate": "line_rate", **options}).replace(trial=times))


async def test_the_load_is_the_one_that_was_sent_and_is_not_asked_for_again() -> None:
    dut = Slowing(sends=9e5)
    *intervals, whole = await run(soak(), dut)
    assert [result.values["load_frames_per_s"] for result in (*intervals, whole)] == [9e5] * 4
    assert [request.load_frames_per_s for request in dut.requests] == [9e5] * 3
    assert [result.values.get("lowered") for result in intervals] == [
        "at 64 bytes the tester sent 900.0 kpps, not 1.488 Mpps", None, None,
    ]  # fmt: skip
    assert "not 1.488 Mpps" in str(whole.values["lowered"])


async def test_the_median_latency_of_the_intervals_is_a_series_in_which_drift_is_looked_for() -> None:
    results = await run(soak(), Slowing())
    found = {series.name: series.values for series in Soak.series_within_run(results)}
    assert found["soak: 64-byte frames, median latency"] == [11.0, 12.0, 13.0]


async def test_heat_errors_of_links_and_the_clock_stand_beside_each_interval_and_may_drift() -> None:
    results = await run(soak(), Slowing())
    names = ("temperature_celsius", "link_errors", "core_clock_hz")
    assert [[result.values[name] for name in names] for result in results] == [
        *([41.0 + number, 2, 2.999e9 - number * 1e6] for number in range(3)),
        [43.0, 6, 2.998e9],
    ]
    found = {series.name: series.values for series in Soak.series_within_run(results)}
    assert found["soak: 64-byte frames, hottest part"] == [41.0, 42.0, 43.0]
    silent = Slowing()
    silent.tells = False
    assert {result.values.get("temperature_celsius") for result in await run(soak(), silent)} == {None}


def test_the_worst_interval_over_several_runs_is_the_one_that_lost_frames() -> None:
    def interval(name: str, loss: float | Spread) -> Result:
        parameters = {"frame_bytes": 64, "size": "64", "interval": name}
        return Result(id=f"s/64/{name}", method="soak", parameters=parameters, values={"loss_percent": loss})

    lossy = Spread(median=4.5, minimum=4.0, maximum=5.0, n=2, runs=2)
    shown = Soak.select_for_terminal(
        (interval("1", 0.0), interval("2", lossy), interval("3", 0.0), interval(WHOLE, 1.0))
    )
    worst = next(result for result in shown if result.parameters["interval"].startswith("worst"))
    assert worst.values["loss_percent"] == lossy


@pytest.mark.parametrize("options", [{"rate": "highest"}, {"rate": None, "critical_load": CriticalLoadChoice()}])
async def test_a_tester_that_sends_nothing_has_measured_nothing(options: dict[str, Any]) -> None:
    (result,) = await run(soak(**options), Slowing(ceiling=0.0))
    assert result.verdict is ResultVerdict.INCOMPLETE
    assert "the tester sends" in result.disturbances[0]


# Impairments: shares of what was counted, with their exact intervals, and the delays, from a known trial.


class KnownPath(KnownContext):
    """Its counts and latency are given."""

    def __init__(self, counts: Counts, latency: Latency | None, **more: Any) -> None:
        super().__init__(**more)
        self.counts, self.latency = counts, latency

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        return reading_of(
            1.0, [StreamReading(name="0->1", counts=self.counts, checked_bytes=478)], latency=self.latency
        )


COUNTS = Counts(
    intended=10_000, sent=10_000, received=9_780, lost=200, corrupted=15, unattributed=5, duplicated=98, reordered=489
)
LATENCY = Latency(
    source="software", count=9_780, minimum_ns=1_000_100, mean_ns=1_050_000.0, maximum_ns=2_000_000,
    percentiles_ns={"50": 1_040_000, "99": 1_300_000, "99.9": 1_500_000},
)  # fmt: skip


async def measured(context: KnownPath, rate: float = 10_000.0) -> Result:
    method = Impairments("path", Impairments.Options(rate=rate, frame_bytes=(512,)))
    (result,) = await run(method, context)
    return result


async def test_each_fate_is_a_share_of_the_frames_that_could_have_it() -> None:
    values = (await measured(KnownPath(COUNTS, LATENCY))).values
    shares = {name: values[f"{name}_percent"] for name in ("lost", "duplicated", "reordered", "altered")}
    assert shares == {"lost": 2.0, "duplicated": 1.0, "reordered": 5.0, "altered": pytest.approx(20 / 98)}
    # By the definition: were the share the lower bound, so many or more would be lost in 2.5 % of the trials.
    lower, upper = values["lost_lower_percent"], values["lost_upper_percent"]
    assert isinstance(lower, float)
    assert isinstance(upper, float)
    assert bdtrc(199, 10_000, lower / 100) == pytest.approx(0.025)
    assert bdtr(200, 10_000, upper / 100) == pytest.approx(0.025)


async def test_delays_are_those_of_every_frame() -> None:
    values = (await measured(KnownPath(COUNTS, LATENCY))).values
    assert (values["latency_minimum_ns"], values["latency_p50_ns"], values["pdv_ns"]) == (1_000_100, 1_040_000, 499_900)


async def test_what_the_tester_does_not_know_is_unknown_and_not_zero() -> None:
    counts = COUNTS.replace(duplicated=None, corrupted=None)
    values = (await measured(KnownPath(counts, None))).values
    for name in ("duplicated_percent", "altered_percent", "latency_p50_ns"):
        value = values[name]
        assert value.value is None


async def test_where_nothing_comes_back_only_the_loss_is_known() -> None:
    nothing = Counts(intended=100, sent=100, received=0, lost=100)
    values = (await measured(KnownPath(nothing, None))).values
    assert values["lost_percent"] == 100.0
    assert isinstance(values["reordered_percent"], Bounded)
    assert values["reordered_percent"].reason_null == "no frame came back"


async def test_more_copies_than_frames_are_a_share_without_an_interval() -> None:
    counts = Counts(intended=100, sent=100, received=100, lost=0, duplicated=250)
    values = (await measured(KnownPath(counts, LATENCY))).values
    assert (values["duplicated_percent"], values["duplicated_upper_percent"]) == (250.0, None)


async def test_a_load_beyond_the_tester_is_lowered_and_said() -> None:
    result = await measured(KnownPath(COUNTS, LATENCY, ceiling=5_000.0), rate=10_000.0)
    assert result.values["load_frames_per_s"] == pytest.approx(5_000.0)
    assert "no more than" in str(result.values["load_lowered"])
    assert result.verdict is ResultVerdict.VALID


@given(draws=st.integers(1, 100_000), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
def test_an_interval_holds_what_was_counted_and_widens_with_confidence(
    draws: int, share: float, confidence: float
) -> None:
    hits = round(draws * share)
    lower, upper = share_interval(hits, draws, confidence)
    assert 0.0 <= lower <= hits / draws <= upper <= 1.0
    wider = share_interval(hits, draws, 1.0 - (1.0 - confidence) / 2.0)
    assert wider[0] <= lower
    assert wider[1] >= upper


def test_of_no_draws_nothing_is_known() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)
    assert share_interval(0, 1000)[1] == pytest.approx(0.0036821, abs=1e-6)
    with pytest.raises(ValueError, match="no share"):
        share_interval(2, 1)


# What a replay says of the frames of a capture, and how it asks for them.


LATE = TransmitGaps(
    count=1000, minimum_ns=900, mean_ns=1000.0, maximum_ns=1100, histogram=histogram_of([(900, 500), (1100, 500)])
)


class Played(KnownContext):
    """Of 100 recorded frames two are missing, one is changed, one came twice and two late in order."""

    bidirectional = True

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        counts = Counts(
            intended=100, sent=100, unsent_tester=0, unsent_backpressure=0, received=97, lost=2, late=0, duplicated=1,
            reordered=2, corrupted=0, unattributed=1,
        )  # fmt: skip
        gaps = LATE.replace(lateness=LATE, errors=LATE)
        streams = tuple(
            StreamReading(name=f"capture {number}", counts=counts, transmit_gaps=gaps)
            for number, _ in enumerate(request.replay.captures, start=1)
        )
        ports = tuple(PortReading(name=name, foreign=foreign) for name, foreign in (("t0", 0), ("t1", 4)))
        return Reading(transmit_ns=10**9, counts=counts, streams=streams, ports=ports, latency=None, health=HEALTH)


async def play(**options: Any) -> tuple[Played, Any]:
    method = CaptureReplay("replay", CaptureReplay.Options(**options))
    context = Played()
    return context, await method.run(context)


async def test_each_capture_has_a_row_with_what_became_of_its_frames() -> None:
    captures = ({"file": "a.pcap"}, {"file": "b.pcap", "from_port": 1, "to_port": 0})
    context, results = await play(captures=captures, speed=2.0)
    (request,) = context.requests
    assert [(one.file, one.from_port, one.to_port) for one in request.replay.captures] == [
        ("a.pcap", 0, 1), ("b.pcap", 1, 0)
    ]  # fmt: skip
    assert (request.replay.speed, request.replay.together, request.replay.signed) == (2.0, True, False)
    names = ("recorded", "returned", "missing", "changed", "extra", "reordered")
    found = [[result.values[f"{name}_frames"] for name in names] for result in results]
    assert found == [[100, 97, 2, 1, 5, 2], [100, 97, 2, 1, 1, 2]]
    assert results[0].values["late_maximum_ns"] == 1100
    assert results[0].values["gap_error_p99_ns"] == pytest.approx(1100, rel=0.01)


async def test_the_ports_of_a_trial_of_two_captures_are_shown_once() -> None:
    _, results = await play(captures=({"file": "a.pcap"}, {"file": "b.pcap", "from_port": 1, "to_port": 0}))
    counted = {
        "offered_frames": 100, "received_frames": 97, "lost_frames": 3, "failed_frames": 3, "loss_ratio": 0.03,
        "offered_frames_per_s": 100.0, "received_frames_per_s": 97.0,
    }  # fmt: skip
    figures = PortFigures(
        trial="t0001", load_frames_per_s=None, ways=(), ports=(), combined=PassedFrames.model_validate(counted)
    )
    results = [result.replace(by_port=figures) for result in results]
    (table,) = ports_tables(results, {result.id: "replay" for result in results}, None)
    assert len(table.rows) == 1
    assert table.scope == (
        "the capture sent at port 0, received at port 1 or the capture sent at port 1, received at port 0"
    )


async def test_the_whole_of_its_time_is_foretold() -> None:
    method = CaptureReplay("replay", CaptureReplay.Options(captures=({"file": "a.pcap"},), longest=5.0, settle=1.0))
    assert method.estimate_s() == 9.0
