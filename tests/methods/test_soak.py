"""Soak: what each interval and the whole say of load, loss and latency, in one run and over several."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.reading import Counts
from nicbench.core.result import Result, ResultVerdict, Spread
from nicbench.core.trial import Latency, Reading, StreamReading, TrialRequest
from nicbench.methods.soak import WHOLE, CriticalLoadChoice, IntervalTimes, Soak

from .known import KnownContext, reading_of, run


class Slowing(KnownContext):
    """Its DUT loses nothing, and delays half of the frames by a microsecond more in each interval."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.load_frames_per_s is not None
        frames = int(request.load_frames_per_s * request.duration_s)
        counts = Counts(intended=frames, sent=frames, received=frames, lost=0)
        delay_ns = 10_000 + 1000 * int(point["interval"])
        latency = Latency(
            source="software", count=frames, minimum_ns=5000, mean_ns=float(delay_ns), maximum_ns=50_000,
            percentiles_ns={"50": delay_ns}, histogram=None,
        )  # fmt: skip
        return reading_of(request.duration_s, [StreamReading(name="0->1", counts=counts)], latency=latency)


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
