"""The basis of rates is stated wherever several ports take part, with the sum of ports."""

from __future__ import annotations

from typing import Any

import pytest
from tests.methods.known import reading_of

from nicbench.core.headers import Groups
from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.pattern import Pattern, WayLoad, ways_of
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, NearLimit, Result, ResultVerdict
from nicbench.core.trial import Health, PortReading, Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.measure.completing import add_basis, add_broadcasts, add_near_limits, add_ports, with_contradictions
from nicbench.methods.throughput import Throughput

from ..methods.known import HEALTH

RESULT = Result(
    id="t/64",
    method="throughput",
    scope="per port",
    parameters={"frame_bytes": 64},
    values={
        "ndr_frames_per_s": Bounded(value=1000.0, lower=1000.0),
        "load_frames_per_s": 900.0,
        "line_rate_frames_per_s": 5000.0,
        "ceiling_frames_per_s": None,
        "ndr_percent_of_line_rate": 20.0,
    },
)


def trial(number: int, load: float, lost: int) -> Trial:
    """Ports 0 and 1 both send 100 frames, with two streams on the way from 0 to 1; ``lost`` of these are."""

    def counts(sent: int, lost: int = 0) -> Counts:
        return Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)

    parts = {"0->1 a": counts(60, lost), "0->1 b": counts(40), "1->0": counts(100)}
    reading = Reading(
        transmit_ns=10**9,
        counts=Counts.sum_of(parts.values()),
        streams=tuple(StreamReading(name=name, counts=part) for name, part in parts.items()),
        ports=tuple(
            PortReading(name=f"t{port}", foreign=port, misdirected=2 * port, receive_overrun=0) for port in range(3)
        ),
        latency=None,
        health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
    )
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=load, duration_s=1.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.SEARCH
    )
    return Trial(
        id=f"t{number:04d}", key="k", test="t", configuration="default", parameters={}, repeat=0, request=request,
        reading=reading, verdict=Verdict(),
    )  # fmt: skip


def test_a_frame_to_a_group_was_offered_once_and_is_expected_at_each_member() -> None:
    counts = Counts(intended=100, sent=100, received=99, lost=1)
    alone = Counts(intended=30, sent=30, received=30, lost=0)
    parts = [*((f"0->{port}", counts) for port in (1, 2)), ("0->1 unicast", alone)]
    one = trial(1, 100.0, 0)
    reading = one.reading.replace(
        streams=tuple(StreamReading(name=name, counts=part) for name, part in parts),
        counts=Counts.sum_of(part for _, part in parts),
    )
    request = one.request.replace(groups=Groups(groups=1, members=2))
    one = one.replace(reading=reading, request=request)
    figures = add_ports(RESULT, ways_of(Pattern.ONE_TO_MANY, 3), [one]).by_port
    assert [(port.offered_frames, port.expected_frames) for port in figures.ports] == [(130, 0), (0, 130), (0, 100)]
    assert (figures.combined.offered_frames, figures.combined.lost_frames) == (130, 2)


def test_between_two_ports_one_way_nothing_is_added() -> None:
    assert add_basis(RESULT, ways_of(Pattern.ONE_TO_ONE, 2)) == RESULT
    assert add_ports(RESULT, ways_of(Pattern.ONE_TO_ONE, 2), [trial(1, 100.0, 0)]) == RESULT


def test_the_sum_of_ports_stands_beside_each_rate_and_line_rates_stay_those_of_a_port() -> None:
    result = add_basis(RESULT, ways_of(Pattern.FULL_MESH, 4))
    assert result.scope == "per port of 4 that send at once"
    added = {name: value for name, value in result.values.items() if name not in RESULT.values}
    assert added == {"ndr_frames_per_s_sum_of_ports": 4000.0, "load_frames_per_s_sum_of_ports": 3600.0}


def test_what_many_ports_send_to_one_is_the_sum_already() -> None:
    result = add_basis(RESULT, ways_of(Pattern.MANY_TO_ONE, 4))
    assert (result.scope, result.values) == ("the sum of 3 ports that send to one", RESULT.values)


def test_a_method_that_summed_by_itself_is_left_as_it_is() -> None:
    summed = RESULT.replace(scope="sum of 2 ports")
    assert add_basis(summed, ways_of(Pattern.FULL_MESH, 4)) == summed


def test_each_way_and_each_port_is_that_of_the_trial_that_tells_most() -> None:
    both = ways_of(Pattern.ONE_TO_ONE, 2, bidirectional=True)
    trials = [trial(1, 300.0, 30), trial(2, 100.0, 0), trial(3, 200.0, 0), trial(4, 400.0, 6)]
    figures = add_ports(RESULT, both, trials).by_port
    assert (figures.trial, figures.load_frames_per_s) == ("t0003", 200.0)
    figures = add_ports(RESULT, both, trials[:1]).by_port
    there, back = figures.ways
    assert (there.transmit_port, there.receive_port, there.offered_frames, there.received_frames) == (
        "t0",
        "t1",
        100,
        70,
    )
    assert (there.loss_ratio, back.loss_ratio, figures.combined.loss_ratio) == pytest.approx((0.3, 0.0, 0.15))
    assert [(port.port, port.offered_frames, port.expected_frames, port.received_frames) for port in figures.ports] == [
        ("t0", 100, 100, 100),
        ("t1", 100, 100, 70),
    ]  # t2 takes no part
    assert [(port.foreign_frames, port.misdirected_frames) for port in figures.ports] == [(0, 0), (1, 2)]


# What a result says of broadcasts among its frames: which ports got them.


def told(**received: int) -> object:
    """The number of 100 broadcasts that came to each port."""
    ports = tuple(PortReading(name=name) for name in ("t0", *received))
    load = StreamReading(name="0->1", counts=Counts(intended=900, sent=900, received=900, lost=0))
    beside = tuple(
        StreamReading(name=f"0->{port} to all", counts=Counts(intended=100, sent=100, received=came, lost=100 - came))
        for port, came in enumerate(received.values(), start=1)
    )
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1000.0, duration_s=1.0, drain_s=0.0, settle_s=0.0, purpose=Purpose.SEARCH
    )
    trial = Trial(
        id="t0001", key="k", test="t", configuration="default", parameters={}, repeat=0, request=request,
        reading=reading_of(1.0, [load], beside=beside, ports=ports), verdict=Verdict(findings=()),
    )  # fmt: skip
    result = Result(id="t/64", method="throughput", parameters={}, values={}, trials=("t0001",))
    return add_broadcasts(result, (trial,)).values.get("broadcasts")


def test_ports_without_all_of_them_are_named() -> None:
    assert told(t1=100, t2=100) == "10 % of all frames; every receiving port got all of them"
    assert told(t1=100, t2=90, t3=0) == "10 % of all frames; t2 got 90 of 100, t3 got 0 of 100; the other ports got all"
    assert told(t1=0) == "10 % of all frames; t1 got 0 of 100"


def test_nothing_is_said_where_none_were_sent() -> None:
    assert told() is None


# Results near the tester's own limits: in the result, where summary and report read it.


def near(**values: Any) -> tuple[NearLimit, ...]:
    judged = add_near_limits(Result(id="t/64", method="any", parameters={"frame_bytes": 64}, values=values))
    assert judged.near_tester_limit is not None, "judged, also where there is nothing to say"
    return judged.near_tester_limit


def rate(frames_per_s: float | None) -> Bounded:
    return Bounded(value=frames_per_s, lower=frames_per_s, limited_by=LimitedBy.DUT)


def test_a_rate_within_five_percent_of_the_testers_ceiling_is_near_it() -> None:
    (found,) = near(ndr_frames_per_s=rate(0.90e6), pdr_frames_per_s=rate(0.96e6), ceiling_frames_per_s=1e6)
    assert (found.value, found.limit) == ("pdr_frames_per_s", "ceiling_frames_per_s")
    assert "960.0 kpps are 96 % of what the tester sends without a DUT (1.000 Mpps)" in found.text


def test_the_line_rate_is_no_rate_of_the_dut() -> None:
    assert near(ndr_frames_per_s=rate(0.5e6), line_rate_frames_per_s=14.88e6, ceiling_frames_per_s=1e6) == ()


@pytest.mark.parametrize("ceiling", [None, 2e6], ids=["unknown", "far away"])
def test_a_ceiling_that_is_unknown_or_far_away_is_not_spoken_of(ceiling: float | None) -> None:
    assert near(ndr_frames_per_s=rate(0.96e6), pdr_frames_per_s=rate(None), ceiling_frames_per_s=ceiling) == ()


def test_a_median_below_twice_the_testers_own_is_near_it() -> None:
    (found,) = near(latency_p50_ns=10_000, tester_latency_p50_ns=6_000)
    assert (found.value, found.limit) == ("latency_p50_ns", "tester_latency_p50_ns")
    assert "the median of 10 µs is less than twice the tester's own (6 µs)" in found.text


@pytest.mark.parametrize(("median_ns", "own_ns"), [(10_000, 4_000), (10_000, None), (None, 6_000)])
def test_a_median_far_from_the_testers_own_or_unknown_is_not_spoken_of(
    median_ns: int | None, own_ns: int | None
) -> None:
    assert near(latency_p50_ns=median_ns, tester_latency_p50_ns=own_ns) == ()


# A rate that a later trial contradicts is demoted, and says by which trial.


RATE = 100_000.0
METHODS = {("default", "throughput"): Throughput("throughput", Throughput.Options())}
NDR = Bounded(value=RATE, lower=RATE, upper=1.01 * RATE, limited_by=LimitedBy.DUT)
RESULT_OF_CONTRADICTIONS = Result(
    id="throughput/64",
    test="throughput",
    method="throughput",
    run=1,
    parameters={"frame_bytes": 64},
    values={"ndr_frames_per_s": NDR, "pdr_frames_per_s": NDR},
    trials=("t0001", "t0002"),
)
DISTURBED = Verdict(
    findings=(Finding(reason=Reason.DISTURBED, threshold="longest_gap_ms", value=30.0, limit=20.0, text="held up"),)
)


def trial_of_contradictions(
    number: int,
    lost: int,
    *,
    load: float = RATE,
    frame_bytes: int = 64,
    purpose: Purpose = Purpose.LATENCY,
    verdict: Verdict | None = None,
) -> Trial:
    counts = Counts(intended=10_000, sent=10_000, received=10_000 - lost, lost=lost)
    return Trial(
        id=f"t{number:04d}",
        key=f"latency/{number}/0",
        test="latency",
        configuration="default",
        parameters={},
        repeat=0,
        request=TrialRequest(
            frame_bytes=frame_bytes, load_frames_per_s=load, duration_s=1, drain_s=0, settle_s=0, purpose=purpose
        ),
        verdict=verdict or Verdict(),
        reading=Reading(transmit_ns=10**9, counts=counts, streams=(), ports=(), latency=None, health=HEALTH),
    )


def judged(*trials: Trial) -> Result:
    (result,) = with_contradictions([RESULT_OF_CONTRADICTIONS], METHODS, trials)
    return result


def test_a_later_trial_that_lost_too_much_demotes_every_rate_that_it_breaks() -> None:
    result = judged(trial_of_contradictions(3, 20))
    assert result.verdict is ResultVerdict.DISTURBED
    assert result.disturbances == (
        "NDR: contradicted by t0003 of latency, which lost 20 of 10000 frames (0.2 %) at 100.0 kpps",
    )
    limits = [value.limited_by for value in result.values.values() if isinstance(value, Bounded)]
    assert limits == [None, LimitedBy.DUT]  # 0.2 % is within what the PDR allows


def test_the_worst_trial_is_named_and_both_rates_fall() -> None:
    result = judged(
        trial_of_contradictions(3, 20), trial_of_contradictions(4, 400, load=0.5 * RATE), trial_of_contradictions(5, 30)
    )
    assert [text.partition(":")[0] for text in result.disturbances] == ["NDR", "PDR"]
    assert all("t0004" in text and "50.00 kpps" in text for text in result.disturbances)


def test_what_says_nothing_about_the_rate_leaves_it_as_it_is() -> None:
    others = (
        trial_of_contradictions(1, 400),  # of the search itself, which settled it
        trial_of_contradictions(3, 0),
        trial_of_contradictions(4, 400, load=1.2 * RATE),
        trial_of_contradictions(5, 400, frame_bytes=128),
        trial_of_contradictions(6, 400, purpose=Purpose.BURST),
        trial_of_contradictions(7, 400, verdict=DISTURBED),
    )
    assert judged(*others) == RESULT_OF_CONTRADICTIONS


def test_a_trial_that_overloads_one_port_on_purpose_contradicts_no_rate() -> None:
    ways = tuple(WayLoad(transmit=port, receive=2, load_frames_per_s=RATE) for port in (0, 1))
    overload = trial_of_contradictions(3, 2500, purpose=Purpose.LOSS)
    mixed = overload.replace(request=overload.request.replace(ways=ways))
    assert judged(mixed) == RESULT_OF_CONTRADICTIONS
    assert judged(overload) != RESULT_OF_CONTRADICTIONS
