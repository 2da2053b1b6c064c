"""Convergence: flows of frames that are lost for a time which is chosen beforehand."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.reading import Arrivals, Counts, Flows, InterruptionTimes, Intervals, Silence
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, StreamReading, TrialRequest
from nicbench.methods.convergence import Convergence, ConvergenceEvent, EventTimes

from .known import KnownContext, reading_of, run

EVENT = {"link": "d1", "lasts": 0.25}
TIMES = EventTimes(duration=4.0, after=0.5, drain=0.1, settle=0.1)


def stream_of(
    request: TrialRequest, lost_s: float, *, flows: int = 1, away: int | None = None, name: str = "0->1"
) -> StreamReading:
    """Frames of ``flows`` in turn; the first ``away`` of them are lost for ``lost_s``, from 0.6137 s on."""
    rate = request.load_frames_per_s or 0.0
    frames = round(rate * request.duration_s)
    lost, last = dict.fromkeys(range(flows), 0), dict.fromkeys(range(flows), False)
    for number in range(frames):
        flow = number % flows
        last[flow] = 0.6137 <= number / rate < 0.6137 + lost_s and flow < (flows if away is None else away)
        lost[flow] += last[flow]
    total, worst = sum(lost.values()), max(lost, key=lambda flow: lost[flow])
    missing = sum(count for flow, count in lost.items() if not last[flow])
    return StreamReading(
        name=name,
        counts=Counts(intended=frames, sent=frames, received=frames - total, lost=total),
        arrivals=Arrivals(
            first_ns=0,
            last_ns=round(1e9 * request.duration_s),
            silence=None if math.isinf(lost_s) else Silence(from_ns=0, to_ns=round(1e9 * lost_s)),
        ),
        intervals=Intervals(interval_ns=10**9, received=(frames - total,), missing=(missing,)),
        flows=Flows(
            flows=flows,
            silent=0,
            with_loss=sum(1 for count in lost.values() if count),
            with_reordering=0,
            with_duplicates=0,
            with_corruption=0,
            most_lost=(worst, lost[worst]) if total else None,
        ),
    )


class Outage(KnownContext):
    """A path that is away for each of these times, one trial after the other."""

    def __init__(self, *lost_s: float, times: InterruptionTimes | None = None, **stream: Any) -> None:
        super().__init__()
        self.lost_s, self.times, self.stream = lost_s, times, stream

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        lost_s = self.lost_s[(len(self.requests) - 1) % len(self.lost_s)]
        streams = (stream_of(request, lost_s, **self.stream),)
        return reading_of(request.duration_s, streams, interrupted=self.times)


async def measure(dut: KnownContext, **options: Any) -> Result:
    given = {"rate": 2000.0, "event": EVENT, "repetitions": 1, "trial": TIMES, **options}
    result, *_ = await run(Convergence("failover", Convergence.Options(**given)), dut)
    return result


def loss_of(result: Result) -> Bounded:
    value = result.values["loss_of_connectivity_ms"]
    assert isinstance(value, Bounded)
    return value


@pytest.mark.parametrize("seed", range(10))
async def test_a_drawn_time_without_a_path_is_found_to_one_frame_of_a_flow(seed: int) -> None:
    draw = random.Random(f"outage {seed}")
    lost_ms, rate, flows = 10 ** draw.uniform(-1, 3.4), float(draw.randint(500, 5000)), draw.randint(1, 64)
    result = await measure(Outage(lost_ms / 1e3, flows=flows), rate=rate)
    resolution_ms = result.values["resolution_ms"]
    assert resolution_ms == pytest.approx(1e3 * flows / rate)
    assert loss_of(result).value == pytest.approx(lost_ms, abs=resolution_ms + 1e-6)
    assert result.values["mean_of_flows_ms"] == pytest.approx(lost_ms, abs=resolution_ms + 1e-6)


async def test_flows_whose_route_stays_lose_nothing_and_the_worst_flow_is_the_answer() -> None:
    """The route of a quarter of the flows is away for 400 ms."""
    result = await measure(Outage(0.4, flows=8, away=2))
    assert loss_of(result).value == pytest.approx(400.0, abs=4.0)
    assert result.values["mean_of_flows_ms"] == pytest.approx(100.0, abs=4.0)
    assert (result.values["flows"], result.values["flows_with_loss"]) == (8, 2)


async def test_several_events_are_averaged_and_their_extremes_kept() -> None:
    result = await measure(Outage(0.1, 0.2, 0.6), repetitions=3)
    loss = loss_of(result)
    assert (loss.value, loss.n) == (pytest.approx(300.0, abs=0.5), 3)
    assert (loss.lower, loss.upper) == (pytest.approx(100.0, abs=0.5), pytest.approx(600.0, abs=0.5))
    assert result.values["longest_silence_ms"] == pytest.approx(300.0)


async def test_a_flow_that_does_not_come_back_has_no_time() -> None:
    result = await measure(Outage(math.inf, flows=4, away=1))
    assert loss_of(result).value is None
    assert "after 1 of 1 events a flow lost frames to the end of the trial" in str(result.values["limit"])


async def test_what_the_tester_did_not_send_is_part_of_what_is_not_known() -> None:
    """A tenth of 8000 frames of 4 s was not sent: any of them may have been due while the path was away."""

    class Starved(Outage):
        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            (stream,) = super().read(point, request).streams
            sent = stream.counts.sent - 800
            counts = stream.counts.replace(sent=sent, unsent_tester=800, received=sent - stream.counts.lost)
            return reading_of(request.duration_s, (stream.replace(counts=counts),))

    result = await measure(Starved(0.25))
    assert result.values["resolution_ms"] == pytest.approx(0.5 + 400.0)


async def test_an_event_at_which_nothing_is_lost_is_said() -> None:
    result = await measure(Outage(0.0, 0.2), repetitions=2)
    assert result.values["limit"] == "in 1 of 2 trials no frame was lost"


async def test_the_event_is_done_in_the_trial_and_its_length_by_the_clock_stands_beside() -> None:
    times = InterruptionTimes(began_s=0.5, ended_s=0.51, restore_began_s=0.76, restored_s=0.79)
    dut = Outage(0.26, times=times)
    result = await measure(dut)
    request = dut.requests[0]
    assert request.purpose is Purpose.CONVERGENCE
    assert (request.interruption.link, request.interruption.lasts_s, request.interruption.after_s) == ("d1", 0.25, 0.5)
    assert result.values["event"] == "link of d1 down for 0.25 s"
    assert result.values["event_at_least_ms"] == pytest.approx(250.0)
    assert result.values["event_at_most_ms"] == pytest.approx(290.0)
    assert result.verdict is ResultVerdict.VALID


class TwoStreams(KnownContext):
    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        streams = (stream_of(request, 0.1, name="0->1 gold"), stream_of(request, 0.5, name="0->1 bulk"))
        return reading_of(request.duration_s, streams)


async def test_each_stream_has_a_row() -> None:
    options = Convergence.Options(rate=2000.0, event=EVENT, repetitions=1, trial=TIMES)
    gold, bulk = await run(Convergence("failover", options), TwoStreams())
    assert (gold.parameters["stream"], bulk.parameters["stream"]) == ("0->1 gold", "0->1 bulk")
    assert loss_of(gold).value == pytest.approx(100.0, abs=0.5)
    assert loss_of(bulk).value == pytest.approx(500.0, abs=0.5)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({}, "give either `link`"),
        ({"link": "d1", "command": ["x"], "lasts": 1.0}, "give either `link`"),
        ({"link": "d1"}, "a `link` needs `lasts`"),
        ({"command": ["x"], "lasts": 1.0}, "give both or neither"),
    ],
)
def test_an_event_that_is_not_one_is_refused(event: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ConvergenceEvent(**event)


def test_an_event_that_outlasts_the_trial_is_refused() -> None:
    with pytest.raises(ValidationError, match="the event ends 5 s after the transmission begins, which lasts 4 s"):
        Convergence.Options(rate=2000.0, event={"link": "d1", "lasts": 4.5}, trial=TIMES)


def test_a_port_that_the_dut_has_not_is_named_before_the_first_trial() -> None:
    options = Convergence.Options(rate=2000.0, event={"link": "d9", "lasts": 0.1}, trial=TIMES)
    objection = Convergence("failover", options).objection(Outage(0.0))
    assert objection is not None
    assert "no port called d9" in objection.message
    assert "there are d0, d1" in objection.message
