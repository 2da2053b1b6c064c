"""Service activation: what a policer of known rate and burst does to services is shown, and what is not as agreed."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.frame_size import mean_bytes
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.pattern import Pattern
from nicbench.core.reading import Counts, Intervals
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Latency, Reading, StreamReading, Trial, TrialRequest
from nicbench.methods._services import (
    Acceptance,
    Availability,
    Seen,
    Service,
    availability_in,
    availability_of,
    available_share,
    performance_failures,
    steps_of,
    unjudged,
)
from nicbench.methods.service_activation import ActivationTimes, ServiceActivation
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

MBIT = 1e6
GOLD = Service(name="gold", frame_bytes=1000, cir=100 * MBIT, eir=40 * MBIT, burst=100_000)


class PolicedPath(KnownContext):
    """Passes ``rate`` and a burst of all streams together; with ``colours`` those of the first stream before others."""

    def __init__(
        self, rate: float, burst_bytes: int = 100_000, *, streams: tuple[str, ...] = ("all",), colours: bool = True,
        delay_ns: int = 20_000, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.rate, self.burst_bytes, self.streams = rate, burst_bytes, streams
        self.colours, self.delay_ns = colours, delay_ns

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        duration_s = request.duration_s
        bits = [load.load_frames_per_s * 8 * mean_bytes(load.size) * duration_s for load in request.streams]
        room = self.rate * duration_s + 8 * self.burst_bytes
        share = 1.0 if self.colours else min(1.0, room / sum(bits))
        readings = []
        for load, offered in zip(request.streams, bits, strict=True):
            passed = min(offered * share, room)
            room -= passed
            sent = round(offered / (8 * mean_bytes(load.size)))
            received = min(sent, round(passed / (8 * mean_bytes(load.size))))
            readings.append(self._stream(load.stream, sent, received))
        return reading_of(duration_s, readings)

    def _stream(self, name: str, sent: int, received: int) -> StreamReading:
        latency = Latency(
            source="software", count=received, minimum_ns=self.delay_ns - 5_000, mean_ns=self.delay_ns,
            maximum_ns=2 * self.delay_ns, percentiles_ns={"99.9": self.delay_ns + 5_000},
        )  # fmt: skip
        counts = Counts(intended=sent, sent=sent, received=received, lost=sent - received)
        suffix = f" {name}" if len(self.streams) > 1 else ""
        tenths = Intervals(interval_ns=100_000_000, received=(received // 20,) * 20, missing=(0,) * 20)
        return StreamReading(name=f"0->1{suffix}", counts=counts, latency=latency, intervals=tenths)


async def activated(path: PolicedPath, *services: Service, performance: float = 2.0) -> tuple[Result, ...]:
    times = ActivationTimes(step=2.0, performance=performance)
    return await run(ServiceActivation("sat", ServiceActivation.Options(services=services, trial=times)), path)


def outcomes(results: tuple[Result, ...]) -> dict[str, Any]:
    return {result.id.partition("/")[2]: result.values["outcome"] for result in results}


async def test_a_service_as_agreed_passes_and_the_rate_of_the_policer_lies_in_its_interval() -> None:
    results = await activated(PolicedPath(140 * MBIT), GOLD)
    assert set(outcomes(results).values()) == {"pass"}
    assert list(outcomes(results))[-4:] == [
        "configuration/gold/CIR + 125 % of EIR", "configuration/all services",
        "performance/gold", "performance/all services",
    ]  # fmt: skip
    policed = results[5].values["policed_rate_bits_per_s"]
    assert policed.value == pytest.approx(140 * MBIT, rel=1e-3)
    assert policed.lower is not None
    assert policed.upper is not None
    assert policed.lower <= 140 * MBIT <= policed.upper


async def test_a_policer_of_too_low_a_rate_fails_where_the_cir_is_sent_and_above() -> None:
    results = await activated(PolicedPath(90 * MBIT), GOLD)
    failed = [name for name, outcome in outcomes(results).items() if outcome == "fail"]
    assert failed == [
        "configuration/gold/100 % of CIR", "configuration/gold/CIR + EIR", "configuration/gold/CIR + 125 % of EIR",
        "configuration/all services", "performance/gold", "performance/all services",
    ]  # fmt: skip
    assert results[4].values["why"] == "90.4 Mb/s came, at least 100 Mb/s must"


async def test_a_path_that_does_not_police_fails_only_by_what_should_have_been_held_back() -> None:
    results = await activated(PolicedPath(1000 * MBIT), GOLD)
    failed = [name for name, outcome in outcomes(results).items() if outcome == "fail"]
    assert failed == ["configuration/gold/CIR + 125 % of EIR", "configuration/all services"]
    assert results[5].values["why"] == "150 Mb/s came, at most 140.4 Mb/s may"
    policed = results[5].values["policed_rate_bits_per_s"]
    assert (policed.value, policed.reason_null) == (None, "nothing was held back")
    unpoliced = await activated(PolicedPath(1000 * MBIT), GOLD.replace(policed=False))
    assert set(outcomes(unpoliced).values()) == {"pass"}


async def test_marked_excess_must_not_cost_what_is_committed() -> None:
    service = GOLD.replace(excess_stream="yellow")
    aware = await activated(PolicedPath(130 * MBIT, streams=("gold", "yellow")), service)
    assert set(outcomes(aware).values()) == {"pass"}
    blind = await activated(PolicedPath(130 * MBIT, streams=("gold", "yellow"), colours=False), service)
    assert outcomes(blind)["configuration/gold/CIR + EIR"] == "fail"
    # Unmarked, the same losses may all be of excess.
    unmarked = await activated(PolicedPath(130 * MBIT), GOLD)
    assert outcomes(unmarked)["configuration/gold/CIR + EIR"] == "pass"


async def test_services_are_sent_one_by_one_and_then_all_at_once_each_with_its_own_size() -> None:
    silver = Service(name="silver", frame_bytes=200, cir=20 * MBIT, policed=False)
    path = PolicedPath(500 * MBIT, streams=("gold", "silver"))
    results = await activated(path, GOLD, silver)
    assert outcomes(results)["performance/silver"] == "pass"
    alone, together = path.requests[0], path.requests[-1]
    assert [load.stream for load in alone.streams] == ["gold"]
    sent = [(load.stream, load.size, load.load_frames_per_s) for load in together.streams]
    assert sent == [("gold", 1000, 12_500.0), ("silver", 200, 12_500.0)]
    assert (together.load_frames_per_s, together.frame_bytes) == (25_000.0, 600.0)
    rates = [result.values["information_rate_bits_per_s"] for result in results[-3:-1]]
    assert [rate.value for rate in rates if isinstance(rate, Bounded)] == [100 * MBIT, 20 * MBIT]


async def test_delays_are_held_against_what_is_accepted() -> None:
    accept = Acceptance(delay=15e-6, delay_variation=10e-6)
    results = await activated(PolicedPath(500 * MBIT), GOLD.replace(accept=accept))
    assert results[0].values["why"] == "mean delay 20 µs, 15 µs may be"


async def test_a_load_that_cannot_be_sent_is_not_judged_and_has_its_reason() -> None:
    results = await activated(PolicedPath(1000 * MBIT, ceiling=15_000.0), GOLD, performance=0.0)
    assert list(outcomes(results).values()) == ["pass"] * 4 + ["not judged"] * 3
    assert results[5].verdict is ResultVerdict.INCOMPLETE
    assert results[5].values["why"] == "the tester sends no more than 15.00 kpps at 1000 bytes: too little"


async def test_the_report_says_what_was_not_as_agreed() -> None:
    configuration, performance = sections(list(await activated(PolicedPath(1000 * MBIT), GOLD)), {})
    assert (configuration.table.title, performance.table.title) == (
        "Service configuration test", "Service performance test",
    )  # fmt: skip
    assert configuration.sentence == (
        "does not pass the service configuration test of gold (CIR 100 Mb/s, EIR 40 Mb/s): gold at CIR + 125 % of EIR "
        "(150 Mb/s came, at most 140.4 Mb/s may)"
    )
    assert performance.sentence == "passes the service performance test of gold (CIR 100 Mb/s, EIR 40 Mb/s)"


def test_a_small_eir_is_exceeded_by_sending_more_than_the_cir() -> None:
    def last_step(eir: float) -> tuple[str, float]:
        *_, last = steps_of(GOLD.replace(eir=eir), (100.0,))
        return last.name, last.bits_per_s / MBIT

    assert last_step(20 * MBIT) == ("CIR + 125 % of EIR", 125.0)
    assert last_step(10 * MBIT) == ("125 % of CIR + EIR", 135.0)
    assert last_step(0.0) == ("125 % of CIR", 125.0)


def test_ten_errored_seconds_begin_unavailable_time_and_ten_others_end_it() -> None:
    def of(*runs: int) -> float | None:
        return available_share([number % 2 == 1 for number, run in enumerate(runs) for _ in range(run)])

    assert of(100) == 1.0
    assert of(50, 9, 41) == 1.0  # nine are not ten
    assert of(50, 10, 40) == 0.9
    assert of(50, 10, 9, 1, 30) == pytest.approx(0.8)  # nine good ones between do not end it
    assert of(0, 20) == 0.0
    assert available_share([]) is None


def intervals_with_outage(duration_s: float, from_s: float, to_s: float) -> Intervals:
    """1000 frames/s, with none from one second to another, in the intervals that the engine keeps: 4096 at most."""
    width_ns = 100_000_000
    while duration_s * 1e9 // width_ns >= 4096:
        width_ns *= 2
    starts_s = [number * width_ns / 1e9 for number in range(round(duration_s * 1e9) // width_ns)]
    width_s = width_ns / 1e9
    lost_s = [max(0.0, min(start + width_s, to_s) - max(start, from_s)) for start in starts_s]
    received = tuple(round(1000 * (width_s - lost)) for lost in lost_s)
    return Intervals(interval_ns=width_ns, received=received, missing=(0,) * len(received))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("duration_s", [60, 900, 7200, 86_400])
@pytest.mark.parametrize("from_s", [20.0, 31.7])
@pytest.mark.parametrize("length_s", [1.0, 9.0, 10.5, 25.0])
def test_the_availability_of_a_long_test_contains_the_true_one(duration_s: int, from_s: float, length_s: float) -> None:
    to_s = from_s + length_s
    lost_s = [max(0.0, min(second + 1.0, to_s) - max(second, from_s)) for second in range(duration_s)]
    true = available_share([lost > 0.5 for lost in lost_s])
    found = availability_in(intervals_with_outage(duration_s, from_s, to_s), 1000.0, duration_s)
    assert true is not None
    assert found.lower <= true <= found.upper
    if duration_s <= 900 or length_s < 5.0:
        assert found.lower == found.upper  # 0.1 s and 0.4 s are fine enough, and a short outage is none
    if length_s >= 10.5:
        assert found.lower < 1.0


def test_an_outage_that_may_have_been_ten_seconds_is_not_passed_as_available() -> None:
    service = Service(name="voice", cir=100e6, accept=Acceptance(availability=0.9999))
    available = availability_in(intervals_with_outage(86_400, 1000.0, 1011.0), 1000.0, 86_400)
    seen = Seen(
        loss_ratio=0.0, delay_ns=1.0, delay_variation_ns=None, committed_bits_per_s=1e8, bits_per_s=1e8,
        duration_s=86_400.0, uncertainty=0.0, availability=available,
    )  # fmt: skip
    assert not performance_failures(service, seen)
    assert unjudged(service, seen, long=True) == ["availability"]
    assert isinstance(available.value, Bounded)
    assert available.value.reason_null is not None
    assert "to 100 %: counts are too coarse to tell each second" in available.value.reason_null


def test_a_service_of_which_nothing_came_was_not_available_at_all() -> None:
    silent = StreamReading(name="0->1", counts=Counts(intended=9, sent=9, received=0, lost=9))
    assert availability_of(silent, 1000.0, 900.0) == Availability(0.0, 0.0)


def test_a_service_needs_its_stream_and_pairs_of_ports() -> None:
    method = ServiceActivation("sat", ServiceActivation.Options(services=(GOLD,)))
    (misfit,) = method.find_stream_misfits(("silver", "bronze"))
    assert (misfit.message, misfit.option) == (
        "`traffic` has no stream gold, which a service of sat names", ("services", 0, "name"),
    )  # fmt: skip
    assert not list(method.find_stream_misfits(("all",)))  # one stream is the service's, whatever it is called
    path = PolicedPath(1.0, streams=("gold", "bronze"))
    path.pattern = Pattern.FULL_MESH
    meshed = method.objection(path)
    assert "full-mesh" in meshed.message


def test_two_services_cannot_share_a_stream() -> None:
    with pytest.raises(ValueError, match="two services share a stream: called gold: give each its own"):
        ServiceActivation.Options(services=(GOLD, GOLD.replace(name="other", stream="gold")))


def test_a_step_too_short_to_use_up_the_burst_is_refused() -> None:
    with pytest.raises(ValueError, match=r"write `trial: \{step: ...\}` above 0.08 s"):
        ServiceActivation.Options(services=(GOLD,), trial=ActivationTimes(step=0.05))


async def test_a_load_that_the_tester_did_not_send_in_full_says_nothing_of_the_dut() -> None:
    class Short(PolicedPath):
        async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
            trial, _ = await super().measure(point, request)
            finding = Finding(reason=Reason.UNSENT, threshold="x", value=0.3, limit=0.001, text="30 % was not sent")
            return trial.replace(verdict=Verdict(findings=(finding,))), True

    results = await activated(Short(140 * MBIT), GOLD)
    assert set(outcomes(results).values()) == {"not judged"}
    assert (results[0].values["why"], results[0].verdict) == ("30 % was not sent", ResultVerdict.DISTURBED)


@pytest.mark.parametrize("reason", [Reason.RECEIVE_OVERRUN, Reason.TRANSMIT_REFUSED])
@pytest.mark.parametrize(("lost", "judged"), [(20, "not judged"), (0, "pass")])
async def test_what_the_tester_itself_lost_is_no_failure_of_a_service(reason: Reason, lost: int, judged: str) -> None:
    class Overrun(PolicedPath):
        async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
            trial, _ = await super().measure(point, request)
            finding = Finding(reason=reason, threshold="x", value=0.05, limit=0.001, text="port t1 dropped frames")
            (stream,) = trial.reading.streams
            gone = stream.counts.received // lost if lost else 0
            counts = stream.counts.replace(received=stream.counts.received - gone, lost=stream.counts.lost + gone)
            reading = trial.reading.replace(streams=(stream.replace(counts=counts),))
            return trial.replace(reading=reading, verdict=Verdict(findings=(finding,))), True

    results = await activated(Overrun(140 * MBIT), GOLD)
    assert outcomes(results)["configuration/gold/25 % of CIR"] == judged
    assert not [result for result in results if "does not pass" in str(result.values.get("answer"))]


def test_a_figure_and_the_limit_that_it_misses_never_read_the_same() -> None:
    accept = Acceptance(loss=0.01, delay=1e-3, availability=0.9999)
    service = Service(name="voice", cir=100e6, accept=accept)
    seen = Seen(
        loss_ratio=0.0100004, delay_ns=1_000_001.0, delay_variation_ns=None, committed_bits_per_s=99_999_500.0,
        bits_per_s=99_999_500.0, duration_s=60.0, uncertainty=0.0, availability=Availability(0.9998843, 0.9998843),
    )  # fmt: skip
    assert performance_failures(service, seen) == [
        "1.00004 % lost, 1 % may be",
        "mean delay 1000.001 µs, 1000 µs may be",
        "available for 99.988 % of the time, 99.99 % are asked for",
    ]
